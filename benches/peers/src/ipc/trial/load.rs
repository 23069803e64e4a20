//! Schedule of the quotes that md publishes.

use anyhow::ensure;
use lowlat_pipeline::PipelineParameters;

/// Maximum number of strategies of a trial: one inbox has two streams for each of them.
const STRATEGIES_MAX: u32 = 500;
/// Maximum number of quotes of a trial: the model's journals hold a whole run.
const TICKS_MAX: f64 = 2e6;

/// The schedule: quotes at even intervals, over the instruments in turn, one instrument per strategy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    pub strategies: u32,
    /// Number of quotes in the schedule.
    pub ticks: u64,
    interval_ns: f64,
}

impl Load {
    /// The schedule that the parameters ask for.
    pub fn of(parameters: &PipelineParameters) -> anyhow::Result<Self> {
        let (strategies, rate) = (parameters.strategies, parameters.rate_per_s);
        ensure!(
            (1..=STRATEGIES_MAX).contains(&strategies),
            "{strategies} strategies; expected 1 to {STRATEGIES_MAX}"
        );
        let ticks = (rate * parameters.duration_s).floor();
        ensure!(
            rate.is_finite() && rate > 0.0 && (1.0..=TICKS_MAX).contains(&ticks),
            "{rate} quotes per second over {} s; expected 1 to {TICKS_MAX} quotes in all: change the rate or the length",
            parameters.duration_s
        );
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to TICKS_MAX")]
        let ticks = ticks as u64;
        Ok(Self { strategies, ticks, interval_ns: 1e9 / rate })
    }

    /// The instrument of a quote: that of the strategy with the same number.
    pub fn instrument(&self, tick: u64) -> u32 {
        u32::try_from(tick % u64::from(self.strategies)).unwrap_or(0)
    }

    /// Returns the time at which a quote is due, in ns after the schedule's start.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a trial lasts minutes at most"
    )]
    pub fn due_ns(&self, tick: u64) -> u64 {
        (tick as f64 * self.interval_ns) as u64
    }

    /// Returns the length of the schedule, ns.
    pub fn length_ns(&self) -> u64 {
        self.due_ns(self.ticks)
    }

    /// Largest number of quotes of one instrument.
    pub fn ticks_of_one(&self) -> u64 {
        self.ticks.div_ceil(u64::from(self.strategies))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_pipeline::Mode;

    fn parameters(strategies: u32, rate_per_s: f64, duration_s: f64) -> PipelineParameters {
        PipelineParameters {
            strategies,
            rate_per_s,
            mode: Mode::Parked,
            duration_s,
            pins: std::collections::BTreeMap::new(),
            host_core: None,
            may_use_huge_pages: false,
            has_md_threads: false,
            strategy_cost_ns: 0,
        }
    }

    #[test]
    fn quotes_go_over_the_instruments_in_turn() {
        let load = Load::of(&parameters(3, 10.0, 0.75)).unwrap();
        assert_eq!((load.ticks, load.ticks_of_one(), load.length_ns()), (7, 3, 700_000_000));
        assert_eq!((0..4).map(|tick| load.instrument(tick)).collect::<Vec<_>>(), [0, 1, 2, 0]);
        assert_eq!(load.due_ns(3), 300_000_000);
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for (strategies, rate, duration) in [
            (0, 80.0, 1.0),
            (501, 80.0, 1.0),
            (8, 0.0, 1.0),
            (8, f64::NAN, 1.0),
            (8, 1e9, 9.0),
            (8, 1.0, 0.5),
        ] {
            assert!(
                Load::of(&parameters(strategies, rate, duration)).is_err(),
                "{strategies} {rate} {duration}"
            );
        }
    }
}
