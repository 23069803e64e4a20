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

/// The units that a limit can have.
type Units = &'static [GateUnit];

const LENGTH: Units = &[GateUnit::Ns, GateUnit::Us, GateUnit::Ms, GateUnit::S];
const PER_S: Units = &[GateUnit::PerS];
const PERCENT: Units = &[GateUnit::Percent];
const PLAIN: Units = &[GateUnit::Plain];

/// Keys as written, with the units of their limits. A dash also stands for an underscore.
pub(super) static KEYS: [(&str, GateKey, Units); 28] = [
    ("max", GateKey::Max, LENGTH),
    ("mean", GateKey::Mean, LENGTH),
    ("p50", GateKey::Percentile(0.5), LENGTH),
    ("p90", GateKey::Percentile(0.9), LENGTH),
    ("p99", GateKey::Percentile(0.99), LENGTH),
    ("p99.9", GateKey::Percentile(0.999), LENGTH),
    ("p99.99", GateKey::Percentile(0.999_9), LENGTH),
    ("p99.999", GateKey::Percentile(0.999_99), LENGTH),
    ("p99.9999", GateKey::Percentile(0.999_999), LENGTH),
    ("time_p50", GateKey::TimePercentile(0.5), LENGTH),
    ("time_p90", GateKey::TimePercentile(0.9), LENGTH),
    ("time_p99", GateKey::TimePercentile(0.99), LENGTH),
    ("time_p99.9", GateKey::TimePercentile(0.999), LENGTH),
    ("time_p99.99", GateKey::TimePercentile(0.999_9), LENGTH),
    ("time_p99.999", GateKey::TimePercentile(0.999_99), LENGTH),
    ("time_p99.9999", GateKey::TimePercentile(0.999_999), LENGTH),
    ("rate", GateKey::Rate, PER_S),
    ("rate_high", GateKey::RateHigh, PER_S),
    ("rate_all", GateKey::RateAll, PER_S),
    ("count", GateKey::Count, PLAIN),
    ("threshold", GateKey::Threshold, LENGTH),
    ("runtime", GateKey::Runtime, LENGTH),
    ("lost", GateKey::Lost, PERCENT),
    ("named", GateKey::Named, PERCENT),
    ("entry_exit", GateKey::EntryExit, PERCENT),
    ("firmware", GateKey::Firmware, PERCENT),
    ("unexplained", GateKey::Unexplained, PERCENT),
    ("not_traced", GateKey::NotTraced, PERCENT),
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
    fn row(self) -> Option<&'static (&'static str, Self, Units)> {
        KEYS.iter().find(|(_, key, _)| *key == self)
    }

    /// Returns its spelling in a gate.
    pub fn name(self) -> &'static str {
        self.row().map_or("", |(name, ..)| name)
    }

    /// The units that its limit can have.
    pub fn units(self) -> &'static [GateUnit] {
        self.row().map_or(&[], |(.., units)| units)
    }

    /// True if it is known only for all CPUs together.
    pub fn is_of_all(self) -> bool {
        matches!(
            self,
            Self::RateAll
                | Self::Threshold
                | Self::Named
                | Self::EntryExit
                | Self::Firmware
                | Self::Unexplained
                | Self::NotTraced
        )
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
    /// Spelling in a gate, empty for [`GateUnit::Plain`], and factor to the base unit: nanoseconds, per second, percent,
    /// one.
    fn spelling(self) -> (&'static str, f64) {
        match self {
            Self::Ns => ("ns", 1.0),
            Self::Us => ("us", 1e3),
            Self::Ms => ("ms", 1e6),
            Self::S => ("s", 1e9),
            Self::PerS => ("/s", 1.0),
            Self::Percent => ("%", 1.0),
            Self::Plain => ("", 1.0),
        }
    }

    pub fn text(self) -> &'static str {
        self.spelling().0
    }

    pub fn factor(self) -> f64 {
        self.spelling().1
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
