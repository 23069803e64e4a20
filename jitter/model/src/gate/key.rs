//! The parts of a gate's clause.

use std::fmt::{self, Display, Formatter};

/// One limit of a gate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GateClause {
    pub key: GateKey,
    /// The side of the limit on which the value must lie.
    pub comparison: Comparison,
    /// The limit, in its unit.
    pub number: f64,
    /// The unit as written.
    pub unit: GateUnit,
}

/// Quantities that a gate can limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GateKey {
    /// Length of the longest interruption.
    Max,
    /// Mean length of the interruptions.
    Mean,
    /// Percentile of the lengths, by its quantile.
    Percentile(f64),
    /// Percentile over time, by its quantile.
    TimePercentile(f64),
    /// Interruptions per core-second of each CPU.
    Rate,
    /// Upper limit of the rate's 95 % interval.
    RateHigh,
    /// Interruptions per core-second of all CPUs together.
    RateAll,
    Count,
    /// The shortest gap that counts as an interruption.
    Threshold,
    /// Sampled time of each CPU.
    Runtime,
    /// Share of the sampled time that was lost.
    Lost,
    /// Share of the interruption time with a tracepoint's name.
    Named,
    /// Share of entry into the kernel and exit from it.
    EntryExit,
    /// Share of firmware and hypervisor.
    Firmware,
    Unexplained,
    /// Share of time that was not traced.
    NotTraced,
}

/// Keys as written. A dash also stands for an underscore.
pub(super) const KEYS: [(&str, GateKey); 28] = [
    ("max", GateKey::Max),
    ("mean", GateKey::Mean),
    ("p50", GateKey::Percentile(0.5)),
    ("p90", GateKey::Percentile(0.9)),
    ("p99", GateKey::Percentile(0.99)),
    ("p99.9", GateKey::Percentile(0.999)),
    ("p99.99", GateKey::Percentile(0.999_9)),
    ("p99.999", GateKey::Percentile(0.999_99)),
    ("p99.9999", GateKey::Percentile(0.999_999)),
    ("time_p50", GateKey::TimePercentile(0.5)),
    ("time_p90", GateKey::TimePercentile(0.9)),
    ("time_p99", GateKey::TimePercentile(0.99)),
    ("time_p99.9", GateKey::TimePercentile(0.999)),
    ("time_p99.99", GateKey::TimePercentile(0.999_9)),
    ("time_p99.999", GateKey::TimePercentile(0.999_99)),
    ("time_p99.9999", GateKey::TimePercentile(0.999_999)),
    ("rate", GateKey::Rate),
    ("rate_high", GateKey::RateHigh),
    ("rate_all", GateKey::RateAll),
    ("count", GateKey::Count),
    ("threshold", GateKey::Threshold),
    ("runtime", GateKey::Runtime),
    ("lost", GateKey::Lost),
    ("named", GateKey::Named),
    ("entry_exit", GateKey::EntryExit),
    ("firmware", GateKey::Firmware),
    ("unexplained", GateKey::Unexplained),
    ("not_traced", GateKey::NotTraced),
];

/// The side of the limit on which a value must lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
}

/// A unit of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateUnit {
    Ns,
    Us,
    Ms,
    S,
    /// Per core-second.
    PerS,
    Percent,
    /// No unit: a plain number.
    Plain,
}

impl GateKey {
    /// Returns its spelling in a gate.
    pub fn name(self) -> &'static str {
        KEYS.iter().find(|(_, key)| *key == self).map_or("", |(name, _)| name)
    }

    /// The units that its limit can have.
    pub fn units(self) -> &'static [GateUnit] {
        match self {
            Self::Max
            | Self::Mean
            | Self::Percentile(_)
            | Self::TimePercentile(_)
            | Self::Threshold
            | Self::Runtime => &[GateUnit::Ns, GateUnit::Us, GateUnit::Ms, GateUnit::S],
            Self::Rate | Self::RateHigh | Self::RateAll => &[GateUnit::PerS],
            Self::Count => &[GateUnit::Plain],
            Self::Lost
            | Self::Named
            | Self::EntryExit
            | Self::Firmware
            | Self::Unexplained
            | Self::NotTraced => &[GateUnit::Percent],
        }
    }

    /// True if it is known only for all CPUs together.
    pub fn is_of_all(self) -> bool {
        self.is_cause_share() || matches!(self, Self::RateAll | Self::Threshold)
    }

    /// True if it is a share of the interruption time.
    pub fn is_cause_share(self) -> bool {
        matches!(self, Self::Named | Self::EntryExit | Self::Firmware | Self::Unexplained | Self::NotTraced)
    }
}

impl Comparison {
    /// Returns its spelling in a gate.
    pub fn text(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }

    /// True if a value meets the limit.
    pub fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
        }
    }

    pub fn is_upper(self) -> bool {
        matches!(self, Self::Below | Self::AtMost)
    }
}

impl GateUnit {
    /// Spelling in a gate; empty for [`GateUnit::Plain`].
    pub fn text(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
            Self::PerS => "/s",
            Self::Percent => "%",
            Self::Plain => "",
        }
    }

    /// Factor to the base unit of values: nanoseconds, per second, percent, one.
    pub fn factor(self) -> f64 {
        match self {
            Self::Us => 1e3,
            Self::Ms => 1e6,
            Self::S => 1e9,
            Self::Ns | Self::PerS | Self::Percent | Self::Plain => 1.0,
        }
    }

    /// The base unit of its kind: nanoseconds for all lengths.
    #[must_use]
    pub fn base(self) -> Self {
        match self {
            Self::Ns | Self::Us | Self::Ms | Self::S => Self::Ns,
            other => other,
        }
    }
}

impl GateClause {
    /// The limit in nanoseconds, per second, percent, or plain.
    pub fn limit(&self) -> f64 {
        self.number * self.unit.factor()
    }

    /// The limit as written: "<10us".
    pub fn limit_text(&self) -> String {
        format!("{}{}{}", self.comparison.text(), self.number, self.unit.text())
    }
}

impl Display for GateClause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.key.name(), self.limit_text())
    }
}
