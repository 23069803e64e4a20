//! Measuring a counter's frequency against CLOCK_MONOTONIC_RAW, for hosts where nobody names it.

use super::{Counter, MonotonicRaw};
use std::{thread, time::Duration};

/// Windows whose median is taken; each is [`WINDOW`] long, and they start [`STEP`] apart.
const WINDOWS: usize = 5;
/// Length of one window.
const WINDOW: Duration = Duration::from_millis(200);
/// Between the starts of two windows.
const STEP: Duration = Duration::from_millis(20);
/// Readings per point, of which the one with the narrowest bracket is kept.
const BRACKETS: u32 = 64;

/// The two clocks read at one moment, as nearly as a bracket can tell.
#[derive(Debug, Clone, Copy)]
struct Point {
    ticks: u64,
    raw_ns: u64,
}

/// Ticks in a second: the median over several windows of at least 200 ms, whose ends are the narrowest of many
/// brackets (counter, clock, counter). `None` when the counter stood still.
///
/// Where the kernel keeps its time by this very counter, the clock is the counter times the kernel's calibration,
/// and so this gives that calibration back, off by the width of a bracket: tens of nanoseconds in 200 ms.
pub fn measure_hz(counter: &impl Counter) -> Option<u64> {
    let mut starts = Vec::with_capacity(WINDOWS);
    for _ in 0..WINDOWS {
        starts.push(point(counter));
        thread::sleep(STEP);
    }
    thread::sleep(WINDOW.saturating_sub(STEP * 5));
    let mut rates = Vec::with_capacity(WINDOWS);
    for start in starts {
        rates.extend(rate(start, point(counter)));
        thread::sleep(STEP);
    }
    rates.sort_unstable();
    rates.get(rates.len() / 2).copied()
}

fn point(counter: &impl Counter) -> Point {
    let mut best = (u64::MAX, Point { ticks: 0, raw_ns: 0 });
    for _ in 0..BRACKETS {
        let before = counter.now();
        let raw_ns = MonotonicRaw.now();
        let width = counter.now().wrapping_sub(before);
        if width < best.0 {
            best = (width, Point { ticks: before.wrapping_add(width / 2), raw_ns });
        }
    }
    best.1
}

fn rate(start: Point, end: Point) -> Option<u64> {
    let ticks = u128::from(end.ticks.checked_sub(start.ticks)?);
    let ns = u128::from(end.raw_ns.checked_sub(start.raw_ns)?);
    let hz = (ticks * 1_000_000_000 + ns / 2).checked_div(ns)?;
    u64::try_from(hz).ok().filter(|hz| *hz > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_in_nanoseconds_has_a_gigahertz() {
        let hz = measure_hz(&MonotonicRaw).unwrap();
        assert!(hz.abs_diff(1_000_000_000) < 1_000_000, "{hz}");
    }

    #[test]
    fn rates_of_odd_points() {
        let at = |ticks, raw_ns| Point { ticks, raw_ns };
        assert_eq!(rate(at(0, 0), at(520, 200)), Some(2_600_000_000));
        assert_eq!(rate(at(5, 0), at(4, 200)), None, "backwards");
        assert_eq!(rate(at(0, 7), at(4, 7)), None, "no time");
        assert_eq!(rate(at(3, 0), at(3, 200)), None, "stands still");
    }
}
