//! Verification: compares a plan with the state of the host's kernel, row by row. Pure; nothing here reads a host.
//!
//! ```text
//! Plan + HostSnapshot + Evidence + TickProof  ->  Row per change, CPU set, interrupt, thread, parameter
//!
//! value in force = planned                        held
//! boot of the apply, parameter not on the line    pending
//! a known file or daemon sets the present value   overridden, by name
//! not the planned value, which was refused        refused
//! old value                                       lost
//! any other value                                 overridden, by unknown
//! configured, but the kernel shows another value  ineffective
//! no value could be read                          unreadable: absent, denied, unparsable
//! ```
//!
//! Values are compared by meaning: `1-3` is `1,2,3`, `2MB` is `2M`, masks are sets.

mod boot;
mod boot_follow;
mod culprit;
mod document;
mod evidence;
mod headline;
mod irq;
mod judge;
mod kthread;
mod owned;
mod service;
mod ticks;
mod value;

#[cfg(test)]
mod tests;

pub use boot_follow::module_path;
pub use document::{Counts, Culprit, CulpritKind, Headline, Outcome, Row, Standing, Verification};
pub use evidence::{BootSource, Evidence, Refusal, RunningVariable, TunedOption};
pub use ticks::{TickCount, TickLoad, TickProof};

use super::{HostMark, Plan};
use judge::Scene;
use lowlat_host::HostSnapshot;
use lowlat_settings::{
    Catalogue,
    change::{Change, Mechanism},
};

#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub plan: &'a Plan,
    /// The host as it is now.
    pub host: &'a HostSnapshot,
    /// Facts read besides the snapshot.
    pub evidence: &'a Evidence,
    /// Every setting, whose judges know what a boot parameter shows.
    pub catalogue: Catalogue,
    /// The boot in which the plan was applied, if known.
    pub applied_boot_id: Option<&'a str>,
    /// When it was applied, milliseconds since 1970, if known.
    pub applied_unix_ms: Option<u64>,
    /// Present time, milliseconds since 1970.
    pub verified_unix_ms: u64,
    /// Ticks of the isolated CPUs, if counted.
    pub ticks: Option<&'a TickProof>,
    /// The caller's version of lowlat.
    pub lowlat_version: &'a str,
}

impl Verification {
    /// Compares a plan with a host. The result depends only on the arguments.
    pub fn of(input: &Input<'_>) -> Self {
        let Input { plan, host, .. } = input;
        let scene = Scene::of(input);
        let marks = HostMark::of(host);
        let changes: Vec<Row> =
            plan.changes.iter().enumerate().flat_map(|(at, change)| of_change(&scene, at, change)).collect();
        let (headline, mut rows) = headline::of(&scene, &changes);
        let unset = rows.iter().find(|row| matches!(row.standing, Standing::Pending | Standing::Refused));
        let unset = unset.map(|row| (row.standing, row.note.clone()));
        rows.extend(changes);
        rows.extend(service::keeper_row(&scene));
        if let Some(proof) = input.ticks {
            rows.extend(ticks::rows(&scene, proof, unset.as_ref()));
        }
        Self {
            document: Self::DOCUMENT.to_owned(),
            schema_version: Self::SCHEMA_VERSION,
            lowlat_version: input.lowlat_version.to_owned(),
            plan_id: plan.id(),
            profile: plan.profile,
            boot_id: host.kernel.boot_id.clone(),
            applied_boot_id: lowlat_host::Reading::from_option(input.applied_boot_id.map(str::to_owned)),
            applied_unix_ms: input.applied_unix_ms,
            verified_unix_ms: input.verified_unix_ms,
            housekeeping: plan.housekeeping.clone(),
            isolated: plan.isolated.clone(),
            is_of_other_host: plan.host.is_other_machine(&marks),
            headline,
            counts: Counts::of(&rows),
            rows,
            ticks: input.ticks.cloned(),
            warnings: warnings(&scene, &marks),
        }
    }
}

/// The rows of one change, by the mechanism that applies it.
fn of_change(scene: &Scene<'_>, at: usize, change: &Change) -> Vec<Row> {
    let kind = change.target.kind();
    match kind.facts().mechanism {
        Mechanism::BootLoader { tokens } => boot::rows(scene, at, change, tokens),
        Mechanism::Value { .. }
        | Mechanism::Mask { .. }
        | Mechanism::Ethtool { .. }
        | Mechanism::CacheGroup { .. }
        | Mechanism::CpusetPartition { .. }
        | Mechanism::UserProcesses => {
            vec![value::row(scene, at, change, kind.as_ref())]
        }
        Mechanism::IdleState { name, cpus } => irq::rows(scene, at, change, name, cpus),
        Mechanism::Interrupt { number, actions } => vec![irq::row(scene, at, change, number, actions)],
        Mechanism::ThreadAffinity { comm, pid } => vec![kthread::affinity_row(scene, at, change, comm, pid)],
        Mechanism::ThreadScheduling { comm, pid } => {
            vec![kthread::scheduling_row(scene, at, change, comm, pid)]
        }
        Mechanism::Unit { name } => vec![service::row(scene, at, change, name)],
        Mechanism::TunedProfile => vec![service::tuned_row(scene, at, change)],
        Mechanism::FileKey { path, key } => vec![owned::key_row(scene, at, change, path, key)],
        Mechanism::OwnedFile { path } => owned::file_rows(scene, at, change, path),
    }
}

/// Notes for the reader besides the rows.
fn warnings(scene: &Scene<'_>, marks: &HostMark) -> Vec<String> {
    let mut warnings = Vec::new();
    let (planned, now) = (&scene.plan.host.kernel_release, &scene.host.kernel.release);
    if planned.is_known() && now.is_known() && planned != now {
        warnings.push(format!(
            "The plan was made for kernel {planned}, and {now} is running. Its boot entry may be new, and its \
             settings may differ. Plan again to be sure."
        ));
    }
    if scene.plan.host.is_other_machine(marks) {
        warnings.push(
            "The plan was made for another host, so the following rows mean little. If it is in force here, this host is \
             a copy of that one: `lowlat tune adopt` keeps the plan, `lowlat tune rollback` takes it back."
                .to_owned(),
        );
    } else if scene.plan.host.topology_digest != marks.topology_digest {
        warnings.push(
            "The host's CPUs or nodes differ from those of the plan: one was taken offline or online, or the \
             firmware settings changed. Plan again."
                .to_owned(),
        );
    }
    warnings
}
