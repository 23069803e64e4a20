//! Gates: limits that a jitter run must meet, such as `max<10us,rate<0.01/s`.
//!
//! ```text
//! gate       = part { "," part }
//! part       = clause | name of a ready gate
//! clause     = key comparison number unit
//! comparison = "<" | "<=" | ">" | ">="
//! ```
//! White space is allowed between all of them.
//!
//! | key | what it is | units | where |
//! |---|---|---|---|
//! | `max`, `mean` | length of the longest interruption, mean length | ns us ms s | each CPU |
//! | `p50` `p90` `p99` `p99.9` ... `p99.9999` | percentiles of the lengths of interruptions | ns us ms s | each CPU |
//! | `time_p50` ... `time_p99.9999` | percentiles over time: the wait at a moment chosen at random | ns us ms s | each CPU |
//! | `rate` | interruptions per core-second, as counted | /s | each CPU |
//! | `rate_high` | upper limit of its 95 % interval | /s | each CPU |
//! | `rate_all` | interruptions per core-second | /s | all CPUs together |
//! | `count` | interruptions | none | each CPU |
//! | `threshold` | the shortest gap that counts as an interruption | ns us ms s | all CPUs together |
//! | `runtime` | sampled time | ns us ms s | each CPU |
//! | `lost` | share of the sampled time that interruptions took | % | each CPU |
//! | `named` `entry_exit` `firmware` `unexplained` `not_traced` | shares of the time of all interruptions | % | all CPUs together |
//!
//! Each clause results in a row per CPU (or one for all), with one of three verdicts:
//! * **held**: the value meets the limit.
//! * **broken**: it does not.
//! * **not shown**: the run cannot show it. Examples are a percentile with too few interruptions (p99.9 of
//!   40), a mean of nothing, a limit on `max` below the threshold, a share of causes when nothing was traced,
//!   or one that untraced time could change.
//!
//! A gate holds if all its rows hold. A limit that is not shown fails like a broken one, under its own name:
//! a gate that passes for lack of data is worse than none.
//!
//! `rate` is judged by the measured count; if its interval crosses the limit, the row says so. `rate_high`
//! requires proof: it holds only if the run was long enough. A CPU without an interruption holds each limit
//! on `max` that is not below the threshold, and each upper limit on shares.
//!
//! A ready gate ([`READY`]) stands for its clauses: `guide-57037` for a run as long and as quiet as the one of
//! [`GUIDE_RUN`].

mod evaluate;
mod key;
mod parse;

pub use evaluate::{GateOutcome, GateRow, Verdict};
pub use key::{Comparison, GateClause, GateKey, GateUnit};
pub use parse::GateError;

use std::fmt::{self, Display, Formatter};

/// A gate with a name, which stands for its clauses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyGate {
    pub name: &'static str,
    pub clauses: &'static str,
}

pub const READY: [ReadyGate; 1] = [ReadyGate {
    // The guide's run had 10 interruptions in 8,540 core-seconds.
    name: "guide-57037",
    clauses: "threshold<=100ns,runtime>=600s,rate_all<=0.001171/s",
}];

/// A run of which only the totals are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferenceRun {
    pub name: &'static str,
    /// A gap of at least this long counted as an interruption.
    pub threshold_ns: u64,
    /// Isolated CPUs, all of which were measured.
    pub cpu_count: u32,
    pub duration_s: u32,
    /// Interruptions on all CPUs together.
    pub interruption_count: u32,
}

/// The run of AMD/HPE guide 57037, section 5.5: two EPYC 7F32 in a ProLiant DL385 Gen10 Plus, RHEL 8.1, sysjitter 1.4.
pub const GUIDE_RUN: ReferenceRun = ReferenceRun {
    name: "guide 57037",
    threshold_ns: 100,
    cpu_count: 14,
    duration_s: 610,
    interruption_count: 10,
};

impl ReferenceRun {
    /// Returns the interruptions per core-second.
    pub fn rate_per_s(&self) -> f64 {
        f64::from(self.interruption_count) / (f64::from(self.cpu_count) * f64::from(self.duration_s))
    }
}

/// Limits that a run must keep.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    clauses: Vec<GateClause>,
}

impl Gate {
    /// The clauses, in written order; at least one.
    pub fn clauses(&self) -> &[GateClause] {
        &self.clauses
    }
}

impl Display for Gate {
    /// Written so that it can be parsed again.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, clause) in self.clauses.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{clause}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
