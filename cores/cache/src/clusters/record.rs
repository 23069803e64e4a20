//! Record of a comparison of placements, with its results.

use super::Filling;
use crate::quantile;
use lowlat_host::{CpuId, statistics::MedianInterval};
use serde::{Deserialize, Serialize};

/// The work that each copy does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Job {
    /// Arithmetic in registers: the control, which needs no cache.
    Compute,
    /// Loads in random order from its own memory, each after the one before.
    Random,
    /// Updates its own memory in order.
    Sequential,
}

impl Job {
    /// Every job, in the order of a report.
    pub const ALL: [Self; 3] = [Self::Random, Self::Sequential, Self::Compute];

    pub fn words(self) -> &'static str {
        match self {
            Self::Compute => "arithmetic only",
            Self::Random => "random reads",
            Self::Sequential => "updates in order",
        }
    }

    pub fn needs_cache(self) -> bool {
        self != Self::Compute
    }
}

/// Placement of the copies of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// All copies in one group.
    Packed,
    /// One copy in each group.
    Spread,
}

lowlat_host::measurement! {
    /// A comparison with the host that it belongs to.
    ClustersMeasurement { record: ClustersRecord, kind: "clusters", command: "cache clusters" }
}

/// The rounds of a comparison.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ClustersRecord {
    /// The comparison that was made; `None` if nothing could be compared.
    pub filling: Option<Filling>,
    /// Reason why nothing was compared. One sentence.
    pub why_not: Option<String>,
    /// Rounds, in the order of measurement; each has every job on both sides once.
    pub rounds: Vec<FillRound>,
    /// Reasons why the figures are doubtful. One sentence each.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FillRound {
    /// CPUs of the copies in one group.
    pub packed: Vec<CpuId>,
    /// CPUs of the copies in one group each.
    pub spread: Vec<CpuId>,
    /// Times, in the order of measurement.
    pub times: Vec<FillTime>,
}

/// One job on one side in one round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FillTime {
    pub job: Job,
    pub side: Side,
    /// Time of one step of one copy, mean of the copies, in nanoseconds.
    pub step_ns: f64,
}

/// Verdict on the rounds of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Copies in one group are slower.
    PackingCosts,
    /// Copies in one group are faster.
    PackingGains,
    /// The interval contains 1, or the rounds are too few for one.
    NoDifference,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FillFigures {
    pub job: Job,
    /// Step in one group, median over the rounds.
    pub packed_ns: f64,
    /// Step in one group each, median over the rounds.
    pub spread_ns: f64,
    /// Packed by spread, median over the rounds.
    pub factor: MedianInterval,
}

impl FillFigures {
    pub fn verdict(&self) -> Verdict {
        match self.factor {
            factor if !factor.is_interval() => Verdict::NoDifference,
            factor if factor.low > 1.0 => Verdict::PackingCosts,
            factor if factor.high < 1.0 => Verdict::PackingGains,
            _ => Verdict::NoDifference,
        }
    }
}

impl ClustersRecord {
    /// Figures of each job that was measured.
    pub fn figures(&self) -> Vec<FillFigures> {
        Job::ALL.into_iter().filter_map(|job| self.of(job)).collect()
    }

    /// The job that packing slows most; `None` if no difference was shown.
    pub fn worst(&self) -> Option<FillFigures> {
        let costs = self.figures().into_iter().filter(|row| row.verdict() == Verdict::PackingCosts);
        costs.filter(|row| row.job.needs_cache()).max_by(|a, b| a.factor.median.total_cmp(&b.factor.median))
    }

    fn of(&self, job: Job) -> Option<FillFigures> {
        let time = |round: &FillRound, side| {
            let found = round.times.iter().find(|time| time.job == job && time.side == side);
            found.map(|time| time.step_ns).filter(|ns| *ns > 0.0)
        };
        let pairs: Vec<(f64, f64)> = self
            .rounds
            .iter()
            .filter_map(|round| Some((time(round, Side::Packed)?, time(round, Side::Spread)?)))
            .collect();
        let ratios: Vec<f64> = pairs.iter().map(|(packed, spread)| packed / spread).collect();
        Some(FillFigures {
            job,
            packed_ns: quantile(pairs.iter().map(|pair| pair.0).collect(), 0.5)?,
            spread_ns: quantile(pairs.iter().map(|pair| pair.1).collect(), 0.5)?,
            factor: MedianInterval::of(&ratios)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(packed: &[f64]) -> ClustersRecord {
        let round = |packed: &f64| FillRound {
            times: [(Side::Packed, *packed), (Side::Spread, 5.0)]
                .into_iter()
                .flat_map(|(side, step_ns)| {
                    [Job::Random, Job::Compute].map(|job| FillTime { job, side, step_ns })
                })
                .collect(),
            ..FillRound::default()
        };
        ClustersRecord { rounds: packed.iter().map(round).collect(), ..ClustersRecord::default() }
    }

    #[test]
    fn verdicts_need_rounds_that_agree() {
        let of = |packed: &[f64]| record(packed).figures()[0].verdict();
        assert_eq!(of(&[10.0; 8]), Verdict::PackingCosts);
        assert_eq!(of(&[4.0; 8]), Verdict::PackingGains);
        assert_eq!(of(&[4.0, 10.0, 4.5, 9.0, 5.1, 4.9, 6.0, 4.0]), Verdict::NoDifference);
        assert_eq!(of(&[10.0; 5]), Verdict::NoDifference, "too few");
    }

    #[test]
    fn the_control_is_never_the_reason_to_spread() {
        let worst = record(&[10.0; 8]).worst().unwrap();
        assert_eq!((worst.job, worst.factor.median), (Job::Random, 2.0));
        assert_eq!((record(&[5.0; 8]).worst(), ClustersRecord::default().figures()), (None, vec![]));
    }
}
