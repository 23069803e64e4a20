//! Aligns the trace's clock with the samplers' counter.

use crate::clock::{ArchCounter, CounterKind, MonotonicCounter, MonotonicRaw};
use lowlat_trace::{ClockPair, TickMap, TraceClock};

/// Pairs of readings, of which the best is used.
const READINGS: u32 = 64;

/// Converts timestamps of the trace to ticks, more accurately the longer it runs.
#[derive(Debug, Clone, Copy)]
pub struct StampClock {
    kind: CounterKind,
    hz: u64,
    first: Option<ClockPair>,
}

impl StampClock {
    /// For a counter of this frequency.
    pub fn new(kind: CounterKind, hz: u64) -> Self {
        // If the trace uses the counter itself as its clock, no alignment is needed.
        let first = (kind == CounterKind::Cntvct).then(pair).flatten();
        Self { kind, hz, first }
    }

    /// The initial map, at the counter's given frequency.
    pub fn map(&self) -> TickMap {
        self.first.map_or_else(|| TickMap::identity(self.hz), |first| TickMap::at_rate(first, self.hz))
    }

    /// The map from the time since the first pair; `None` if it cannot improve.
    pub fn better_map(&self) -> Option<TickMap> {
        TickMap::through(self.first?, pair()?)
    }

    pub fn now(&self) -> u64 {
        match self.kind {
            CounterKind::MonotonicRaw => MonotonicRaw.now(),
            CounterKind::Tsc | CounterKind::Cntvct => ArchCounter.now(),
        }
    }
}

/// The trace's clock for a counter.
pub fn trace_clock_for(kind: CounterKind) -> TraceClock {
    match kind {
        CounterKind::Tsc => TraceClock::X86Tsc,
        CounterKind::Cntvct | CounterKind::MonotonicRaw => TraceClock::MonoRaw,
    }
}

fn pair() -> Option<ClockPair> {
    ClockPair::best((0..READINGS).filter_map(|_| {
        let before = ArchCounter.now();
        let stamp = MonotonicRaw.now();
        ClockPair::between(before, stamp, ArchCounter.now())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_with_the_counters_clock_needs_no_alignment() {
        let clock = StampClock::new(CounterKind::Tsc, 2_000_000_000);
        assert_eq!((trace_clock_for(CounterKind::Tsc), clock.map().ticks(77)), (TraceClock::X86Tsc, 77));
        assert!(clock.better_map().is_none());
        let clock = StampClock::new(CounterKind::MonotonicRaw, 1_000_000_000);
        assert_eq!(
            (trace_clock_for(CounterKind::MonotonicRaw), clock.map().ticks(77)),
            (TraceClock::MonoRaw, 77)
        );
    }
}
