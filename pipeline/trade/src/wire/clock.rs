//! Conversion of the kernel's stamps to the pipeline's clock.
//!
//! Both clocks are slewed alike, so their difference is constant until somebody sets the time of day. It is measured
//! several times, and the measurement that took least time is the closest.

use lowlat_node::clock::{now_ns, read_ns};
use rustix::time::ClockId;

/// Number of measurements at the start.
const MEASUREMENTS: u32 = 32;
/// A later difference that is this far outside both measurements' bounds is a step of the clock.
const STEP_NS_MIN: u64 = 1_000;

/// Difference between CLOCK_REALTIME and the pipeline's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WireClock {
    difference: Difference,
    /// Steps of the clock so far.
    pub(crate) steps: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Difference {
    ns: i64,
    /// Time that its measurement took.
    width_ns: u64,
}

impl Difference {
    fn measure() -> Self {
        let before = now_ns();
        let realtime = read_ns(ClockId::Realtime).cast_signed();
        let after = now_ns();
        let width_ns = after.saturating_sub(before);
        Self { ns: realtime.saturating_sub_unsigned(before + width_ns / 2), width_ns }
    }
}

impl WireClock {
    /// Measures the difference.
    pub fn new() -> Self {
        let mut difference = Difference::measure();
        for _ in 1..MEASUREMENTS {
            let next = Difference::measure();
            if next.width_ns < difference.width_ns {
                difference = next;
            }
        }
        Self { difference, steps: 0 }
    }

    /// Checks whether the clock was set since the last check, and measures again if so. Not for the hot path.
    pub fn check(&mut self) {
        let (old, new) = (self.difference, Difference::measure());
        if old.ns.abs_diff(new.ns) > old.width_ns + new.width_ns + STEP_NS_MIN {
            *self = Self { steps: self.steps + 1, ..Self::new() };
        }
    }

    /// The moment of a stamp in the pipeline's clock.
    #[inline]
    pub fn to_pipeline_ns(self, realtime_ns: u64) -> u64 {
        realtime_ns.saturating_add_signed(self.difference.ns.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_lies_between_the_readings_around_it() {
        let mut clock = WireClock::new();
        let before = now_ns();
        let stamp = read_ns(ClockId::Realtime);
        let after = now_ns();
        let converted = clock.to_pipeline_ns(stamp);
        let slack = clock.difference.width_ns;
        assert!(converted + slack >= before && converted <= after + slack, "{before} {converted} {after}");
        clock.check();
        assert_eq!(clock.steps, 0);
        clock.difference.ns += 60_000_000_000;
        clock.check();
        assert_eq!(clock.steps, 1);
    }
}
