//! Cost of false sharing: the same additions by several threads, with their values laid out in different ways.

use crate::quantile;
use lowlat_host::CpuId;
use serde::{Deserialize, Serialize};

/// Layout of the threads' values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// All threads add to one value: true sharing.
    OneValue,
    /// Each thread has its own value, next to the others in one cache line: false sharing.
    Neighbours,
    /// Each value has a private cache line.
    Apart64,
    /// Each value has two private cache lines, because processors fetch pairs.
    Apart128,
    /// All threads add to one counter with a part for each CPU.
    PerCpu,
}

impl Layout {
    /// Every layout, in the order of a report.
    pub const ALL: [Self; 5] =
        [Self::OneValue, Self::Neighbours, Self::Apart64, Self::Apart128, Self::PerCpu];

    /// Returns the layout in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::OneValue => "one value",
            Self::Neighbours => "own values, one line",
            Self::Apart64 => "own values, 64 bytes apart",
            Self::Apart128 => "own values, 128 bytes apart",
            Self::PerCpu => "one per-CPU counter",
        }
    }
}

/// Rounds of a demonstration of false sharing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SharingRecord {
    /// CPUs of the threads, one each.
    pub cpus: Vec<CpuId>,
    /// True if the per-CPU counter used restartable sequences.
    pub is_restartable: bool,
    /// Rounds, in the order of measurement; each has every layout once.
    pub rounds: Vec<SharingRound>,
    /// Reason why the run ended before all rounds were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<String>,
}

/// One layout in one round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SharingTime {
    pub layout: Layout,
    /// Time of one addition of one thread, in nanoseconds.
    pub addition_ns: f64,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SharingRound {
    /// Every layout, in the order of measurement.
    pub times: Vec<SharingTime>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SharingFigures {
    pub layout: Layout,
    /// Median over the rounds, in nanoseconds.
    pub addition_ns: f64,
    /// Median over the rounds of the factor against values 128 bytes apart.
    pub factor: f64,
    /// Lower and upper quartile of that factor.
    pub factor_quartiles: (f64, f64),
    /// Speed relative to that of one value, median over the rounds.
    pub gain: f64,
}

impl SharingRecord {
    /// Figures of each layout; empty without rounds.
    pub fn figures(&self) -> Vec<SharingFigures> {
        Layout::ALL.into_iter().filter_map(|layout| self.of(layout)).collect()
    }

    fn of(&self, layout: Layout) -> Option<SharingFigures> {
        let time = |round: &SharingRound, layout| {
            let mut times = round.times.iter();
            times.find(|time| time.layout == layout).map(|time| time.addition_ns).filter(|ns| *ns > 0.0)
        };
        let rounds = || self.rounds.iter();
        let ratios = |to: Layout, is_gain: bool| -> Vec<f64> {
            let pairs = rounds().filter_map(|round| Some((time(round, layout)?, time(round, to)?)));
            pairs.map(|(own, other)| if is_gain { other / own } else { own / other }).collect()
        };
        let factors = ratios(Layout::Apart128, false);
        Some(SharingFigures {
            layout,
            addition_ns: quantile(rounds().filter_map(|round| time(round, layout)).collect(), 0.5)?,
            factor: quantile(factors.clone(), 0.5)?,
            factor_quartiles: (quantile(factors.clone(), 0.25)?, quantile(factors, 0.75)?),
            gain: quantile(ratios(Layout::OneValue, true), 0.5)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_medians_over_rounds_and_not_of_medians() {
        // The host is twice as slow in the second round, and one time is far off in the third.
        let round = |slow: f64, shared: f64| SharingRound {
            times: Layout::ALL
                .into_iter()
                .map(|layout| SharingTime {
                    layout,
                    addition_ns: slow * if layout == Layout::OneValue { shared } else { 5.0 },
                })
                .collect(),
        };
        let record = SharingRecord {
            rounds: vec![round(1.0, 15.0), round(2.0, 15.0), round(1.0, 500.0)],
            ..SharingRecord::default()
        };
        let figures = record.figures();
        assert_eq!(figures.len(), 5);
        assert!((figures[0].factor - 3.0).abs() < 1e-9 && (figures[3].factor - 1.0).abs() < 1e-9);
        assert!((figures[4].gain - 3.0).abs() < 1e-9, "{figures:?}");
        assert_eq!(SharingRecord::default().figures(), []);
    }
}
