//! Cost of tracing itself, from rounds with tracing on and off.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TracingCost {
    /// Cost of one event in nanoseconds: the median over interleaved rounds with tracing on and off.
    pub event_ns: f64,
    /// The lower and upper quartile of the rounds' differences.
    pub event_ns_quartiles: (f64, f64),
    pub round_count: u32,
}

impl TracingCost {
    /// The cost of one event from pairs of consecutive rounds: nanoseconds per event with tracing on, and
    /// with it off. `None` without any pair.
    pub fn of_rounds(rounds: &[(f64, f64)]) -> Option<Self> {
        let mut differences: Vec<f64> =
            rounds.iter().map(|(on, off)| on - off).filter(|difference| difference.is_finite()).collect();
        differences.sort_by(f64::total_cmp);
        Some(Self {
            event_ns: quartile(&differences, 2)?,
            event_ns_quartiles: (quartile(&differences, 1)?, quartile(&differences, 3)?),
            round_count: u32::try_from(differences.len()).unwrap_or(u32::MAX),
        })
    }
}

/// A quartile of sorted values, with linear interpolation.
fn quartile(sorted: &[f64], quarters: usize) -> Option<f64> {
    let place = quarters * sorted.len().checked_sub(1)?;
    let below = sorted.get(place / 4)?;
    let above = sorted.get(place.div_ceil(4))?;
    Some(below + (above - below) * ((place % 4) as f64 / 4.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(rounds: &[(f64, f64)]) -> TracingCost {
        TracingCost::of_rounds(rounds).unwrap()
    }

    #[test]
    fn the_median_and_quartiles_are_of_the_differences() {
        let rounds: Vec<(f64, f64)> = (1..=9).map(|n| (1_000.0 + 10.0 * f64::from(n), 1_000.0)).collect();
        let cost = cost(&rounds);
        assert!((cost.event_ns - 50.0).abs() < 1e-9, "{cost:?}");
        assert!(
            (cost.event_ns_quartiles.0 - 30.0).abs() < 1e-9
                && (cost.event_ns_quartiles.1 - 70.0).abs() < 1e-9
        );
        assert_eq!(cost.round_count, 9);
    }

    #[test]
    fn neighbours_are_joined_by_a_straight_line() {
        let cost = cost(&[(4.0, 0.0), (1.0, 0.0), (2.0, 0.0), (3.0, 0.0)]);
        assert_eq!((cost.event_ns, cost.event_ns_quartiles), (2.5, (1.75, 3.25)));
    }

    #[test]
    fn nothing_measured_is_not_a_cost() {
        assert_eq!(TracingCost::of_rounds(&[]), None);
        assert_eq!(TracingCost::of_rounds(&[(f64::NAN, 1.0), (f64::INFINITY, 1.0)]), None);
    }
}
