//! The proof of a plan: what each of its settings is worth on this host, by measuring with the setting on and off.
//!
//! A setting is off only while the rest of the plan is on, so two settings that remove the same disturbance both look
//! worthless, and the role of the minimal plan keeps neither: prove it again.

mod boots;
mod role;
mod schedule;
#[cfg(test)]
mod tests;

pub use boots::{BootProof, OffInBoot};
pub use role::minimal_role;
pub use schedule::ProofSchedule;

use crate::{HostMark, Plan};
use lowlat_host::{
    Labels, Profile,
    paired::{PairedShift, discoveries},
};
use lowlat_settings::change::{Mechanism, Part, Target};
use serde::{Deserialize, Serialize};

/// The expected share of false findings among all gains and harms.
pub const FALSE_DISCOVERY_RATE: f64 = 0.05;

/// What the settings of a plan are worth, with each measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanProof {
    /// Name of the document: [`PlanProof::DOCUMENT`].
    pub document: String,
    /// Version of the document's format: [`PlanProof::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The version of lowlat that made the proof.
    pub lowlat_version: String,
    /// Start of the proof, RFC 3339 in UTC.
    pub started_at: String,
    #[serde(flatten)]
    pub labels: Labels,
    /// [`Plan::id`] of the plan.
    pub plan_id: String,
    pub profile: Profile,
    pub host: HostMark,
    /// What was measured, as a clause: "jitter of CPU 3".
    pub measured: String,
    pub figures: Vec<ProofFigure>,
    /// Length of each measurement.
    pub slice_ms: u64,
    /// Pause after each switch, before the measurement.
    pub settle_ms: u64,
    /// Rounds over all settings, the last of which may be cut short.
    pub rounds: u32,
    pub settings: Vec<ProvenSettings>,
    /// Boots that were measured; 0 if the settings were switched while the host ran.
    pub boots: u32,
    /// The run ended before all rounds.
    pub is_interrupted: bool,
    /// Reasons why the host may not be as before; empty if it is.
    pub not_restored: Vec<String>,
}

/// A figure of each measurement; less is better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofFigure {
    pub name: String,
    pub unit: ProofUnit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofUnit {
    Ns,
    NsPerS,
    /// Whatever a command prints.
    Number,
}

/// Settings that are switched together, because they share a change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProvenSettings {
    pub settings: Vec<String>,
    /// The changes, as a plan shows them: "vm.stat_interval: 1 -> 10".
    pub changes: Vec<String>,
    /// The measurements, in the order in which they were made.
    pub pairs: Vec<OnOffPair>,
    /// Pairs that do not count, because another program switched the setting meanwhile.
    pub disturbed_pairs: u32,
    /// Reason why the settings were not measured.
    pub unmeasured: Option<String>,
    /// The difference of each figure, off minus on; empty without pairs.
    pub shifts: Vec<PairedShift>,
    pub verdict: ProofVerdict,
}

/// Two measurements in a row: the figures with the settings on and off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnOffPair {
    pub on: Vec<f64>,
    pub off: Vec<f64>,
    pub is_on_first: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofVerdict {
    /// Without the settings, a figure is worse.
    Gain,
    /// Without the settings, a figure is better.
    Harm,
    /// Without them one figure is better and another worse.
    Trade,
    /// The measurements do not show a difference. It may exist and be small or rare.
    NoDifferenceShown,
    #[default]
    Unmeasured,
}

impl ProvenSettings {
    /// The rounds in which the settings were measured.
    pub fn rounds(&self) -> u32 {
        u32::try_from(self.pairs.len()).unwrap_or(u32::MAX).saturating_add(self.disturbed_pairs)
    }
}

impl PlanProof {
    pub const DOCUMENT: &str = "lowlat-proof";
    pub const SCHEMA_VERSION: u32 = 1;

    /// Fills in shifts and verdicts from the pairs.
    pub fn judge(&mut self) {
        for proven in &mut self.settings {
            let of_figure = |figure: usize| {
                let difference = |pair: &OnOffPair| Some(pair.off.get(figure)? - pair.on.get(figure)?);
                PairedShift::of(&proven.pairs.iter().filter_map(difference).collect::<Vec<f64>>())
            };
            proven.shifts = (0..self.figures.len()).map_while(of_figure).collect();
        }
        let p_values: Vec<f64> =
            self.settings.iter().flat_map(|proven| proven.shifts.iter().map(|shift| shift.p_value)).collect();
        let mut found = discoveries(&p_values, FALSE_DISCOVERY_RATE).into_iter();
        for proven in &mut self.settings {
            let shown = proven.shifts.iter().zip(found.by_ref()).filter(|(_, is_found)| *is_found);
            let (worse, better): (Vec<_>, Vec<_>) = shown.partition(|(shift, _)| shift.shift > 0.0);
            proven.verdict = match (worse.is_empty(), better.is_empty()) {
                _ if proven.unmeasured.is_some() || proven.shifts.is_empty() => ProofVerdict::Unmeasured,
                (true, true) => ProofVerdict::NoDifferenceShown,
                (false, true) => ProofVerdict::Gain,
                (true, false) => ProofVerdict::Harm,
                (false, false) => ProofVerdict::Trade,
            };
        }
    }

    /// The settings with a verdict.
    pub fn with(&self, verdict: ProofVerdict) -> impl Iterator<Item = &ProvenSettings> {
        self.settings.iter().filter(move |proven| proven.verdict == verdict)
    }
}

/// Changes that are switched together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchGroup {
    pub settings: Vec<String>,
    /// Indexes in [`Plan::changes`].
    pub changes: Vec<usize>,
    /// Reason why the settings cannot be switched while the host runs.
    pub fixed: Option<&'static str>,
}

/// The settings of a plan, grouped so that no change belongs to two groups. Files keep values for later boots, so
/// their changes belong to none.
pub fn switch_groups(plan: &Plan) -> Vec<SwitchGroup> {
    let mut groups: Vec<SwitchGroup> = Vec::new();
    for (at, change) in plan.changes.iter().enumerate() {
        let fixed = fixed(plan, at);
        if fixed == Some(KEPT) {
            continue;
        }
        let shares = |group: &SwitchGroup| group.settings.iter().any(|id| change.settings.contains(id));
        let (joined, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(shares);
        let mut group = SwitchGroup { settings: change.settings.clone(), changes: vec![at], fixed };
        for other in joined {
            group.settings.extend(other.settings);
            group.changes.extend(other.changes);
            group.fixed = group.fixed.or(other.fixed);
        }
        group.settings.sort_unstable();
        group.settings.dedup();
        group.changes.sort_unstable();
        groups = others;
        groups.push(group);
    }
    groups.sort_by_key(|group| group.changes.first().copied());
    groups
}

/// The parameters of interfaces for which drivers start the link or the rings again, by [`Ethtool::undo_kind`].
///
/// [`Ethtool::undo_kind`]: lowlat_settings::change::Ethtool::undo_kind
const RESETTING: [&str; 4] = ["nic-rings", "nic-eee", "nic-fec", "nic-pause"];

const RESETS: &str = "switching it resets the interface";
const KEPT: &str = "it keeps a value for later boots";

/// The reason why a change cannot be switched while the host runs; none if it can.
fn fixed(plan: &Plan, at: usize) -> Option<&'static str> {
    let target = &plan.changes.get(at)?.target;
    let kind = target.kind();
    let facts = kind.facts();
    match (facts.part, facts.mechanism) {
        (Part::Boot, _) => Some("it takes effect at the next boot"),
        (Part::Files | Part::Tuned, _) => Some(KEPT),
        (Part::Queues, _) => Some(RESETS),
        (Part::RunTime, Mechanism::Ethtool { group, .. }) if RESETTING.contains(&group.undo_kind) => {
            Some(RESETS)
        }
        (Part::RunTime, _) => matches!(target, Target::HugePages { .. })
            .then_some("freed pages may not come back while the host runs"),
    }
}
