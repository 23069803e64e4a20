//! Converts the trace's clock to the ticks of the samplers' counter.

use serde::{Deserialize, Serialize};

/// Trace clocks (`trace_clock`) that can be aligned with a sampler's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceClock {
    /// The time stamp counter of x86, in its own ticks, which a sampler there reads.
    X86Tsc,
    /// CLOCK_MONOTONIC_RAW, in nanoseconds: the kernel derives it from the architected counter with a
    /// constant ratio.
    MonoRaw,
}

impl TraceClock {
    /// Returns its name in `trace_clock`.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86Tsc => "x86-tsc",
            Self::MonoRaw => "mono_raw",
        }
    }
}

/// The trace's clock and the sampler's counter at the same moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockPair {
    /// Reading of the trace's clock.
    pub stamp: u64,
    /// Reading of the sampler's counter.
    pub ticks: u64,
    /// Maximum error of `ticks` in either direction.
    pub ticks_error: u64,
}

impl ClockPair {
    /// Combines a counter reading before, the trace's clock, and a counter reading after; `None` if the
    /// counter went backwards.
    pub fn between(ticks_before: u64, stamp: u64, ticks_after: u64) -> Option<Self> {
        let span = ticks_after.checked_sub(ticks_before)?;
        Some(Self { stamp, ticks: ticks_before + span / 2, ticks_error: span.div_ceil(2) })
    }

    /// The pair with the smallest error; an interruption between the three readings makes it large.
    pub fn best(pairs: impl IntoIterator<Item = Self>) -> Option<Self> {
        pairs.into_iter().min_by_key(|pair| pair.ticks_error)
    }
}

/// Converts stamps of the trace's clock to ticks of the sampler's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickMap {
    line: Option<Line>,
    ns_to_ticks: Ratio,
}

/// Through `origin` with this slope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line {
    origin: ClockPair,
    ratio: Ratio,
}

/// A ratio with [`RATIO_SHIFT`] fractional bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ratio(i128);

/// Over a day, at any frequency of a counter, the error is below one tick.
const RATIO_SHIFT: u32 = 48;
const NS_PER_S: u64 = 1_000_000_000;

impl Ratio {
    /// `None` if the denominator is zero.
    fn of(numerator: u64, denominator: u64) -> Option<Self> {
        let (numerator, denominator) = (i128::from(numerator) << RATIO_SHIFT, i128::from(denominator));
        (numerator + denominator / 2).checked_div(denominator).map(Self)
    }

    /// Multiplies the value by this ratio, rounded to the nearest.
    fn apply(self, value: i128) -> i128 {
        (value.saturating_mul(self.0).saturating_add(1 << (RATIO_SHIFT - 1))) >> RATIO_SHIFT
    }
}

impl TickMap {
    /// For a trace clock that is the sampler's counter (x86-tsc with the TSC; mono_raw if the sampler itself
    /// reads CLOCK_MONOTONIC_RAW), with this frequency.
    pub fn identity(counter_hz: u64) -> Self {
        Self { line: None, ns_to_ticks: ticks_per_ns(counter_hz) }
    }

    /// For a trace clock in nanoseconds (mono_raw) and a counter with this frequency, with `origin` read from
    /// both. The error grows with the distance from `origin` if the frequency is inexact, so use
    /// [`TickMap::through`] once there is a second pair.
    pub fn at_rate(origin: ClockPair, counter_hz: u64) -> Self {
        let ratio = ticks_per_ns(counter_hz);
        Self { line: Some(Line { origin, ratio }), ns_to_ticks: ratio }
    }

    /// For a trace clock in nanoseconds, with offset and ratio from two pairs of readings; `None` unless they
    /// are in ascending order.
    pub fn through(first: ClockPair, last: ClockPair) -> Option<Self> {
        let ticks = last.ticks.checked_sub(first.ticks).filter(|ticks| *ticks > 0)?;
        let ratio = Ratio::of(ticks, last.stamp.checked_sub(first.stamp)?)?;
        Some(Self { line: Some(Line { origin: first, ratio }), ns_to_ticks: ratio })
    }

    /// Converts a stamp of the trace to ticks of the counter. Stamps far before the counter's zero become 0,
    /// far beyond its end `u64::MAX`.
    pub fn ticks(&self, stamp: u64) -> u64 {
        let Some(line) = &self.line else { return stamp };
        let offset = line.ratio.apply(i128::from(stamp) - i128::from(line.origin.stamp));
        clamp(i128::from(line.origin.ticks).saturating_add(offset))
    }

    /// Converts a length in nanoseconds to ticks of the counter, rounded to the nearest.
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
