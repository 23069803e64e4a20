//! What all layers share: how a value that was read stands against the planned one.

use super::{Culprit, CulpritKind, Evidence, Input, Row, Standing};
use crate::Plan;
use lowlat_host::{Allocation, CpuSet, HostSnapshot, Reading, Role};
use lowlat_settings::{
    Catalogue, Context,
    change::{Change, Moment, Target},
    same_meaning,
};

/// What rows are judged by.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) plan: &'a Plan,
    pub(super) host: &'a HostSnapshot,
    pub(super) evidence: &'a Evidence,
    pub(super) catalogue: Catalogue,
    /// Whether the host still runs the boot in which the plan was applied.
    pub(super) is_boot_of_apply: bool,
    /// Whether it is known when the plan was applied.
    is_apply_known: bool,
    /// The host with what was read after the snapshot.
    pub(super) latest: HostSnapshot,
    role: Role,
    allocation: Allocation,
}

impl<'a> Scene<'a> {
    pub(super) fn of(input: &Input<'a>) -> Self {
        let Input { plan, host, evidence, .. } = *input;
        // A plan of which no apply is known was made in this boot at the earliest when it names this boot.
        let applied = input.applied_boot_id.or_else(|| plan.boot_id.known().map(String::as_str));
        Self {
            plan,
            host,
            evidence,
            catalogue: input.catalogue,
            is_boot_of_apply: applied.is_some() && applied == host.kernel.boot_id.known().map(String::as_str),
            is_apply_known: input.applied_boot_id.is_some(),
            latest: latest(host, evidence),
            role: Role { profile: plan.profile, ..Role::default() },
            allocation: Allocation {
                housekeeping: plan.housekeeping.clone(),
                isolated: plan.isolated.clone(),
                ..Allocation::default()
            },
        }
    }

    /// What judges of the catalogue look at: the host by the plan's own CPUs.
    pub(super) fn context(&self) -> Context<'_> {
        let Self { host, role, allocation, .. } = self;
        Context { host, role, allocation, profile: self.plan.profile, catalogue: self.catalogue }
    }

    /// What a row waits for that takes effect with the next boot.
    pub(super) fn why_pending(&self) -> &'static str {
        if self.is_apply_known {
            "waits for the reboot"
        } else {
            "the host was not rebooted since the plan was made"
        }
    }

    /// Whether the plan changes something like this.
    pub(super) fn changes(&self, is_meant: impl Fn(&Target) -> bool) -> bool {
        self.plan.changes.iter().any(|change| is_meant(&change.target))
    }

    /// A file of the kernel as it was read last.
    pub(super) fn file(&self, path: &str) -> Reading<String> {
        Target::File { path: path.to_owned() }.kind().present(&self.latest)
    }

    /// Equal lists, as sets of CPUs that run.
    pub(super) fn same_lists(&self, a: &str, b: &str) -> bool {
        matches!((CpuSet::parse_list(a), CpuSet::parse_list(b)), (Ok(a), Ok(b)) if self.same_cpus(&a, &b))
    }

    /// Equal sets, of CPUs that run: the kernel leaves others out.
    pub(super) fn same_cpus(&self, a: &CpuSet, b: &CpuSet) -> bool {
        let online = &self.host.topology.online;
        if online.is_empty() { a == b } else { a.intersection(online) == b.intersection(online) }
    }
}

fn latest(host: &HostSnapshot, evidence: &Evidence) -> HostSnapshot {
    let mut latest = host.clone();
    latest.files.extend(evidence.files.clone());
    if let Some(later) = &evidence.interrupts_later {
        latest.interrupts = later.clone();
    }
    latest
}

/// Somebody who gives a thing a value; none where the value is worked out at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) by: Culprit,
    pub(super) value: Option<String>,
}

/// One thing that was looked at, before it is judged.
#[derive(Debug)]
pub(super) struct Look<'a> {
    pub(super) at: usize,
    pub(super) change: &'a Change,
    pub(super) what: String,
    pub(super) observed: Reading<String>,
    /// Whether the observed value means the planned one.
    pub(super) is_planned: bool,
    /// Who gives it which value.
    pub(super) claims: Vec<Claim>,
}

impl Look<'_> {
    /// The row with a standing found elsewhere.
    pub(super) fn row(self, standing: Standing, note: impl Into<String>) -> Row {
        Row {
            change: Some(self.at),
            settings: self.change.settings.clone(),
            layer: self.change.layer.clone(),
            what: self.what,
            planned: self.change.after.clone(),
            observed: self.observed,
            standing,
            by: None,
            note: note.into(),
        }
    }

    /// The row by the rules that all values share.
    pub(super) fn judge(self, scene: &Scene<'_>) -> Row {
        let Reading::Known(observed) = &self.observed else {
            let note = unreadable(&self.observed);
            return self.row(Standing::Unreadable, note);
        };
        if self.is_planned {
            return self.row(Standing::Held, "");
        }
        let is_from_before = self.change.before.known().is_some_and(|before| same_meaning(before, observed));
        let claims = self.claims.clone();
        if let Some(by) = culprit_of(&claims, observed) {
            let mut row = self.row(Standing::Overridden, "");
            row.by = Some(by);
            return row;
        }
        if is_from_before {
            let note = why_lost(scene, self.change);
            return self.row(Standing::Lost, note);
        }
        let note = self.change.target.kind().how_to_find();
        let mut row = self.row(Standing::Overridden, note);
        row.by = Some(unknown());
        row
    }
}

/// The one whose value is there, else the one that works its value out at run time. Of several the last has its way.
pub(super) fn culprit_of(claims: &[Claim], observed: &str) -> Option<Culprit> {
    let gives = |claim: &&Claim| claim.value.as_deref().is_some_and(|value| same_meaning(value, observed));
    let found = claims.iter().rev().find(gives).or_else(|| claims.iter().rev().find(|c| c.value.is_none()));
    found.map(|claim| claim.by.clone())
}

pub(super) fn unknown() -> Culprit {
    Culprit {
        kind: CulpritKind::Unknown,
        name: "unknown".to_owned(),
        line: None,
        does: "set by somebody that lowlat does not know".to_owned(),
    }
}

/// Why nothing was read, and the next step.
pub(super) fn unreadable<T>(reading: &Reading<T>) -> String {
    match reading {
        Reading::Absent => "absent: this host, or this kernel, has no such thing now".to_owned(),
        Reading::Denied => "denied: run `lowlat tune verify` as root".to_owned(),
        other => other.missing_in_words().unwrap_or_default(),
    }
}

/// Why the value from before is back.
pub(super) fn why_lost(scene: &Scene<'_>, change: &Change) -> String {
    const SERVICE: &str = "lowlat.service";
    if scene.is_boot_of_apply {
        return "set back since the plan was applied, by nobody that lowlat knows; `lowlat tune apply` sets it again"
            .to_owned();
    }
    if change.moment == Moment::Now {
        return "the plan sets it once, and nothing does after a reboot; `lowlat tune apply` sets it again"
            .to_owned();
    }
    match scene.host.services.units.get(SERVICE) {
        None => format!(
            "{SERVICE}, which sets it after a reboot, is not installed; `lowlat tune apply` sets it again"
        ),
        Some(unit) => match (unit.active.text(), unit.enablement.text()) {
            (_, "masked") => format!("{SERVICE}, which sets it after a reboot, is masked"),
            ("active", _) => format!("{SERVICE} ran, and something set it back later"),
            (_, "disabled") => {
                format!(
                    "{SERVICE}, which sets it after a reboot, is disabled; `systemctl enable --now {SERVICE}`"
                )
            }
            ("", _) => format!("whether {SERVICE} ran, which sets it after a reboot, is not known"),
            (state, _) => {
                format!(
                    "{SERVICE}, which sets it after a reboot, is {state}; `systemctl status {SERVICE}` says why"
                )
            }
        },
    }
}
