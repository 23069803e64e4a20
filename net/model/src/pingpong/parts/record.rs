//! Record of the parts of a run's round trips.

use super::{Part, SlowMessage};
use serde::{Deserialize, Serialize};

/// Sources of the parts of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartsFacts {
    /// True if the kernel's trace shows when the end's thread was woken: client, server.
    pub is_traced: [bool; 2],
    /// True if both NICs stamped the packets: the wire is then between the NICs, otherwise between the drivers.
    #[serde(default)]
    pub is_by_nics: bool,
    /// Reasons why an end was not traced, and gaps in the trace, one sentence each.
    pub notes: Vec<String>,
}

/// Parts of the round trips of one size, from the rounds with time stamps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SizeParts {
    /// Round trips with time stamps.
    pub messages: u64,
    /// Those with a stamp missing.
    pub missing: u64,
    /// Those whose stamps are out of order.
    pub disordered: u64,
    /// Those whose parts add up to the measured time within 2 %.
    pub adding_up: u64,
    /// Those with all stamps, but with an unknown wake-up because trace events were lost. Their parts are not counted.
    pub untraced: u64,
    /// Parts in the order of time; wake-ups only of ends that were traced.
    pub parts: Vec<PartFigures>,
    /// Median round trip with time stamps.
    pub stamped_median_ns: u64,
    /// Median round trip of the interleaved rounds without.
    pub plain_median_ns: u64,
    /// The slowest round trips with time stamps, slowest first.
    pub slowest: Vec<SlowMessage>,
}

/// One part over all round trips of a size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PartFigures {
    pub part: Part,
    pub median_ns: u64,
    /// Its 99th percentile, if the count supports it.
    pub p99_ns: Option<u64>,
    /// Its time in all round trips together.
    pub total_ns: u64,
}

impl SizeParts {
    /// Share of the round trips whose parts add up, from 0 to 1.
    pub fn share_adding_up(&self) -> f64 {
        self.adding_up as f64 / self.messages.max(1) as f64
    }

    /// A part's share of the time of all round trips, from 0 to 1.
    pub fn share_of(&self, figures: &PartFigures) -> f64 {
        let all: u64 = self.parts.iter().map(|part| part.total_ns).fold(0, u64::saturating_add);
        figures.total_ns as f64 / all.max(1) as f64
    }

    /// Ratio of the medians with and without time stamps; `None` without both.
    pub fn stamp_cost_ratio(&self) -> Option<f64> {
        let is_known = self.stamped_median_ns > 0 && self.plain_median_ns > 0;
        is_known.then(|| self.stamped_median_ns as f64 / self.plain_median_ns as f64)
    }
}
