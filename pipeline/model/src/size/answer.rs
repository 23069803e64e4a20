//! Evidence of runs about the goal, apart from the model's predictions.

use super::{Capacity, CapacityGoal, CheckedPoint};
use serde::{Deserialize, Serialize};

/// Outcome of a run with regard to the goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The run kept the goal.
    Kept,
    /// The run broke it: a latency above the limit, a late schedule, lost records or unanswered orders.
    Broken,
    /// The run cannot show it: too few orders for a p99, or busier CPUs than the goal allows.
    Open,
}

/// The answer to the goal. `checked` and `broken` are measured; `predicted` is the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The most strategies with which a run kept the goal; none when no run shows that.
    pub checked: Option<u32>,
    /// The fewest strategies with which a run broke the goal.
    pub broken: Option<u32>,
    /// The most strategies that the model predicts to keep the goal, fewer than `broken`.
    pub predicted: u32,
    /// Range of `predicted`, for a host as slow and as fast as the checked points deviate from the corrected model;
    /// `None` with fewer than two points, which show no spread.
    pub predicted_range: Option<[u32; 2]>,
    /// True if `predicted` is above `checked`, so that no run supports it.
    pub is_extrapolated: bool,
}

impl Answer {
    /// The answer from the checked points, the model's capacity, and the capacities of a slower and a faster host. A
    /// number of strategies is kept if none of its runs broke the goal.
    pub fn of(
        points: &[CheckedPoint],
        goal: &CapacityGoal,
        capacity: &Capacity,
        range: Option<[Capacity; 2]>,
    ) -> Self {
        let with = |outcome: Outcome| {
            points
                .iter()
                .filter(move |point| point.outcome(goal) == outcome)
                .map(|point| point.load.strategies)
        };
        let broken = with(Outcome::Broken).min();
        let fewer = |strategies: &u32| broken.is_none_or(|broken| *strategies < broken);
        let checked = with(Outcome::Kept).filter(fewer).max();
        let below = broken.map_or(u32::MAX, |broken| broken.saturating_sub(1));
        let predicted = capacity.strategies.min(below);
        let predicted_range = range.map(|range| range.map(|of| of.strategies.min(below)));
        Self {
            checked,
            broken,
            predicted,
            predicted_range,
            is_extrapolated: predicted > checked.unwrap_or(0),
        }
    }
}

impl CheckedPoint {
    /// Returns the outcome of this run with regard to the goal.
    pub fn outcome(&self, goal: &CapacityGoal) -> Outcome {
        let run = &self.measured;
        let is_over = |ns: Option<u64>| ns.is_some_and(|ns| ns as f64 > goal.p99_ns);
        let figures = [run.stages.t2o.p99_ns, run.stages.t2o.p50_ns];
        if figures.into_iter().any(is_over)
            || run.has_missed_schedule()
            || run.lost > 0
            || run.answers < run.orders
            || run.balance.unsent() > 0
        {
            return Outcome::Broken;
        }
        let fits = self.predicted.is_some_and(|of| of.utilisation <= goal.utilisation);
        if run.stages.t2o.p99_ns.is_some() && fits { Outcome::Kept } else { Outcome::Open }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CapacityLimit, Cores, Load, Prediction};
    use super::*;
    use crate::{Mode, testing};
    use proptest::prelude::*;

    const GOAL: CapacityGoal = CapacityGoal { p99_ns: 500_000.0, utilisation: 0.6 };

    fn point(strategies: u32, ticks: u64, t2o_ns: u64) -> CheckedPoint {
        let load = Load { strategies, rate_per_s: 1.0, mode: Mode::Parked, cores: Cores::Shared { cpus: 2 } };
        let predicted = Prediction { mean_ns: 1.0, p50_ns: 1.0, p99_ns: 1.0, utilisation: 0.1 };
        CheckedPoint { load, predicted: Some(predicted), measured: testing::run(ticks, t2o_ns) }
    }

    fn capacity(strategies: u32) -> Capacity {
        Capacity { strategies, expected: None, limit: CapacityLimit::Numbers }
    }

    fn answer(points: &[CheckedPoint]) -> Answer {
        Answer::of(points, &GOAL, &capacity(1_000), None)
    }

    #[test]
    fn a_prediction_beyond_the_runs_is_extrapolated() {
        let checked = answer(&[point(10, 5_000, 20_000), point(40, 5_000, 20_000)]);
        assert_eq!(
            checked,
            Answer {
                checked: Some(40),
                broken: None,
                predicted: 1_000,
                predicted_range: None,
                is_extrapolated: true
            }
        );
        let within = Answer::of(&[point(40, 5_000, 20_000)], &GOAL, &capacity(30), None);
        assert!(!within.is_extrapolated && within.checked == Some(40));
    }

    #[test]
    fn a_run_without_a_p99_checks_nothing() {
        assert_eq!(answer(&[point(10, 300, 20_000)]).checked, None, "300 orders carry no p99");
        let slow = answer(&[point(10, 300, 900_000)]);
        assert_eq!((slow.broken, slow.predicted), (Some(10), 9), "the median alone is above the goal");
    }

    #[test]
    fn a_run_that_broke_the_goal_bounds_the_answer() {
        let found = answer(&[point(10, 5_000, 20_000), point(20, 5_000, 900_000), point(40, 5_000, 20_000)]);
        assert_eq!((found.checked, found.broken, found.predicted), (Some(10), Some(20), 19));
        let mut losing = point(10, 5_000, 20_000);
        losing.measured.lost = 1;
        assert_eq!(answer(&[losing]).broken, Some(10));
        let mut unanswered = point(10, 5_000, 20_000);
        unanswered.measured.answers -= 1;
        assert_eq!(answer(&[unanswered]).broken, Some(10));
        let mut late = point(10, 5_000, 20_000);
        late.measured.ticks_scheduled += 1;
        assert_eq!(answer(&[late]).broken, Some(10));
    }

    #[test]
    fn a_busier_cpu_checks_nothing() {
        let point = point(10, 5_000, 20_000);
        assert_eq!(point.outcome(&GOAL), Outcome::Kept);
        assert_eq!(point.outcome(&CapacityGoal { utilisation: 0.05, ..GOAL }), Outcome::Open);
    }

    #[test]
    fn a_number_is_kept_only_by_all_of_its_runs() {
        let twice = |second_ns| {
            answer(&[point(10, 5_000, 20_000), point(40, 5_000, 20_000), point(40, 5_000, second_ns)])
        };
        assert_eq!((twice(21_000).checked, twice(21_000).broken), (Some(40), None));
        assert_eq!((twice(900_000).checked, twice(900_000).broken), (Some(10), Some(40)));
    }

    #[test]
    fn the_range_never_passes_a_number_that_broke_the_goal() {
        let range = Some([capacity(30), capacity(300)]);
        let of = |points: &[CheckedPoint]| Answer::of(points, &GOAL, &capacity(100), range).predicted_range;
        assert_eq!(of(&[point(10, 5_000, 20_000)]), Some([30, 300]));
        assert_eq!(of(&[point(80, 5_000, 900_000)]), Some([30, 79]));
    }

    proptest! {
        #[test]
        fn checked_is_a_number_that_was_run_and_kept(
            runs in proptest::collection::vec((1_u32..200, 1_u64..3_000, 10_000_u64..900_000), 0..6),
            most in 0_u32..1_000,
        ) {
            let points: Vec<CheckedPoint> =
                runs.into_iter().map(|(strategies, ticks, ns)| point(strategies, ticks, ns)).collect();
            let answer = Answer::of(&points, &GOAL, &capacity(most), None);
            if let Some(checked) = answer.checked {
                prop_assert!(points.iter().any(|point| point.load.strategies == checked
                    && point.measured.stages.t2o.p99_ns.is_some_and(|ns| ns <= 500_000)));
            }
            prop_assert!(answer.checked.unwrap_or(0).max(answer.predicted) < answer.broken.unwrap_or(u32::MAX));
            prop_assert_eq!(answer.is_extrapolated, answer.predicted > answer.checked.unwrap_or(0));
        }
    }
}
