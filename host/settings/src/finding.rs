//! A judge's result, and the finding that the audit makes of it.

use super::{Impact, Layer, Risk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The verdict on one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As wanted, and in force.
    Good,
    /// Not as wanted.
    Wrong,
    /// Written, but the kernel ignores it.
    Ineffective,
    /// Written in one place, but overridden by a later one.
    Shadowed,
    /// Two settings that conflict are both set.
    Conflicting,
    /// Does not apply to this host or this profile.
    NotApplicable,
    /// Could not be determined; the finding says why.
    Unknown,
}

impl Verdict {
    pub const WORST_FIRST: [Self; 7] = [
        Self::Wrong,
        Self::Conflicting,
        Self::Ineffective,
        Self::Shadowed,
        Self::Unknown,
        Self::Good,
        Self::NotApplicable,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Wrong => "wrong",
            Self::Ineffective => "ineffective",
            Self::Shadowed => "shadowed",
            Self::Conflicting => "conflicting",
            Self::NotApplicable => "not applicable",
            Self::Unknown => "unknown",
        }
    }

    /// True if the verdict calls for action.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Wrong | Self::Ineffective | Self::Shadowed | Self::Conflicting)
    }

    /// True if the row was judged: it is good or a fault. In the score, an unknown row weighs like a fault.
    pub fn counts(self) -> bool {
        self == Self::Good || self.is_fault()
    }
}

/// A judge's result for one setting on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    /// Human-readable state of the host: "1", "1-3 of 14 CPUs: powersave". Empty if nothing was seen.
    pub observed: String,
    /// Reason for the verdict in one sentence; empty if the values make it clear.
    pub because: String,
    /// Paths or interfaces where the state was seen.
    pub seen_at: Vec<String>,
    /// A reboot can help: the boot parameter is valid, and only the running kernel contradicts it.
    pub can_await_reboot: bool,
}

impl Judgement {
    /// Creates a judgement without a place.
    pub fn new(verdict: Verdict, observed: impl Into<String>, because: impl Into<String>) -> Self {
        Self {
            verdict,
            observed: observed.into(),
            because: because.into(),
            seen_at: Vec::new(),
            can_await_reboot: false,
        }
    }

    /// Creates a judgement "as wanted".
    pub fn good(observed: impl Into<String>) -> Self {
        Self::new(Verdict::Good, observed, "")
    }

    /// Creates a judgement "not as wanted".
    pub fn wrong(observed: impl Into<String>, because: impl Into<String>) -> Self {
        Self::new(Verdict::Wrong, observed, because)
    }

    /// Creates a judgement "unknown" with its reason.
    pub fn unknown(because: impl Into<String>) -> Self {
        Self::new(Verdict::Unknown, "", because)
    }

    /// Creates a judgement "not applicable" with its reason.
    pub fn not_applicable(because: impl Into<String>) -> Self {
        Self::new(Verdict::NotApplicable, "", because)
    }

    /// Creates a judgement "ineffective" of a valid boot parameter that the running kernel does not show in force.
    pub fn not_in_force(observed: impl Into<String>, because: impl Into<String>) -> Self {
        Self { can_await_reboot: true, ..Self::new(Verdict::Ineffective, observed, because) }
    }

    /// Adds a place where it was seen, unless it has it.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        if !self.seen_at.contains(&path) {
            self.seen_at.push(path);
        }
        self
    }
}

/// A judged setting of one host, as tables, reports and documents show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub id: String,
    pub layer: Layer,
    /// The setting's name as the kernel or vendor spells it.
    pub name: String,
    pub verdict: Verdict,
    /// Current state of the host.
    pub observed: String,
    /// State that the profile wants; empty if it has no preference.
    pub wanted: String,
    /// Reason for the verdict; empty if the values make it clear.
    pub because: String,
    /// Paths or interfaces where the state was seen.
    pub seen_at: Vec<String>,
    /// Impact of a wrong value.
    pub impact: Impact,
    /// Class of harm that the wanted value can do.
    pub risk: Risk,
    /// The change needs a reboot.
    pub needs_reboot: bool,
    /// The role file accepts the risk of this row.
    pub is_risk_accepted: bool,
    pub reason: String,
    /// Cost of the wanted value.
    pub cost: String,
    /// Check that shows that the setting is in force.
    pub effective: String,
    /// Problem with the guide's advice; only in profile `guide-57037`.
    pub hazard: String,
    pub sources: Vec<String>,
}

impl Finding {
    /// Sorting key, worst first: faults before rows that are unknown, good or not applicable; then by impact,
    /// verdict and id.
    pub fn rank(&self) -> (usize, std::cmp::Reverse<u8>, usize, &str) {
        let place = Verdict::WORST_FIRST.iter().position(|v| *v == self.verdict).unwrap_or(usize::MAX);
        let class = if self.verdict.is_fault() { 0 } else { place };
        (class, std::cmp::Reverse(self.weight()), place, &self.id)
    }

    /// Points in the score: 1, 3 or 9.
    pub fn weight(&self) -> u8 {
        match self.impact {
            Impact::High => 9,
            Impact::Medium => 3,
            Impact::Low => 1,
        }
    }
}

impl Impact {
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl Finding {
    /// Makes a finding of a setting and its judgement.
    pub fn of(
        setting: &super::Setting,
        judgement: Judgement,
        wanted: String,
        is_guide: bool,
        is_risk_accepted: bool,
    ) -> Self {
        Self {
            id: setting.id.into(),
            layer: setting.layer,
            name: setting.name.into(),
            verdict: judgement.verdict,
            observed: judgement.observed,
            wanted,
            because: judgement.because,
            seen_at: judgement.seen_at,
            impact: setting.impact,
            risk: setting.risk,
            needs_reboot: setting.needs_reboot,
            is_risk_accepted,
            reason: setting.reason.into(),
            cost: setting.cost.into(),
            effective: setting.effective.into(),
            hazard: if is_guide { setting.hazard.into() } else { String::new() },
            sources: setting.sources.iter().map(|text| (*text).to_owned()).collect(),
        }
    }
}
