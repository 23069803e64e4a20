//! Differences of percentiles with bootstrap intervals.
//!
//! A run has millions of interruptions in a histogram, so each replicate draws the count of every cell of the histogram
//! from a Poisson distribution with the measured count as its mean (the Poisson bootstrap: Hanley and MacGibbon 2006;
//! Chamandy, Muralidharan, Najmi, Naidu 2012). Bursts vary more: counts are divided by the dispersion before they are
//! drawn and multiplied by it afterwards, as the interval of the rate does. The seed is fixed, so that a comparison of
//! the same documents has the same result.

use super::PercentilePair;
use lowlat_jitter::LengthCells;
use serde::{Deserialize, Serialize};

/// Replicates: 25 are beyond each limit of a 95 % interval.
const REPLICATES: usize = 1_000;
const SEED: u64 = 0x1071_a700;
/// Means above this are drawn from the normal distribution.
const EXACT_MEAN_MAX: f64 = 30.0;
/// Relative width of a histogram's cell: lengths have three significant digits.
const RESOLUTION: f64 = 0.001;

/// A percentile after minus the same one before, with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PercentileDifference {
    /// Lower limit of the 95 % bootstrap interval.
    pub low_ns: f64,
    pub high_ns: f64,
    pub verdict: LengthVerdict,
}

/// Verdict from the interval of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthVerdict {
    /// The whole interval is below 0.
    Shorter,
    /// The whole interval is above 0.
    Longer,
    /// The interval contains 0, or is within the resolution of the histograms.
    #[default]
    NoDifferenceShown,
}

impl LengthVerdict {
    /// True if it is longer after than before; `None` if no difference is shown.
    pub fn is_more(self) -> Option<bool> {
        (self != Self::NoDifferenceShown).then_some(self == Self::Longer)
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::Shorter => "shorter",
            Self::Longer => "longer",
            Self::NoDifferenceShown => "no difference shown",
        }
    }
}

/// Adds its interval to each pair: percentiles over time, and over interruptions. `dispersion` is that of the counts of
/// both sides.
pub(super) fn add_intervals(
    [times, lengths]: [&mut [PercentilePair]; 2],
    [before, after]: [&LengthCells; 2],
    dispersion: Option<f64>,
) {
    if times.is_empty() && lengths.is_empty() {
        return;
    }
    let divisor = dispersion.filter(|d| d.is_finite()).unwrap_or(1.0).max(1.0);
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut draw = |count: f64| poisson(&mut random, count / divisor) * divisor;
    let mut of_time: Vec<Vec<f64>> = vec![Vec::with_capacity(REPLICATES); times.len()];
    let mut of_length: Vec<Vec<f64>> = vec![Vec::with_capacity(REPLICATES); lengths.len()];
    for _ in 0..REPLICATES {
        let (a, b) = (before.resampled(&mut draw), after.resampled(&mut draw));
        for (pair, found) in times.iter().zip(&mut of_time) {
            found.push(b.wait_ns(pair.quantile) - a.wait_ns(pair.quantile));
        }
        for (pair, found) in lengths.iter().zip(&mut of_length) {
            if let (Some(a), Some(b)) = (a.length_ns(pair.quantile), b.length_ns(pair.quantile)) {
                found.push(b - a);
            }
        }
    }
    for (pairs, all) in [(times, of_time), (lengths, of_length)] {
        for (pair, mut found) in pairs.iter_mut().zip(all) {
            pair.difference = interval(pair, &mut found);
        }
    }
}

/// The interval of the replicates; `None` if in some of them there was nothing left to have a percentile.
fn interval(pair: &PercentilePair, found: &mut [f64]) -> Option<PercentileDifference> {
    if found.len() < REPLICATES {
        return None;
    }
    found.sort_by(f64::total_cmp);
    let outside = REPLICATES / 40;
    let estimate = pair.after_ns as f64 - pair.before_ns as f64;
    let low_ns = found.get(outside)?.min(estimate);
    let high_ns = found.get(REPLICATES - 1 - outside)?.max(estimate);
    let resolution_ns = 2.0 * RESOLUTION * pair.before_ns.max(pair.after_ns) as f64;
    let verdict = if high_ns < -resolution_ns {
        LengthVerdict::Shorter
    } else if low_ns > resolution_ns {
        LengthVerdict::Longer
    } else {
        LengthVerdict::NoDifferenceShown
    };
    Some(PercentileDifference { low_ns, high_ns, verdict })
}

/// A draw from a Poisson distribution: by multiplication of uniform numbers (Knuth) for a small mean, else from the
/// normal distribution of the same mean and variance.
fn poisson(random: &mut fastrand::Rng, mean: f64) -> f64 {
    if mean > EXACT_MEAN_MAX {
        let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * random.f64()).cos();
        return (mean + mean.sqrt() * normal).round().max(0.0);
    }
    let (limit, mut product, mut count) = ((-mean).exp(), random.f64(), 0.0);
    while product > limit {
        product *= random.f64();
        count += 1.0;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_variance_of_a_poisson_distribution() {
        let mut random = fastrand::Rng::with_seed(7);
        for mean in [0.3, 4.0, 25.0, 900.0] {
            let drawn: Vec<f64> = (0..20_000).map(|_| poisson(&mut random, mean)).collect();
            let average = drawn.iter().sum::<f64>() / 20_000.0;
            let variance = drawn.iter().map(|of| (of - average).powi(2)).sum::<f64>() / 19_999.0;
            assert!((average / mean - 1.0).abs() < 0.05, "mean {average} of {mean}");
            assert!((variance / mean - 1.0).abs() < 0.06, "variance {variance} of {mean}");
        }
        assert_eq!(poisson(&mut random, 0.0).to_bits(), 0.0_f64.to_bits());
    }
}
