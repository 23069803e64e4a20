//! What a judge says, and the finding that the audit makes of it.

use super::{Impact, Layer, Risk};
use serde::{Deserialize, Serialize, Serializer};

/// The verdict on one setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As wanted, and in force.
    Good,
    /// Not as wanted.
    Wrong,
    /// Written, but the kernel ignores it.
    Ineffective,
    /// Written in one place, and a later place wins.
    Shadowed,
    /// Two things that fight each other are both set.
    Conflicting,
    /// Means nothing on this host or in this profile.
    NotApplicable,
    /// Could not be told; the finding says why.
    Unknown,
}

impl Verdict {
    /// Every verdict, worst first.
    pub const WORST_FIRST: [Self; 7] = [
        Self::Wrong,
        Self::Conflicting,
        Self::Ineffective,
        Self::Shadowed,
        Self::Unknown,
        Self::Good,
        Self::NotApplicable,
    ];

    /// The word for tables.
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

    /// Whether something should be done about it.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Wrong | Self::Ineffective | Self::Shadowed | Self::Conflicting)
    }

    /// Whether the row counts in the score: good rows and faults do, unknown and skipped ones never.
    pub fn counts(self) -> bool {
        self == Self::Good || self.is_fault()
    }
}

/// What a judge says of one setting on one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What the host has, for people: "1", "1-3 of 14 CPUs: powersave". Empty when nothing was seen.
    pub observed: String,
    /// Why this verdict, in one sentence; empty when the values say it all.
    pub because: String,
    /// Where it was seen: paths or interfaces.
    pub seen_at: Vec<String>,
}

impl Judgement {
    /// A judgement without a place.
    pub fn new(verdict: Verdict, observed: impl Into<String>, because: impl Into<String>) -> Self {
        Self { verdict, observed: observed.into(), because: because.into(), seen_at: Vec::new() }
    }

    /// As wanted.
    pub fn good(observed: impl Into<String>) -> Self {
        Self::new(Verdict::Good, observed, "")
    }

    /// Not as wanted.
    pub fn wrong(observed: impl Into<String>, because: impl Into<String>) -> Self {
        Self::new(Verdict::Wrong, observed, because)
    }

    /// Could not be told, and why.
    pub fn unknown(because: impl Into<String>) -> Self {
        Self::new(Verdict::Unknown, "", because)
    }

    /// Means nothing here, and why.
    pub fn not_applicable(because: impl Into<String>) -> Self {
        Self::new(Verdict::NotApplicable, "", because)
    }

    /// The same, with the place where it was seen.
    #[must_use]
    pub fn at(mut self, path: impl Into<String>) -> Self {
        self.seen_at.push(path.into());
        self
    }
}

/// One judged setting of one host: what tables, reports and documents show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The setting's id.
    pub id: String,
    /// The setting's layer.
    pub layer: Layer,
    /// The setting's name as the kernel or vendor spells it.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// What the host has.
    pub observed: String,
    /// What the profile wants; empty when it has no opinion.
    pub wanted: String,
    /// Why this verdict; empty when the values say it all.
    pub because: String,
    /// Where it was seen.
    pub seen_at: Vec<String>,
    /// How much it matters.
    pub impact: Impact,
    /// The class of harm that the wanted value can do; documents have its word ("RAS").
    #[serde(serialize_with = "word_of_risk")]
    pub risk: Risk,
    /// Whether the change takes a reboot.
    pub needs_reboot: bool,
    /// Whether the role file accepts the risk of this row.
    pub is_risk_accepted: bool,
    /// Why the setting exists.
    pub reason: String,
    /// What it costs.
    pub cost: String,
    /// How to see that it is in force.
    pub effective: String,
    /// What is wrong with the guide's advice; only in profile `guide-57037`.
    pub hazard: String,
    /// Where the advice comes from.
    pub sources: Vec<String>,
}

impl Finding {
    /// Sorting key, worst first: faults before what is not known, good or not applicable; then by impact, verdict and
    /// id.
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn word_of_risk<S: Serializer>(risk: &Risk, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(risk.word())
}

impl Impact {
    /// Every impact.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// The word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl Finding {
    /// The finding that a judgement of a setting makes.
    pub fn of(
        setting: &super::Setting,
        judgement: Judgement,
        wanted: String,
        is_guide: bool,
        is_risk_accepted: bool,
    ) -> Self {
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
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
            sources: own(setting.sources),
        }
    }
}
