//! From the trace's clock to the ticks of the counter that the samplers read.

use serde::{Deserialize, Serialize};

/// The clocks of a trace (`trace_clock`) that can be laid beside a sampler's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceClock {
    /// The time stamp counter of x86, in its own ticks: what a sampler there reads.
    X86Tsc,
    /// CLOCK_MONOTONIC_RAW, in nanoseconds: the kernel makes it of the architected counter by a constant ratio.
    MonoRaw,
}

impl TraceClock {
    /// Its name in `trace_clock`.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86Tsc => "x86-tsc",
            Self::MonoRaw => "mono_raw",
        }
    }
}

/// The trace's clock and the sampler's counter at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockPair {
    /// The trace's clock.
    pub stamp: u64,
    /// The sampler's counter.
    pub ticks: u64,
    /// How far `ticks` may be off to either side.
    pub ticks_error: u64,
}

impl ClockPair {
    /// Of the counter before, the trace's clock, and the counter after; `None` when the counter went back.
    pub fn between(ticks_before: u64, stamp: u64, ticks_after: u64) -> Option<Self> {
        let span = ticks_after.checked_sub(ticks_before)?;
        Some(Self { stamp, ticks: ticks_before + span / 2, ticks_error: span.div_ceil(2) })
    }

    /// The one with the smallest error; an interruption between the three readings makes it large.
    pub fn best(pairs: impl IntoIterator<Item = Self>) -> Option<Self> {
        pairs.into_iter().min_by_key(|pair| pair.ticks_error)
    }
}

/// Turns stamps of the trace's clock into ticks of the sampler's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickMap {
    line: Option<Line>,
    ns_to_ticks: Ratio,
}

/// Through `origin` at this slope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    origin: ClockPair,
    ratio: Ratio,
}

/// A ratio with [`RATIO_SHIFT`] bits behind the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ratio(i128);

/// A day at any frequency of a counter errs by less than a tick.
const RATIO_SHIFT: u32 = 48;
const NS_PER_S: u64 = 1_000_000_000;

impl Ratio {
    /// `None` when the denominator is zero.
    fn of(numerator: u64, denominator: u64) -> Option<Self> {
        let (numerator, denominator) = (i128::from(numerator) << RATIO_SHIFT, i128::from(denominator));
        (numerator + denominator / 2).checked_div(denominator).map(Self)
    }

    /// The value times this ratio, rounded to the nearest.
    fn apply(self, value: i128) -> i128 {
        (value.saturating_mul(self.0).saturating_add(1 << (RATIO_SHIFT - 1))) >> RATIO_SHIFT
    }
}

impl TickMap {
    /// The trace's clock is the sampler's counter (x86-tsc with the TSC; mono_raw where the sampler itself reads
    /// CLOCK_MONOTONIC_RAW), which ticks so often in a second.
    pub fn identity(counter_hz: u64) -> Self {
        Self { line: None, ns_to_ticks: ticks_per_ns(counter_hz) }
    }

    /// The trace's clock counts nanoseconds (mono_raw), the counter ticks so often in a second, and `origin` was read
    /// of both. The error grows with the distance from `origin` when the frequency is not exact: [`TickMap::through`]
    /// as soon as there is a second pair.
    pub fn at_rate(origin: ClockPair, counter_hz: u64) -> Self {
        let ratio = ticks_per_ns(counter_hz);
        Self { line: Some(Line { origin, ratio }), ns_to_ticks: ratio }
    }

    /// The trace's clock counts nanoseconds, and offset and ratio come from two pairs of readings; `None` when they
    /// are not in rising order.
    pub fn through(first: ClockPair, last: ClockPair) -> Option<Self> {
        let ticks = last.ticks.checked_sub(first.ticks).filter(|ticks| *ticks > 0)?;
        let ratio = Ratio::of(ticks, last.stamp.checked_sub(first.stamp)?)?;
        Some(Self { line: Some(Line { origin: first, ratio }), ns_to_ticks: ratio })
    }

    /// A stamp of the trace in ticks of the counter. Stamps far before the counter's zero give 0, far beyond its end
    /// `u64::MAX`.
    pub fn ticks(&self, stamp: u64) -> u64 {
        let Some(line) = &self.line else { return stamp };
        let offset = line.ratio.apply(i128::from(stamp) - i128::from(line.origin.stamp));
        clamp(i128::from(line.origin.ticks).saturating_add(offset))
    }

    /// A length in nanoseconds as ticks of the counter, rounded to the nearest.
    pub fn ticks_of_ns(&self, ns: u64) -> u64 {
        clamp(self.ns_to_ticks.apply(i128::from(ns)))
    }
}

fn ticks_per_ns(counter_hz: u64) -> Ratio {
    Ratio::of(counter_hz, NS_PER_S).unwrap_or(Ratio(0))
}

fn clamp(ticks: i128) -> u64 {
    u64::try_from(ticks.max(0)).unwrap_or(u64::MAX)
}
