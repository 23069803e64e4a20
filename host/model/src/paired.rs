//! Pairs of measurements, with something on and with it off: how far the two differ, and how likely chance alone shows
//! that much. Nothing is assumed of the distribution of the noise.

use crate::statistics::TAIL;
use serde::{Deserialize, Serialize};
use std::iter;

/// The difference of pairs whose two measurements were taken in random order.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PairedShift {
    /// The median of the means of every two differences (Hodges and Lehmann 1963).
    pub shift: f64,
    /// Lower limit of the two-sided 95 % interval; the smallest difference if the pairs are too few for one.
    pub low: f64,
    /// Upper limit; the largest difference if the pairs are too few.
    pub high: f64,
    pub pairs: u32,
    /// The probability that pairs without a difference look at least so different (Wilcoxon's signed-rank test, exact,
    /// two-sided).
    pub p_value: f64,
}

impl PairedShift {
    /// The shift of differences in any order. `None` without any, or if one is not finite.
    ///
    /// Time is quadratic and memory is square in the number of pairs; a thousand take a second.
    pub fn of(differences: &[f64]) -> Option<Self> {
        if differences.is_empty() || !differences.iter().all(|difference| difference.is_finite()) {
            return None;
        }
        let mut means: Vec<f64> = differences
            .iter()
            .enumerate()
            .flat_map(|(at, one)| differences.iter().skip(at).map(|other| f64::midpoint(*one, *other)))
            .collect();
        means.sort_by(f64::total_cmp);
        let last = means.len() - 1;
        // `means` has one entry for each sum of ranks from 1 on, so the k smallest are outside.
        let outside = outside(differences.len());
        Some(Self {
            shift: f64::midpoint(means[last / 2], means[means.len() / 2]),
            low: means[outside],
            high: means[last - outside],
            pairs: u32::try_from(differences.len()).unwrap_or(u32::MAX),
            p_value: p_value(differences),
        })
    }
}

/// The fewest pairs that can show one difference among `tests` at this false discovery rate: their smallest probability
/// is `2^(1 - pairs)`.
pub fn pairs_needed(tests: usize, rate: f64) -> usize {
    let most = rate / tests.max(1) as f64;
    1 + iter::successors(Some(1.0), |p| Some(p / 2.0)).take_while(|p| *p > most).count()
}

/// The findings among tests whose expected share of false ones is at most `rate` (Benjamini and Hochberg 1995).
pub fn discoveries(p_values: &[f64], rate: f64) -> Vec<bool> {
    let mut sorted = p_values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let is_below = |(at, p): &(usize, &f64)| **p <= rate * (*at as f64 + 1.0) / count;
    let most = sorted.iter().enumerate().filter(is_below).map(|(_, p)| *p).next_back();
    p_values.iter().map(|p| most.is_some_and(|most| *p <= most)).collect()
}

/// Number of the smallest means that are below the interval: the largest `k` for which sums of ranks below `k` have a
/// probability of at most 2.5 %.
fn outside(count: usize) -> usize {
    let ranks: Vec<usize> = (1..=count).collect();
    let mut below = 0.0;
    let is_out = |mass: &&f64| {
        below += **mass;
        below <= TAIL
    };
    masses(&ranks).iter().take_while(is_out).count()
}

fn p_value(differences: &[f64]) -> f64 {
    // A pair without a difference says nothing about the direction.
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Equal differences share the mean of their ranks. Twice the rank is a whole number.
    let mut ranks = Vec::with_capacity(sorted.len());
    for equal in sorted.chunk_by(|a, b| a.abs().total_cmp(&b.abs()).is_eq()) {
        let first = ranks.len() + 1;
        ranks.extend(iter::repeat_n(2 * first + equal.len() - 1, equal.len()));
    }
    let positive: usize =
        sorted.iter().zip(&ranks).filter(|(one, _)| **one > 0.0).map(|(_, rank)| rank).sum();
    let masses = masses(&ranks);
    let low: f64 = masses.iter().take(positive + 1).sum();
    let high: f64 = masses.iter().skip(positive).sum();
    (2.0 * low.min(high)).min(1.0)
}

/// The probability of each sum of the ranks whose signs are positive, if each sign is a fair coin's.
fn masses(ranks: &[usize]) -> Vec<f64> {
    let mut masses = vec![0.0; ranks.iter().sum::<usize>() + 1];
    masses[0] = 1.0;
    let mut most = 0;
    for rank in ranks {
        most += rank;
        for sum in (0..=most).rev() {
            let with = sum.checked_sub(*rank).map_or(0.0, |before| masses[before]);
            masses[sum] = f64::midpoint(masses[sum], with);
        }
    }
    masses
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    /// SciPy 1.17: `wilcoxon(x, method="exact")`.
    #[test]
    fn probabilities_are_those_of_scipy() {
        let clear = [1.83, 0.5, 1.62, 2.48, 1.68, 1.88, -1.55, 3.06, 1.3, -0.2];
        let of = PairedShift::of(&clear).unwrap();
        assert!(close(of.p_value, 0.019_531_25), "{of:?}");
        assert!(of.low > 0.0 && of.low < of.shift && of.shift < of.high, "{of:?}");
        let unclear = [0.8, -0.3, 1.1, 2.4, -1.9, 0.7, 3.3, -0.1, 0.6, 1.5, -2.2, 2.9];
        let of = PairedShift::of(&unclear).unwrap();
        assert!(close(of.p_value, 0.151_367_187_5) && of.low < 0.0, "{of:?}");
    }

    /// The sum of positive ranks is at most 8 with a probability below 2.5 % for ten pairs, and at most 5 for nine: the
    /// tables of the test.
    #[test]
    fn limits_are_those_of_the_tables() {
        for (count, critical) in
            [(5, None), (6, Some(0)), (8, Some(3)), (9, Some(5)), (10, Some(8)), (20, Some(52))]
        {
            assert_eq!(outside(count).checked_sub(1), critical, "{count}");
        }
    }

    /// Every assignment of signs counted, against the sums that the function adds up.
    #[test]
    fn probabilities_are_those_of_all_signs() {
        let differences = [3.0, -1.0, 2.0, 2.0, 0.0, -2.0, 5.0, 4.0];
        let ranks = [5.0, 1.0, 3.0, 3.0, 3.0, 7.0, 6.0];
        let seen = 5.0 + 3.0 + 3.0 + 7.0 + 6.0;
        let sum = |signs: u32| -> f64 {
            ranks.iter().enumerate().filter(|(at, _)| signs >> at & 1 == 1).map(|(_, rank)| rank).sum()
        };
        let all = 1_u32 << ranks.len();
        let share = |is_in: &dyn Fn(f64) -> bool| {
            (0..all).filter(|signs| is_in(sum(*signs))).count() as f64 / f64::from(all)
        };
        let expected = 2.0 * share(&|sum| sum >= seen).min(share(&|sum| sum <= seen));
        assert!(close(p_value(&differences), expected), "{} {expected}", p_value(&differences));
    }

    #[test]
    fn pairs_without_a_difference_show_none() {
        let of = PairedShift::of(&[0.0; 12]).unwrap();
        assert_eq!((of.p_value, of.shift, of.low, of.high), (1.0, 0.0, 0.0, 0.0));
        assert_eq!((PairedShift::of(&[]), PairedShift::of(&[1.0, f64::NAN])), (None, None));
    }

    #[test]
    fn the_fewest_pairs_are_just_enough() {
        for tests in [1, 2, 10, 60, 400] {
            let pairs = pairs_needed(tests, 0.05);
            let mut p_values = vec![1.0; tests];
            p_values[0] = PairedShift::of(&vec![1.0; pairs]).unwrap().p_value;
            assert!(discoveries(&p_values, 0.05)[0], "{tests}: {pairs}");
            p_values[0] = PairedShift::of(&vec![1.0; pairs - 1]).unwrap().p_value;
            assert!(!discoveries(&p_values, 0.05)[0], "{tests}: {pairs}");
        }
    }

    /// The example of Benjamini and Hochberg 1995, section 3: of 15 values the four smallest are found at 5 %.
    #[test]
    fn discoveries_are_those_of_the_paper() {
        let p_values = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719,
            0.6528, 0.7590, 1.0,
        ];
        assert_eq!(discoveries(&p_values, 0.05).iter().filter(|found| **found).count(), 4);
        assert_eq!(discoveries(&[], 0.05), Vec::<bool>::new());
    }
}
