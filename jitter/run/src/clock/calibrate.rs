//! Measures a counter's frequency against CLOCK_MONOTONIC_RAW, for hosts that do not report it.

use super::{MonotonicCounter, MonotonicRaw};
use std::{thread, time::Duration};

/// Number of windows; each is [`WINDOW`] long, and they start [`STEP`] apart. The median is used.
const WINDOWS: usize = 5;
const WINDOW: Duration = Duration::from_millis(200);
/// Time between the starts of two windows.
const STEP: Duration = Duration::from_millis(20);
/// Readings per point; the one with the narrowest bracket is used.
const BRACKETS: u32 = 64;

/// Both clocks at the same moment, within the width of a bracket.
#[derive(Debug, Clone, Copy)]
struct Point {
    ticks: u64,
    raw_ns: u64,
}

/// Ticks per second: the median over several windows of at least 200 ms, whose ends are the narrowest of many
/// brackets (counter, clock, counter). `None` if the counter did not advance.
///
/// If the kernel uses this very counter for its time, the clock equals the counter times the kernel's
/// calibration, so this returns that calibration, with an error of a bracket's width: tens of nanoseconds in
/// 200 ms.
pub fn measure_hz(counter: &impl MonotonicCounter) -> Option<u64> {
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

fn point(counter: &impl MonotonicCounter) -> Point {
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
        assert_eq!(rate(at(3, 0), at(3, 200)), None, "does not advance");
    }
}
