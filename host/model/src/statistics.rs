//! Statistics of rare events and of rounds: exact intervals for a rate and for a median, and the percentiles that a
//! count supports.

use serde::{Deserialize, Serialize};

/// The confidence level of every interval here.
pub const CONFIDENCE: f64 = 0.95;

/// The tail probability on each side of a two-sided interval.
pub const TAIL: f64 = (1.0 - CONFIDENCE) / 2.0;

/// The standard normal quantile of `1 - TAIL`.
pub const NORMAL_QUANTILE: f64 = 1.959_963_984_540_054;

/// Counts above this use the Wilson-Hilferty cube-root form of the same interval; a test compares the two.
const EXACT_COUNT_MAX: u64 = 1_000_000;

/// Halvings of the bracket around a limit; a double has 53 bits.
const BISECTIONS: u32 = 80;

/// A rate of events with its two-sided 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RateInterval {
    pub per_s: f64,
    /// Lower limit. Zero if there was no event.
    pub per_s_low: f64,
    /// Upper limit. Above zero even if there was no event: none in ten seconds does not mean never.
    pub per_s_high: f64,
}

impl RateInterval {
    /// The rate of `count` events in `exposure_s` seconds (core-seconds, if summed over cores).
    ///
    /// The limits are exact for a Poisson process (Garwood 1936). The lower is the rate at which this many or
    /// more events have a probability of 2.5 %, the upper the rate at which this many or fewer have it.
    /// Events in bursts are not a Poisson process; for them the interval is too narrow.
    ///
    /// `None` if the exposure is not above zero.
    pub fn of(count: u64, exposure_s: f64) -> Option<Self> {
        if !exposure_s.is_finite() || exposure_s <= 0.0 {
            return None;
        }
        let (low, high) = poisson_mean_interval(count);
        Some(Self {
            per_s: count as f64 / exposure_s,
            per_s_low: low / exposure_s,
            per_s_high: high / exposure_s,
        })
    }
}

/// The exact two-sided 95 % interval of a Poisson mean after `count` events (Garwood 1936).
pub fn poisson_mean_interval(count: u64) -> (f64, f64) {
    let low = if count == 0 { 0.0 } else { gamma_quantile(count, -1.0) };
    (low, gamma_quantile(count.saturating_add(1), 1.0))
}

/// The quantile of a gamma distribution with this integer shape and scale 1 that leaves [`TAIL`] on the side
/// of `sign`. A gamma variable of shape `n` below `x` and a Poisson variable of mean `x` reaching `n` are the
/// same event.
fn gamma_quantile(shape: u64, sign: f64) -> f64 {
    let near = wilson_hilferty(shape, sign);
    if shape > EXACT_COUNT_MAX {
        return near;
    }
    let wanted = if sign < 0.0 { 1.0 - TAIL } else { TAIL };
    // `poisson_below` decreases with the mean from 1 to 0, so the bracket contains the limit for every shape
    // >= 1.
    let bracket = (0.0, near.max(1.0) * 4.0 + 4.0);
    let (low, high) = bisected(bracket, BISECTIONS, |middle| poisson_below(shape, middle) > wanted);
    f64::midpoint(low, high)
}

/// Halves a bracket around a limit so many times; `is_below` tells whether a value is below the limit.
pub fn bisected(
    (mut low, mut high): (f64, f64),
    halvings: u32,
    is_below: impl Fn(f64) -> bool,
) -> (f64, f64) {
    for _ in 0..halvings {
        let middle = f64::midpoint(low, high);
        if is_below(middle) { low = middle } else { high = middle }
    }
    (low, high)
}

/// Wilson and Hilferty (1931): the cube root of a gamma variable is approximately normal.
fn wilson_hilferty(shape: u64, sign: f64) -> f64 {
    let n = shape as f64;
    let root = 1.0 - 1.0 / (9.0 * n) + sign * NORMAL_QUANTILE / (3.0 * n.sqrt());
    n * root.max(0.0).powi(3)
}

/// The probability that a Poisson variable of this mean is below `n`, for `n` of at least 1.
///
/// Sums the tail without the mode, where terms only decrease, and stops when they become negligible.
fn poisson_below(n: u64, mean: f64) -> f64 {
    let smallest = f64::EPSILON / 16.0;
    if mean <= 0.0 {
        return 1.0;
    }
    let first = poisson_mass(n - 1, mean);
    if mean >= n as f64 {
        let (mut term, mut sum) = (first, first);
        for k in (1..n).rev() {
            term *= k as f64 / mean;
            sum += term;
            if term <= sum * smallest {
                break;
            }
        }
        return sum.min(1.0);
    }
    let (mut term, mut above) = (first, 0.0);
    // Each term is at most mean / n below 1 times the previous one; near 1 this takes some tens of standard
    // deviations.
    for k in n..n.saturating_add(10 * EXACT_COUNT_MAX) {
        term *= mean / k as f64;
        above += term;
        if term <= above * smallest {
            break;
        }
    }
    (1.0 - above).max(0.0)
}

fn poisson_mass(n: u64, mean: f64) -> f64 {
    (n as f64 * mean.ln() - mean - ln_factorial(n)).exp()
}

/// The natural logarithm of `n!`.
fn ln_factorial(n: u64) -> f64 {
    ln_gamma(n as f64 + 1.0)
}

/// The natural logarithm of the gamma function for arguments above zero: Stirling's series from 32 on, where its error
/// is below a double's, and the recurrence below.
pub fn ln_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 32.0 {
        shift += x.ln();
        x += 1.0;
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series - shift
}

/// True if `count` samples support this quantile.
///
/// The rule: a two-sided 95 % interval for the quantile must exist within the samples, whatever their
/// distribution. The largest of `count` samples is below the quantile with probability `quantile^count`, the
/// smallest above it with `(1 - quantile)^count`; both must be at most 2.5 %. So the median needs 6 samples,
/// p90 36, p99 368, p99.9 3,688.
pub fn carries_quantile(count: u64, quantile: f64) -> bool {
    if !(quantile > 0.0 && quantile < 1.0) {
        return false;
    }
    let count = count as f64;
    let ln_tail = TAIL.ln();
    count * quantile.ln() <= ln_tail && count * (-quantile).ln_1p() <= ln_tail
}

/// The median of independent rounds with its two-sided 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MedianInterval {
    pub median: f64,
    /// Lower limit; the smallest value if the rounds are too few for an interval.
    pub low: f64,
    /// Upper limit; the largest value if the rounds are too few.
    pub high: f64,
    pub rounds: u32,
}

impl MedianInterval {
    /// Fewest rounds that have an interval: `carries_quantile(6, 0.5)`.
    pub const ROUNDS_MIN: u32 = 6;

    /// The median of values, with the order statistics that enclose it whatever their distribution: the `k` smallest
    /// and `k` largest values are outside, with the largest `k` for which a fair coin shows at most `k - 1` heads in so
    /// many throws with a probability of at most 2.5 %.
    ///
    /// `None` without values, or if one is not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        if !values.iter().all(|value| value.is_finite()) {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let outside = outside(u64::try_from(count).ok()?);
        let last = count.checked_sub(1)?;
        let median = f64::midpoint(*sorted.get(last / 2)?, *sorted.get(count / 2)?);
        let (low, high) = (*sorted.get(outside)?, *sorted.get(last - outside)?);
        Some(Self { median, low, high, rounds: u32::try_from(count).unwrap_or(u32::MAX) })
    }

    /// True if the limits are those of a 95 % interval.
    pub fn is_interval(&self) -> bool {
        self.rounds >= Self::ROUNDS_MIN
    }
}

/// Number of the `count` sorted values that are below the lower limit of the median's interval.
fn outside(count: u64) -> usize {
    let (mut k, mut below) = (0_u64, 0.0);
    loop {
        // The probability that exactly `k` of the values are below the median.
        let mass = ln_factorial(count) - ln_factorial(k) - ln_factorial(count.saturating_sub(k));
        below += (mass - count as f64 * std::f64::consts::LN_2).exp();
        if below > TAIL || k >= count {
            return usize::try_from(k.saturating_sub(1)).unwrap_or(0);
        }
        k += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks of the limits from tables of the sign test: 6 values 1 to 6, 9 values 2 to 8, 20 values 6 to 15.
    #[test]
    fn the_median_s_limits_are_those_of_the_tables() {
        for (count, low, high) in
            [(6, 1.0, 6.0), (8, 1.0, 8.0), (9, 2.0, 8.0), (20, 6.0, 15.0), (100, 40.0, 61.0)]
        {
            let values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let of = MedianInterval::of(&values).unwrap();
            assert_eq!((of.low, of.high, of.is_interval()), (low, high, true), "{count}");
            assert!((of.median - f64::midpoint(f64::from(count), 1.0)).abs() < 1e-12);
        }
    }

    #[test]
    fn few_rounds_have_a_range_and_none_has_nothing() {
        let five = MedianInterval::of(&[3.0, 1.0, 2.0, 5.0, 4.0]).unwrap();
        assert_eq!((five.low, five.median, five.high, five.is_interval()), (1.0, 3.0, 5.0, false));
        assert_eq!((MedianInterval::of(&[]), MedianInterval::of(&[1.0, f64::NAN])), (None, None));
        assert!(carries_quantile(MedianInterval::ROUNDS_MIN.into(), 0.5));
        assert!(!carries_quantile(u64::from(MedianInterval::ROUNDS_MIN) - 1, 0.5));
    }

    fn close(a: f64, b: f64, relative: f64) -> bool {
        (a - b).abs() <= relative * b.abs().max(f64::MIN_POSITIVE)
    }

    /// Tables of the exact limits (half the chi-square quantiles), as in textbooks, to four digits or more.
    #[test]
    fn limits_agree_with_the_tables() {
        let table = [
            (0, 0.0, 3.688_879_454),
            (1, 0.025_317_808, 5.571_643_391),
            (2, 0.242_209_279, 7.224_687_668),
            (5, 1.623_486_390, 11.668_332_1),
            (10, 4.795_389_0, 18.390_356),
            (100, 81.363_96, 121.627_4),
        ];
        for (count, low, high) in table {
            let (a, b) = poisson_mean_interval(count);
            assert!(close(a, low, 1e-5) && close(b, high, 1e-5), "{count}: {a}..{b}, table {low}..{high}");
        }
    }

    #[test]
    fn ten_events_in_8540_core_seconds_are_an_interval() {
        let rate = RateInterval::of(10, 8_540.0).unwrap();
        assert!(close(rate.per_s, 0.001_170_96, 1e-5), "{rate:?}");
        assert!(close(rate.per_s_low, 0.000_561_5, 1e-3), "{rate:?}");
        assert!(close(rate.per_s_high, 0.002_153_4, 1e-3), "{rate:?}");
    }

    /// The definition itself: at the limits, the tails are 2.5 %.
    #[test]
    fn the_tails_hold_what_they_should() {
        for count in [1, 3, 17, 31, 32, 33, 500, 40_000, EXACT_COUNT_MAX - 1] {
            let (low, high) = poisson_mean_interval(count);
            assert!(close(1.0 - poisson_below(count, low), TAIL, 1e-6), "{count}, low {low}");
            assert!(close(poisson_below(count + 1, high), TAIL, 1e-6), "{count}, high {high}");
            assert!(low < count as f64 && high > count as f64);
        }
    }

    /// Compares `poisson_below` with the plain sum of its definition.
    #[test]
    fn the_tail_sum_is_the_plain_sum() {
        for (n, mean) in [(1_u64, 0.2_f64), (4, 2.0), (4, 9.0), (20, 19.5), (20, 20.5)] {
            let mut term = (-mean).exp();
            let mut plain = term;
            for k in 1..n {
                term *= mean / k as f64;
                plain += term;
            }
            assert!(close(poisson_below(n, mean), plain, 1e-12), "{n} {mean}");
        }
    }

    #[test]
    fn the_form_for_large_counts_meets_the_exact_one() {
        for sign in [-1.0, 1.0] {
            let exact = gamma_quantile(EXACT_COUNT_MAX, sign);
            assert!(close(wilson_hilferty(EXACT_COUNT_MAX, sign), exact, 1e-8), "{sign}");
        }
        for count in [u64::from(u32::MAX) * 1_000, u64::MAX] {
            let (low, high) = poisson_mean_interval(count);
            assert!(low < high && low.is_finite() && high.is_finite(), "{count}");
        }
    }

    #[test]
    fn an_exposure_of_nothing_has_no_rate() {
        for exposure in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(RateInterval::of(3, exposure), None);
        }
        let none = RateInterval::of(0, 10.0).unwrap();
        assert!(none.per_s_low.abs() < f64::EPSILON && none.per_s_high > 0.3);
    }

    #[test]
    fn the_count_decides_which_quantiles_are_given() {
        for (quantile, needed) in [(0.5, 6), (0.9, 36), (0.99, 368), (0.999, 3_688), (0.9999, 36_887)] {
            assert!(carries_quantile(needed, quantile), "{quantile}");
            assert!(!carries_quantile(needed - 1, quantile), "{quantile}");
        }
        assert!(!carries_quantile(u64::MAX, 0.0) && !carries_quantile(u64::MAX, 1.0));
        assert!(!carries_quantile(0, 0.5) && !carries_quantile(10, f64::NAN));
    }
}
