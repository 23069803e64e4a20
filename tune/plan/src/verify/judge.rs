//! Common to all layers: compares a value with the planned one.

use super::{Culprit, CulpritKind, Evidence, Input, Refusal, Row, Standing};
use crate::Plan;
use lowlat_host::{Allocation, CpuSet, HostSnapshot, Reading, Role};
use lowlat_settings::{
    Catalogue, Context,
    change::{Change, Moment, Target},
    same_meaning,
};

/// The input of all judges.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) plan: &'a Plan,
    pub(super) host: &'a HostSnapshot,
    pub(super) evidence: &'a Evidence,
    pub(super) catalogue: Catalogue,
    /// The host still runs the boot in which the plan was applied.
    pub(super) is_boot_of_apply: bool,
    is_apply_known: bool,
    /// The host with values read after the snapshot.
    pub(super) latest: HostSnapshot,
    role: Role,
    allocation: Allocation,
}

impl<'a> Scene<'a> {
    pub(super) fn of(input: &Input<'a>) -> Self {
        let Input { plan, host, evidence, .. } = *input;
        // If the time of applying is unknown, a plan that names this boot was applied in this boot at the earliest.
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

    /// The context for the catalogue's judges: the host with the plan's CPUs.
    pub(super) fn context(&self) -> Context<'_> {
        let Self { host, role, allocation, .. } = self;
        Context { host, role, allocation, profile: self.plan.profile, catalogue: self.catalogue }
    }

    /// The reason why a row that takes effect at the next boot is pending.
    pub(super) fn why_pending(&self) -> &'static str {
        if self.is_apply_known {
            "waits for the reboot"
        } else {
            "the host has not rebooted since the plan was made"
        }
    }

    /// The refusal of a change.
    pub(super) fn refusal(&self, target: &Target) -> Option<&'a Refusal> {
        self.evidence.refused.iter().find(|refusal| refusal.target == *target)
    }

    pub(super) fn changes(&self, is_meant: impl Fn(&Target) -> bool) -> bool {
        self.plan.changes.iter().any(|change| is_meant(&change.target))
    }

    /// The latest reading of a file of the kernel.
    pub(super) fn file(&self, path: &str) -> Reading<String> {
        Target::File { path: path.to_owned() }.kind().present(&self.latest)
    }

    /// True if lists are equal as sets of online CPUs.
    pub(super) fn same_lists(&self, a: &str, b: &str) -> bool {
        matches!((CpuSet::parse_list(a), CpuSet::parse_list(b)), (Ok(a), Ok(b)) if self.same_cpus(&a, &b))
    }

    /// True if sets are equal as far as online CPUs go: the kernel omits others.
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

/// A program or file that sets a value; none for the value if it is computed at run time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) by: Culprit,
    pub(super) value: Option<String>,
}

/// One target before it is judged.
#[derive(Debug)]
pub(super) struct UnjudgedTarget<'a> {
    pub(super) at: usize,
    pub(super) change: &'a Change,
    pub(super) what: String,
    pub(super) observed: Reading<String>,
    /// The observed value has the planned meaning.
    pub(super) is_planned: bool,
    /// The programs and files that set it, each with its value.
    pub(super) claims: Vec<Claim>,
}

impl<'a> UnjudgedTarget<'a> {
    /// A target whose value is not the planned one, and that nothing else is known to set.
    pub(super) fn of(at: usize, change: &'a Change, what: String, observed: Reading<String>) -> Self {
        Self { at, change, what, observed, is_planned: false, claims: Vec::new() }
    }

    /// The row with a given standing.
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

    /// The row by the rules common to all values.
    pub(super) fn judge(self, scene: &Scene<'_>) -> Row {
        let Reading::Known(observed) = &self.observed else {
            let note = unreadable(&self.observed);
            return self.row(Standing::Unreadable, note);
        };
        if self.is_planned {
            return self.row(Standing::Held, "");
        }
        let is_from_before = self.change.before.known().is_some_and(|before| same_meaning(before, observed));
        if let Some(by) = culprit_of(&self.claims, observed) {
            return Row { by: Some(by), ..self.row(Standing::Overridden, "") };
        }
        if is_from_before {
            if let Some(refusal) = scene.refusal(&self.change.target) {
                let note = refusal.reason.clone();
                return self.row(Standing::Refused, note);
            }
            let note = why_lost(scene, self.change);
            return self.row(Standing::Lost, note);
        }
        let note = self.change.target.kind().facts().how_to_find;
        Row { by: Some(unknown()), ..self.row(Standing::Overridden, note) }
    }
}

/// The claimant whose value is present, otherwise one that computes its value at run time. Of several the
/// last one wins.
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
        does: "set by an unknown program".to_owned(),
    }
}

/// The reason why the value is missing, and the next step.
pub(super) fn unreadable<T>(reading: &Reading<T>) -> String {
    match reading {
        Reading::Absent => "absent: it no longer exists on this host or kernel".to_owned(),
        Reading::Denied => "denied: run `lowlat tune verify` as root".to_owned(),
        other => other.missing_in_words().unwrap_or_default(),
    }
}

/// The reason why the old value is back, and the next step.
pub(super) fn why_lost(scene: &Scene<'_>, change: &Change) -> String {
    const SERVICE: &str = "lowlat.service";
    if scene.is_boot_of_apply {
        return "reset since the plan was applied, by an unknown program; `lowlat tune apply` sets it again"
            .to_owned();
    }
    if change.moment == Moment::Now {
        return "the plan sets it once, and a reboot resets it; `lowlat tune apply` sets it again".to_owned();
    }
    match scene.host.services.units.get(SERVICE) {
        None => format!(
            "{SERVICE}, which sets it after a reboot, is not installed; `lowlat tune apply` sets it again"
        ),
        Some(unit) => match (unit.active.text(), unit.enablement.text()) {
            (_, "masked") => format!("{SERVICE}, which sets it after a reboot, is masked"),
            ("active", _) => format!("{SERVICE} ran, and something reset it later"),
            (_, "disabled") => {
                format!(
                    "{SERVICE}, which sets it after a reboot, is disabled; `systemctl enable --now {SERVICE}`"
                )
            }
            ("", _) => format!("it is unknown whether {SERVICE}, which sets it after a reboot, ran"),
            (state, _) => {
                format!(
                    "{SERVICE}, which sets it after a reboot, is {state}; see `systemctl status {SERVICE}`"
                )
            }
        },
    }
}
