//! The most strategies that stay within a goal.

use super::{Costs, Fit, Load, Prediction, predict};
use serde::{Deserialize, Serialize};

/// Most strategies that get numbers: a run has 1,024 subscribers, including the platform's.
pub const STRATEGIES_MAX: u32 = 1_000;

/// Limits that a run must keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CapacityGoal {
    /// The 99th percentile of tick to order, at most.
    pub p99_ns: f64,
    /// The share of time that a CPU may be busy, at most.
    pub utilisation: f64,
}

/// Limit that rules out more strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CapacityLimit {
    P99,
    /// Share of time that a CPU may be busy.
    Utilisation,
    /// The supply of numbers for strategies.
    Numbers,
}

/// Number of strategies that a host carries by the model; what runs support is in [`Answer`](super::Answer).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The most; 0 when not even one stays within the goal.
    pub strategies: u32,
    /// Prediction for that many; `None` with 0.
    pub expected: Option<Prediction>,
    /// Limit that one more strategy would break.
    pub limit: CapacityLimit,
}

/// Returns the largest number of strategies that meets the goal, each with `rate_each_per_s` quotes per second. `fit`
/// corrects the prediction by the measurements. Of `load`, only mode and CPUs are used.
pub fn capacity(
    costs: &Costs,
    fit: &Fit,
    load: &Load,
    rate_each_per_s: f64,
    goal: &CapacityGoal,
) -> Capacity {
    let at = |strategies: u32| {
        let load = Load { strategies, rate_per_s: rate_each_per_s * f64::from(strategies), ..*load };
        predict(costs, &load).map(|prediction| fit.correct(&prediction))
    };
    let mut found = Capacity { strategies: 0, expected: None, limit: CapacityLimit::Numbers };
    for strategies in 1..=STRATEGIES_MAX {
        let prediction = at(strategies);
        let limit = match &prediction {
            Some(of) if of.utilisation <= goal.utilisation && of.p99_ns <= goal.p99_ns => {
                found = Capacity { strategies, expected: prediction, ..found };
                continue;
            }
            Some(of) if of.utilisation <= goal.utilisation => CapacityLimit::P99,
            _ => CapacityLimit::Utilisation,
        };
        return Capacity { limit, ..found };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::Cores;
    use super::*;
    use crate::Mode;

    const COSTS: Costs = Costs {
        transfer_ns: 0.0,
        wake_ns: 10_000.0,
        tail_ns: 20_000.0,
        is_tail_from_max: false,
        decide_ns: 0.0,
        md_cpu_ns: 5_000.0,
        strategy_cpu_ns: 10_000.0,
        td_cpu_ns: 10_000.0,
    };
    const LOAD: Load =
        Load { strategies: 0, rate_per_s: 0.0, mode: Mode::Parked, cores: Cores::Own { strategy_cpus: 2 } };

    #[test]
    fn what_limits_is_named() {
        let of = |p99_ns, utilisation, rate| {
            capacity(&COSTS, &Fit::default(), &LOAD, rate, &CapacityGoal { p99_ns, utilisation })
        };
        let busy = of(1e9, 0.6, 1_000.0);
        assert_eq!(
            (busy.strategies, busy.limit),
            (60, CapacityLimit::Utilisation),
            "td: 60,000 orders of 10 us"
        );
        let slow = of(60_000.0, 1.0, 1_000.0);
        assert!(slow.limit == CapacityLimit::P99 && slow.strategies > 0 && slow.strategies < 60, "{slow:?}");
        assert!(slow.expected.is_some_and(|of| of.p99_ns <= 60_000.0));
        assert_eq!(of(1_000.0, 1.0, 1.0).strategies, 0);
        assert_eq!(
            (of(1e9, 1.0, 0.01).strategies, of(1e9, 1.0, 0.01).limit),
            (STRATEGIES_MAX, CapacityLimit::Numbers)
        );
    }

    #[test]
    fn a_host_that_is_slower_than_predicted_carries_less() {
        let goal = CapacityGoal { p99_ns: 80_000.0, utilisation: 0.9 };
        let fit = Fit { p99_factor: 1.5, ..Fit::default() };
        let of = |fit| capacity(&COSTS, fit, &LOAD, 1_000.0, &goal).strategies;
        assert!(of(&fit) < of(&Fit::default()));
    }
}
