//! Figures of the half round trips of one size.

use crate::whole;
use lowlat_host::statistics::carries_quantile;
use serde::{Deserialize, Serialize};

/// The quantiles considered; the count decides which of them are given.
pub const QUANTILES: [f64; 7] = [0.5, 0.9, 0.99, 0.999, 0.999_9, 0.999_99, 0.999_999];

/// The columns of sfnt-pingpong, in nanoseconds of half a round trip.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figures {
    /// Mean, truncated to whole nanoseconds.
    pub mean_ns: u64,
    pub min_ns: u64,
    pub median_ns: u64,
    pub max_ns: u64,
    /// The percentile that was asked for.
    pub percentile_ns: u64,
    pub stddev_ns: u64,
    /// Number of measured round trips.
    pub iterations: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Quantile {
    /// Position from 0 to 1, such as 0.99.
    pub quantile: f64,
    /// Value of the quantile, in nanoseconds.
    pub ns: u64,
}

impl Figures {
    /// Sorts the samples and computes their figures, as sfnt-pingpong does. `percentile` is between 0 and 100.
    ///
    /// Returns `None` without samples.
    pub fn of(samples_ns: &mut [u64], percentile: f64) -> Option<Self> {
        samples_ns.sort_unstable();
        let (min_ns, max_ns) = (*samples_ns.first()?, *samples_ns.last()?);
        let count = samples_ns.len();
        let sum: u128 = samples_ns.iter().map(|ns| u128::from(*ns)).sum();
        let mean_ns = u64::try_from(sum / count as u128).unwrap_or(u64::MAX);
        let square = |ns: &u64| (*ns as f64 - mean_ns as f64).powi(2);
        let squares: f64 = samples_ns.iter().map(square).sum();
        Some(Self {
            mean_ns,
            min_ns,
            median_ns: at(samples_ns, 0.5),
            max_ns,
            percentile_ns: at(samples_ns, percentile / 100.0),
            stddev_ns: whole((squares / count.saturating_sub(1).max(1) as f64).sqrt()),
            iterations: count as u64,
        })
    }

    /// Returns the quantiles that the count of sorted samples supports.
    pub fn quantiles(sorted_ns: &[u64]) -> Vec<Quantile> {
        let count = sorted_ns.len() as u64;
        let carried = QUANTILES.into_iter().filter(|quantile| carries_quantile(count, *quantile));
        carried.map(|quantile| Quantile { quantile, ns: at(sorted_ns, quantile) }).collect()
    }
}

/// The sample at a share of the sorted samples: the definition of sfnt-pingpong.
fn at(sorted: &[u64], share: f64) -> u64 {
    // The small addition keeps 0.99 * 100 from becoming 98.
    let place = (sorted.len() as f64 * share + 1e-6).floor().max(0.0);
    let place = usize::try_from(whole(place)).unwrap_or(usize::MAX).min(sorted.len().saturating_sub(1));
    sorted.get(place).copied().unwrap_or(0)
}

/// Returns one of the quantiles, if the count supported it.
pub(crate) fn quantile_ns(quantiles: &[Quantile], wanted: f64) -> Option<u64> {
    quantiles.iter().find(|of| (of.quantile - wanted).abs() < 1e-9).map(|of| of.ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_are_those_of_sfnt_pingpong() {
        let mut samples: Vec<u64> = (1..=100).rev().collect();
        let figures = Figures::of(&mut samples, 99.0).unwrap();
        assert_eq!((figures.mean_ns, figures.min_ns, figures.max_ns, figures.iterations), (50, 1, 100, 100));
        assert_eq!((figures.median_ns, figures.percentile_ns), (51, 100), "the elements 50 and 99");
        assert_eq!(figures.stddev_ns, 29);
        assert_eq!(Figures::of(&mut [], 99.0), None);
        let one = Figures::of(&mut [7], 99.0).unwrap();
        assert_eq!((one.median_ns, one.percentile_ns, one.stddev_ns), (7, 7, 0));
    }

    #[test]
    fn the_count_decides_which_quantiles_are_given() {
        let given = |count: u64| Figures::quantiles(&(0..count).collect::<Vec<_>>()).len();
        assert_eq!([0, 5, 6, 36, 368, 3_688].map(given), [0, 0, 1, 2, 3, 4]);
    }
}
