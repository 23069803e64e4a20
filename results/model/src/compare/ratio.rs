//! The ratio of two rates with an exact conditional interval.
//!
//! Given the total number of events in both runs, the number in one of them is binomial with a probability
//! that depends only on the ratio of the rates. So the limits of Clopper and Pearson (1934) for that
//! probability, converted to odds and divided by the ratio of the exposures, are exact limits for the ratio
//! of the rates (Przyborowski and Wilenski 1940).

use lowlat_host::statistics::{NORMAL_QUANTILE, TAIL, bisected, ln_gamma};
use serde::{Deserialize, Serialize};
/// If both counts are above this, the logarithm of the ratio is treated as normal; a test compares the two.
const EXACT_COUNT_MAX: f64 = 1e6;
/// A count above this adds nothing to the interval beside one below [`EXACT_COUNT_MAX`], and is scaled down
/// to it.
const LARGE_COUNT: f64 = 1e9;
/// Halvings of the bracket around the logarithm of the odds.
const BISECTIONS: u32 = 70;
/// Larger odds mean nothing; the limit leaves space to scale them by exposures within a double.
const LN_ODDS_MAX: f64 = 600.0;
/// A limit of a ratio beyond this, or below its inverse, is none.
const RATIO_MAX: f64 = 1e9;
/// Maximum number of steps of the continued fraction, which needs about the square root of the larger count.
const FRACTION_STEPS_MAX: u32 = 1_000_000;

/// The ratio of two rates, with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RateRatio {
    /// Rate after divided by rate before; `None` without an event before, or without time on one side.
    pub ratio: Option<f64>,
    /// Lower limit of the two-sided 95 % interval. 0 without an event after.
    pub low: f64,
    /// Upper limit; `None` without an event before.
    pub high: Option<f64>,
    /// Variation of the counts from second to second, relative to independent events (quasi-Poisson): the variance
    /// divided by the mean, at least 1. The interval is that of counts divided by it. `None` if the runs are too short
    /// to determine it; then the interval is that of independent events.
    pub dispersion: Option<f64>,
    pub verdict: RateVerdict,
}

/// Verdict from the interval of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateVerdict {
    /// The rate decreased: the whole interval is below 1.
    Fewer,
    /// The rate increased: the whole interval is above 1.
    More,
    /// The interval contains 1. This does not prove that nothing changed.
    #[default]
    NoDifferenceShown,
}

impl RateVerdict {
    /// True if there are more after than before; `None` if no difference is shown.
    pub fn is_more(self) -> Option<bool> {
        (self != Self::NoDifferenceShown).then_some(self == Self::More)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Fewer => "fewer",
            Self::More => "more",
            Self::NoDifferenceShown => "no difference shown",
        }
    }
}

/// A number of events and their exposure.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) exposure_s: f64,
}

impl RateRatio {
    pub(super) fn of(before: Tally, after: Tally, dispersion: Option<f64>) -> Self {
        let has_time = |tally: &Tally| tally.exposure_s.is_finite() && tally.exposure_s > 0.0;
        if !has_time(&before) || !has_time(&after) {
            return Self { dispersion, ..Self::default() };
        }
        let by_exposure = before.exposure_s / after.exposure_s;
        let divisor = dispersion.filter(|d| d.is_finite()).unwrap_or(1.0).max(1.0);
        let (low, high) = odds_interval(before.count as f64 / divisor, after.count as f64 / divisor);
        let (low, high) = (low * by_exposure, high.map(|high| high * by_exposure));
        // Fewer than one event after the division carries no limit.
        let (low, high) =
            (if low < 1.0 / RATIO_MAX { 0.0 } else { low }, high.filter(|high| *high <= RATIO_MAX));
        let ratio = (before.count > 0).then(|| after.count as f64 / before.count as f64 * by_exposure);
        let verdict = match high {
            Some(high) if high < 1.0 => RateVerdict::Fewer,
            _ if low > 1.0 => RateVerdict::More,
            _ => RateVerdict::NoDifferenceShown,
        };
        Self { ratio, low, high, dispersion, verdict }
    }
}

/// Exact limits of the odds that an event fell into the second of two runs, from the counts of both. Counts
/// that were divided by a dispersion need not be integers.
fn odds_interval(first: f64, second: f64) -> (f64, Option<f64>) {
    if first.min(second) > EXACT_COUNT_MAX {
        let half = NORMAL_QUANTILE * (1.0 / first + 1.0 / second).sqrt();
        let odds = second / first;
        return (odds * (-half).exp(), Some(odds * half.exp()));
    }
    let scale = |count: f64| (count / LARGE_COUNT).max(1.0);
    let (first_scale, second_scale) = (scale(first), scale(second));
    let (first, second) = (first / first_scale, second / second_scale);
    let unscale = second_scale / first_scale;
    let low = if second > 0.0 { beta_odds(second, first + 1.0, TAIL) * unscale } else { 0.0 };
    let high = (first > 0.0).then(|| beta_odds(second + 1.0, first, 1.0 - TAIL) * unscale);
    (low, high)
}

/// The odds `x / (1 - x)` at which a beta distribution has this probability below `x`.
fn beta_odds(a: f64, b: f64, below: f64) -> f64 {
    let bracket = (-LN_ODDS_MAX, LN_ODDS_MAX);
    let (low, high) = bisected(bracket, BISECTIONS, |middle| beta_below(a, b, middle) < below);
    f64::midpoint(low, high).exp()
}

/// The chance that Student's distribution is above this.
pub(super) fn student_above(value: f64, freedom: f64) -> f64 {
    let both = beta_below(freedom / 2.0, 0.5, (freedom / (value * value)).ln());
    if value >= 0.0 { both / 2.0 } else { 1.0 - both / 2.0 }
}

/// The regularized incomplete beta function at the `x` whose odds have this logarithm. Through the odds, both
/// `x` and `1 - x` keep their digits.
pub(super) fn beta_below(a: f64, b: f64, ln_odds: f64) -> f64 {
    // The fraction converges fast below the mean and slowly above it; above it the other tail is used.
    let x = 1.0 / (1.0 + (-ln_odds).exp());
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_tail(b, a, -ln_odds);
    }
    beta_tail(a, b, ln_odds)
}

fn beta_tail(a: f64, b: f64, ln_odds: f64) -> f64 {
    let (ln_x, ln_y) = (-ln_1p_exp(-ln_odds), -ln_1p_exp(ln_odds));
    let ln_front = a * ln_x + b * ln_y - a.ln() - (ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b));
    let front = ln_front.exp();
    if front == 0.0 {
        return 0.0;
    }
    (front / beta_fraction(a, b, ln_x.exp())).clamp(0.0, 1.0)
}

/// The natural logarithm of `1 + exp(x)`.
fn ln_1p_exp(x: f64) -> f64 {
    if x > 0.0 { x + (-x).exp().ln_1p() } else { x.exp().ln_1p() }
}

/// The continued fraction `1 + d1 / (1 + d2 / (1 + …))` of the incomplete beta function (DLMF 8.17.22), by
/// Lentz's method as modified by Thompson and Barnett.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let tiny = f64::MIN_POSITIVE / f64::EPSILON;
    let away_from_zero = |value: f64| if value.abs() < tiny { tiny } else { value };
    let (mut value, mut forward, mut backward) = (1.0_f64, 1.0_f64, 0.0_f64);
    for step in 1..=FRACTION_STEPS_MAX {
        let m = f64::from(step / 2);
        let term = if step % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        backward = 1.0 / away_from_zero(1.0 + term * backward);
        forward = away_from_zero(1.0 + term / forward);
        let change = forward * backward;
        value *= change;
        if (change - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64, relative: f64) -> bool {
        (a - b).abs() <= relative * b.abs().max(f64::MIN_POSITIVE)
    }

    fn ratio(before: (u64, f64), after: (u64, f64)) -> RateRatio {
        let tally = |(count, exposure_s)| Tally { count, exposure_s };
        RateRatio::of(tally(before), tally(after), None)
    }

    /// The limits of Clopper and Pearson from tables of binomial intervals: successes, trials, low, high.
    #[test]
    fn binomial_limits_agree_with_the_tables() {
        let table = [
            (1, 10, 0.002_53, 0.445_02),
            (5, 10, 0.187_09, 0.812_91),
            (3, 20, 0.032_07, 0.378_93),
            (10, 100, 0.049_00, 0.176_22),
            (50, 100, 0.398_32, 0.601_68),
        ];
        for (successes, trials, low, high) in table {
            let (a, b) = odds_interval(f64::from(trials - successes), f64::from(successes));
            let chance = |odds: f64| odds / (1.0 + odds);
            let (a, b) = (chance(a), chance(b.unwrap()));
            assert!((a - low).abs() < 6e-6 && (b - high).abs() < 6e-6, "{successes}/{trials}: {a}..{b}");
        }
    }

    /// Without a success the upper limit is `1 - 0.025^(1/n)`, in closed form.
    #[test]
    fn zero_counts_answer_on_one_side() {
        for n in [1_u32, 3, 10, 4_000] {
            let (low, high) = odds_interval(f64::from(n), 0.0);
            let chance = 1.0 - TAIL.powf(1.0 / f64::from(n));
            assert!(low.abs() < f64::EPSILON && close(high.unwrap(), chance / (1.0 - chance), 1e-9), "{n}");
            let (low, high) = odds_interval(0.0, f64::from(n));
            assert!(high.is_none() && close(low, (1.0 - chance) / chance, 1e-9), "{n}");
        }
        assert_eq!(odds_interval(0.0, 0.0), (0.0, None));
    }

    #[test]
    fn three_before_and_none_after_show_nothing() {
        let three = ratio((3, 610.0), (0, 610.0));
        assert_eq!((three.ratio, three.verdict), (Some(0.0), RateVerdict::NoDifferenceShown));
        assert!(three.high.unwrap() > 2.4 && three.high.unwrap() < 2.5, "{three:?}");
        assert_eq!(ratio((6, 610.0), (0, 610.0)).verdict, RateVerdict::Fewer);
        assert_eq!(ratio((3, 610.0), (0, 6_100.0)).verdict, RateVerdict::Fewer);
        let new = ratio((0, 610.0), (6, 610.0));
        assert_eq!((new.ratio, new.high, new.verdict), (None, None, RateVerdict::More));
        assert!(new.low > 1.0);
        assert_eq!(ratio((0, 1.0), (0, 1.0)).verdict, RateVerdict::NoDifferenceShown);
    }

    #[test]
    fn without_time_nothing_is_said() {
        for exposure in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(ratio((3, exposure), (3, 1.0)), RateRatio::default());
            assert_eq!(ratio((3, 1.0), (3, exposure)), RateRatio::default());
        }
    }

    #[test]
    fn exposures_scale_the_ratio() {
        let found = ratio((100, 10.0), (100, 40.0));
        assert!(close(found.ratio.unwrap(), 0.25, 1e-12) && found.verdict == RateVerdict::Fewer, "{found:?}");
        assert!(found.low < 0.25 && found.high.unwrap() > 0.25);
    }

    /// Quantiles of Student's distribution from tables: degrees of freedom, quantile, tail.
    #[test]
    fn student_agrees_with_the_tables() {
        let table = [
            (1.0, 12.706, 0.025),
            (5.0, 2.015, 0.05),
            (10.0, 3.169, 0.005),
            (30.0, 2.042, 0.025),
            (120.0, 0.0, 0.5),
        ];
        for (freedom, value, tail) in table {
            assert!(close(student_above(value, freedom), tail, 1e-3), "{freedom} {value}");
            assert!(close(student_above(-value, freedom), 1.0 - tail, 1e-3), "{freedom} {value}");
        }
    }

    #[test]
    fn bursts_widen_the_interval() {
        let tally = |count| Tally { count, exposure_s: 600.0 };
        let plain = RateRatio::of(tally(200), tally(120), Some(1.0));
        let bursts = RateRatio::of(tally(200), tally(120), Some(20.0));
        assert_eq!((plain.verdict, bursts.verdict), (RateVerdict::Fewer, RateVerdict::NoDifferenceShown));
        assert_eq!(plain.ratio, bursts.ratio);
        // Twenty times the burstiness means a twentieth of the events.
        let few = RateRatio::of(tally(10), tally(6), None);
        assert!(close(bursts.low, few.low, 1e-9) && close(bursts.high.unwrap(), few.high.unwrap(), 1e-9));
    }

    #[test]
    fn the_form_for_large_counts_meets_the_exact_one() {
        let exact = odds_interval(EXACT_COUNT_MAX, EXACT_COUNT_MAX * 0.9);
        let normal = odds_interval(EXACT_COUNT_MAX + 1.0, (EXACT_COUNT_MAX + 1.0) * 0.9 + 200_000.0);
        assert!(exact.0 < 0.9 && exact.1.unwrap() > 0.9 && exact.1.unwrap() - exact.0 < 0.01);
        assert!(normal.1.unwrap() - normal.0 < 0.01);
        let half = NORMAL_QUANTILE * (1.0 / 1e6 + 1.0 / 9e5_f64).sqrt();
        assert!(close(exact.0, 0.9 * (-half).exp(), 1e-5), "{exact:?}");
        assert!(close(exact.1.unwrap(), 0.9 * half.exp(), 1e-5), "{exact:?}");
        let lone = Tally { count: 1, exposure_s: 1.0 };
        let found = RateRatio::of(lone, Tally { exposure_s: 1e-9, ..lone }, Some(1e9));
        assert_eq!((found.low, found.high, found.verdict), (0.0, None, RateVerdict::NoDifferenceShown));
        for (before, after) in [(u64::MAX, u64::MAX), (u64::MAX, 3), (0, u64::MAX), (1 << 40, 1 << 20)] {
            let found = ratio((before, 1.0), (after, 1.0));
            assert!(found.low.is_finite() && found.high.is_none_or(f64::is_finite), "{found:?}");
        }
    }

    proptest! {
        /// Swapping the sides inverts every figure and the verdict.
        #[test]
        fn swapped_sides_are_reciprocal(
            before in 0_u64..5_000, after in 0_u64..5_000,
            a_s in 1.0_f64..1e5, b_s in 1.0_f64..1e5, dispersion in 1.0_f64..50.0,
        ) {
            let (a, b) = (Tally { count: before, exposure_s: a_s }, Tally { count: after, exposure_s: b_s });
            let (there, back) = (RateRatio::of(a, b, Some(dispersion)), RateRatio::of(b, a, Some(dispersion)));
            match there.high {
                Some(high) if high > 0.0 && back.low > 0.0 => prop_assert!(close(back.low, 1.0 / high, 1e-6)),
                high => prop_assert!(back.low == 0.0 || high == Some(0.0), "{there:?} {back:?}"),
            }
            let turned = match there.verdict {
                RateVerdict::Fewer => RateVerdict::More,
                RateVerdict::More => RateVerdict::Fewer,
                RateVerdict::NoDifferenceShown => RateVerdict::NoDifferenceShown,
            };
            prop_assert_eq!(back.verdict, turned);
            if let Some(ratio) = there.ratio {
                prop_assert!(there.low <= ratio && there.high.is_none_or(|high| ratio <= high));
            }
        }

        /// The definition itself: at the limits the tails are 2.5 %, summed plainly.
        #[test]
        fn the_tails_hold_what_they_should(before in 1_u32..40, after in 1_u32..40) {
            let (low, high) = odds_interval(f64::from(before), f64::from(after));
            let n = before + after;
            let at_least = |k: u32, odds: f64| -> f64 {
                let p = odds / (1.0 + odds);
                let ln_choose = |k: u32| ln_gamma(f64::from(n) + 1.0) - ln_gamma(f64::from(k) + 1.0) - ln_gamma(f64::from(n - k) + 1.0);
                (k..=n).map(|k| (ln_choose(k) + f64::from(k) * p.ln() + f64::from(n - k) * (-p).ln_1p()).exp()).sum()
            };
            prop_assert!(close(at_least(after, low), TAIL, 1e-7));
            prop_assert!(close(1.0 - at_least(after + 1, high.unwrap()), TAIL, 1e-7));
        }
    }
}
