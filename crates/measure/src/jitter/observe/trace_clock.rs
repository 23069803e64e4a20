//! The trace's clock laid beside the samplers' counter.

use crate::clock::{ArchCounter, Counter, CounterKind, MonotonicRaw};
use lowlat_trace::{ClockPair, TickMap, TraceClock};

/// Pairs of readings of which the best is taken.
const READINGS: u32 = 64;

/// Turns the trace's stamps into ticks, better the longer it is kept.
#[derive(Debug, Clone, Copy)]
pub struct StampClock {
    kind: CounterKind,
    hz: u64,
    first: Option<ClockPair>,
}

impl StampClock {
    /// For a counter that ticks so often in a second.
    pub fn new(kind: CounterKind, hz: u64) -> Self {
        // Where the trace has the counter itself as its clock, nothing is to be laid beside it.
        let first = (kind == CounterKind::Cntvct).then(pair).flatten();
        Self { kind, hz, first }
    }

    /// The map at first.
    pub fn map(&self) -> TickMap {
        self.first.map_or_else(|| TickMap::identity(self.hz), |first| TickMap::at_rate(first, self.hz))
    }

    /// The map by what has passed since the first pair; `None` when it can't get better.
    pub fn better_map(&self) -> Option<TickMap> {
        TickMap::through(self.first?, pair()?)
    }

    /// The samplers' counter now.
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
    fn the_counter_is_its_own_clock_where_the_trace_has_it() {
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
