//! Artificial plans compared with artificial hosts.

mod boot;
mod files;
mod irqs;
mod shape;
mod traps;

use super::{Evidence, Input, Row, Standing, TickCount, TickLoad, TickProof, Verification};
use crate::{HostMark, Plan};
use lowlat_catalogue::{
    CATALOGUE,
    testing::{Bench, list},
};
use lowlat_host::{CpuSet, Reading};
use lowlat_settings::{
    Risk,
    change::{BootToken, Change, Moment, Target},
};

/// A bench with its own plan.
struct Case {
    bench: Bench,
    plan: Plan,
    evidence: Evidence,
    ticks: Option<TickProof>,
    applied_boot_id: &'static str,
}

/// The boot in which the benches run.
const THIS_BOOT: &str = "this boot";

impl Case {
    /// CPUs 0 and 8 are reserved for housekeeping; the plan was applied in an earlier boot.
    fn new(bench: Bench) -> Self {
        let bench = bench.with(|bench| bench.host.kernel.boot_id = Reading::Known(THIS_BOOT.into()));
        let plan = Plan {
            document: Plan::DOCUMENT.into(),
            schema_version: Plan::SCHEMA_VERSION,
            lowlat_version: "0.0.0".into(),
            profile: bench.profile,
            host: HostMark::of(&bench.host),
            boot_id: Reading::Known("the boot of the plan".into()),
            housekeeping: bench.allocation.housekeeping.clone(),
            isolated: bench.allocation.isolated.clone(),
            changes: Vec::new(),
            role: None,
            left_out: Vec::new(),
            warnings: Vec::new(),
            unsupported: None,
            hindrances: Vec::new(),
        };
        Self { bench, plan, evidence: Evidence::default(), ticks: None, applied_boot_id: "an earlier boot" }
    }

    fn change(mut self, target: Target, before: &str, after: &str) -> Self {
        self.plan.changes.push(Change {
            settings: vec!["test".into()],
            layer: "sysctl".into(),
            target,
            before: Reading::Known(before.into()),
            after: after.into(),
            moment: Moment::NowAndAtBoot,
            reason: "test".into(),
            cost: String::new(),
            risk: Risk::None,
            sources: Vec::new(),
        });
        self
    }

    fn sysctl(self, key: &str, before: &str, after: &str) -> Self {
        self.change(Target::Sysctl { key: key.into() }, before, after)
    }

    fn file(self, path: &str, before: &str, after: &str) -> Self {
        self.change(Target::File { path: path.into() }, before, after)
    }

    fn irq(self, irq: u32, action: &str, after: &str) -> Self {
        self.change(Target::IrqAffinity { irq, actions: vec![action.into()] }, "0-15", after)
    }

    /// Parameters, all new: "nohz_full=1-7" of setting "boot.nohz_full".
    fn line(self, words: &[&str]) -> Self {
        let token = |word: &&str| {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            BootToken {
                setting: format!("boot.{name}"),
                name: name.into(),
                value: Some(value.into()),
                before: None,
            }
        };
        let target = Target::CommandLine { tokens: words.iter().map(token).collect() };
        self.change(target, "ro", &format!("ro {}", words.join(" ")))
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn verify(&self) -> Verification {
        Verification::of(&Input {
            plan: &self.plan,
            host: &self.bench.host,
            evidence: &self.evidence,
            applied_boot_id: Some(self.applied_boot_id),
            applied_unix_ms: None,
            verified_unix_ms: 0,
            ticks: self.ticks.as_ref(),
            lowlat_version: "0.0.0",
            catalogue: CATALOGUE,
        })
    }

    /// The row of this name.
    #[track_caller]
    fn row(&self, what: &str) -> Row {
        let rows = self.verify().rows;
        rows.iter()
            .find(|row| row.what == what)
            .unwrap_or_else(|| panic!("no row {what} among {rows:#?}"))
            .clone()
    }

    /// Asserts the standing of a row, and that each piece occurs in the observed value, the note or the culprit.
    #[track_caller]
    fn says(&self, what: &str, standing: Standing, pieces: &[&str]) -> Row {
        let row = self.row(what);
        let by = row.by.as_ref();
        let text = format!(
            "{} | {} | {}:{} {}",
            row.observed,
            row.note,
            by.map_or("nobody", |by| &by.name),
            by.and_then(|by| by.line).unwrap_or_default(),
            by.map_or("", |by| &by.does)
        );
        assert_eq!(row.standing, standing, "{what}: {text}");
        for piece in pieces {
            assert!(text.contains(piece), "{what}: \"{piece}\" is not in \"{text}\"");
        }
        row
    }
}

/// A line of TuneD's active profile.
fn tuned(plugin: &str, key: &str, value: &str) -> super::TunedOption {
    super::TunedOption {
        path: "/usr/lib/tuned/balanced/tuned.conf".into(),
        line: 7,
        plugin: plugin.into(),
        devices: String::new(),
        key: key.into(),
        value: value.into(),
    }
}

/// A proof of one second on CPUs 1 and 2.
fn proof(ticks: [u64; 2], load: TickLoad) -> TickProof {
    let count =
        |(cpu, ticks)| TickCount { cpu, ticks: Reading::Known(ticks), rcu_softirqs: Reading::Known(0), load };
    TickProof {
        window_ns: 1_000_000_000,
        hz: Reading::Known(250),
        source: "LOC".into(),
        cpus: [1, 2].into_iter().zip(ticks).map(count).collect(),
        housekeeping_ticks_max: Reading::Known(250),
        doubts: Vec::new(),
    }
}
