//! Percentiles over time: how long a thread waits that wants the CPU at a random moment.

use super::{Percentile, QUANTILES};
use hdrhistogram::Histogram;
use lowlat_host::statistics::poisson_mean_interval;

/// A wait above zero is included only if at least this many interruptions are longer: as many as a median
/// needs.
const LONGER_MIN: f64 = 6.0;

/// Time lost on a CPU, or on several together.
#[derive(Debug, Clone, Copy)]
pub(super) struct LostTime<'a> {
    /// Lengths of the interruptions; `None` if there was none.
    pub lengths: Option<&'a Histogram<u64>>,
    /// The longest; 0 if there was none.
    pub length_ns_max: u64,
    /// A gap of at least this long counted as an interruption.
    pub threshold_ns: u64,
    pub runtime_ns: u128,
}

/// Returns the percentiles over time that the record supports.
///
/// A thread that wants the CPU at a random moment of the sampled time `T` waits for the remainder of the
/// interruption at that moment, and not at all if there is none. An interruption of length `L` has more than
/// `d` left during its first `L - d`. So the share of moments with a wait above `d` is the sum of `max(0, L -
/// d)` over all interruptions, divided by `T`. The wait at quantile `q` is the shortest `d` with a share of
/// at most `1 - q`. Unlike percentiles of lengths, these are comparable between runs: they hardly change if
/// one run counts interruptions below the other's threshold.
///
/// Lengths are the middles of the histogram's cells, so with three digits a wait has an error of at most 0.05
/// % of the mean length of the longer interruptions. A wait above zero is rounded up to a nanosecond.
///
/// Only these are included:
/// * a wait above zero if at least 6 interruptions are longer;
/// * a wait of zero if even the upper limit of the lost share ([`lost_ns_high`]) is at most `1 - q`.
pub(super) fn time_percentiles(lost: &LostTime<'_>) -> Vec<Percentile> {
    if lost.runtime_ns == 0 {
        return Vec::new();
    }
    let cells = cells_longest_first(lost);
    let lost_ns_high = lost_ns_high(lost, &cells);
    let wait = |quantile: f64| -> Option<u64> {
        let allowed_ns = (1.0 - quantile) * lost.runtime_ns as f64;
        match wait_at(&cells, allowed_ns) {
            Some(wait) => (wait.longer_count >= LONGER_MIN).then_some(whole_ns(wait.ns)),
            None => (lost_ns_high <= allowed_ns).then_some(0),
        }
    };
    QUANTILES
        .into_iter()
        .filter_map(|quantile| Some(Percentile { quantile, length_ns: wait(quantile)? }))
        .collect()
}

/// Interruptions of one cell of the histogram. Their number need not be an integer if it was resampled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) length_ns: f64,
    pub(super) count: f64,
}

fn cells_longest_first(lost: &LostTime<'_>) -> Vec<Cell> {
    lost.lengths.map(|lengths| cells_of(lengths, lost.length_ns_max)).unwrap_or_default()
}

/// The cells of a histogram with their middles, longest first; none is longer than the longest interruption.
pub(super) fn cells_of(lengths: &Histogram<u64>, length_ns_max: u64) -> Vec<Cell> {
    let cells = lengths.iter_recorded().map(|cell| {
        let end = cell.value_iterated_to();
        let (low, high) = (lengths.lowest_equivalent(end), end.min(length_ns_max));
        let length_ns = f64::midpoint(low as f64, high.max(low) as f64);
        Cell { length_ns, count: cell.count_at_value() as f64 }
    });
    let mut cells: Vec<Cell> = cells.collect();
    cells.reverse();
    cells
}

/// A wait above zero.
pub(super) struct Wait {
    pub(super) ns: f64,
    longer_count: f64,
}

/// The wait that is exceeded for `allowed_ns` of the sampled time; `None` if it is zero.
pub(super) fn wait_at(cells: &[Cell], allowed_ns: f64) -> Option<Wait> {
    let (mut count, mut total_ns) = (0.0, 0.0);
    for (index, cell) in cells.iter().enumerate() {
        count += cell.count;
        total_ns += cell.length_ns * cell.count;
        // Between this length and the next shorter one, exceeded for `total_ns - count * d`.
        let next_ns = cells.get(index + 1).map_or(0.0, |next| next.length_ns);
        if total_ns - count * next_ns > allowed_ns {
            return Some(Wait { ns: (total_ns - allowed_ns) / count, longer_count: count });
        }
    }
    None
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole_ns(ns: f64) -> u64 {
    ns.ceil().max(1.0) as u64
}

/// Upper 95 % limit of the time lost, in nanoseconds, if interruptions form a Poisson process.
///
/// The lower of two limits. The first is for few interruptions: the upper limit of their number times the
/// longest, or times the threshold if there was none. The second is tighter for many: that of a weighted sum
/// of Poisson counts (Dobson, Kuulasmaa, Eberle, Scherer, Statistics in Medicine 10, 1991), plus as many of
/// the longest as can go unseen in such a run.
fn lost_ns_high(lost: &LostTime<'_>, cells: &[Cell]) -> f64 {
    let count = lost.lengths.map_or(0, Histogram::len);
    let count_high = poisson_mean_interval(count).1;
    if count == 0 {
        return count_high * lost.threshold_ns as f64;
    }
    let longest = lost.length_ns_max as f64;
    let sum = |power: i32| cells.iter().map(|cell| cell.length_ns.powi(power) * cell.count).sum::<f64>();
    let spread = (sum(2) / count as f64).sqrt() * (count_high - count as f64);
    let unseen = poisson_mean_interval(0).1 * longest;
    (count_high * longest).min(sum(1) + spread + unseen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn held(lengths: &[u64]) -> Histogram<u64> {
        let mut held = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for length in lengths {
            held.record(*length).unwrap();
        }
        held
    }

    fn waits(lengths: &[u64], runtime_ns: u64) -> Vec<(f64, u64)> {
        let held = held(lengths);
        let lost = LostTime {
            lengths: (!lengths.is_empty()).then_some(&held),
            length_ns_max: lengths.iter().copied().max().unwrap_or(0),
            threshold_ns: 100,
            runtime_ns: u128::from(runtime_ns),
        };
        time_percentiles(&lost).into_iter().map(|one| (one.quantile, one.length_ns)).collect()
    }

    const SECOND: u64 = 1_000_000_000;

    /// A tenth of the time is lost in interruptions of 1 ms: at the p99 moment nine tenths of one remain.
    #[test]
    fn equal_interruptions_manually() {
        let found = waits(&[1_000_000; 1_000], 10 * SECOND);
        let wait =
            |quantile: f64| found.iter().find(|one| one.0.to_bits() == quantile.to_bits()).map(|one| one.1);
        // 1000 * (1 ms - d) / 10 s = 0.01 for d = 0.9 ms; the cell of 1 ms is 0.1 % wide.
        let near = |quantile, wanted: u64| wait(quantile).is_some_and(|ns| ns.abs_diff(wanted) < 600);
        assert!(near(0.99, 900_000) && near(0.999, 990_000) && near(0.999_9, 999_000), "{found:?}");
        assert_eq!(wait(0.5), Some(0));
        assert_eq!(
            wait(0.9),
            None,
            "0.1 s of 10 s are lost: at the edge, so neither zero nor a wait is shown"
        );
    }

    #[test]
    fn few_interruptions_carry_no_wait() {
        // Five of 1 ms in 10 s: p99.99 would be 0.8 ms, but fewer than six are longer than that.
        let quantiles = |lengths: &[u64], runtime_ns| waits(lengths, runtime_ns);
        assert_eq!(quantiles(&[1_000_000; 5], 10 * SECOND), [(0.5, 0), (0.9, 0), (0.99, 0)]);
        assert!(quantiles(&[1_000_000; 6], 10 * SECOND).iter().any(|one| one.1 > 0));
    }

    #[test]
    fn nothing_seen_is_zero_as_far_as_the_time_shows_it() {
        // 3.69 unseen ones of 100 ns each are possible in the run.
        assert_eq!(waits(&[], SECOND).last(), Some(&(0.999_999, 0)));
        assert_eq!(waits(&[], 100_000).last(), Some(&(0.99, 0)), "369 ns of 100 us may be lost");
        assert!(waits(&[], 0).is_empty());
    }

    /// A thousand ticks of 3 us per second and a few long ones: the limit of the sum is far below count times
    /// longest.
    #[test]
    fn the_limit_of_many_short_ones_is_near_their_sum() {
        let mut lengths = vec![3_000; 15_000];
        lengths.push(50_000);
        let many = held(&lengths);
        let lost = LostTime {
            lengths: Some(&many),
            length_ns_max: 50_000,
            threshold_ns: 100,
            runtime_ns: u128::from(60 * SECOND),
        };
        let high = lost_ns_high(&lost, &cells_longest_first(&lost));
        let sum: u64 = lengths.iter().sum();
        assert!(high > sum as f64 && high < sum as f64 * 1.05, "{high} of {sum}");
        // For equal lengths the first limit is exact, and the second must not undercut it.
        let equal = held(&[1_000; 10]);
        let lost = LostTime {
            lengths: Some(&equal),
            length_ns_max: 1_000,
            threshold_ns: 100,
            runtime_ns: u128::from(SECOND),
        };
        let high = lost_ns_high(&lost, &cells_longest_first(&lost));
        assert!((high - 18_390.356).abs() < 0.01, "{high}");
    }

    /// Simulates a run in full, one slot per nanosecond, and returns the number of its moments with each wait.
    fn by_force(gaps_and_lengths: &[(usize, usize)]) -> Vec<usize> {
        let longest = gaps_and_lengths.iter().map(|one| one.1).max().unwrap_or(0);
        let mut moments = vec![0; longest + 1];
        for (gap, length) in gaps_and_lengths {
            moments[0] += gap;
            moments.iter_mut().skip(1).take(*length).for_each(|count| *count += 1);
        }
        moments
    }

    /// The shortest wait that at most `1 - quantile` of the moments exceed.
    fn wait_by_force(moments: &[usize], quantile: f64) -> u64 {
        let allowed = moments.iter().sum::<usize>() as f64 * (1.0 - quantile);
        let mut above = 0;
        for (wait, count) in moments.iter().enumerate().rev() {
            above += count;
            if above as f64 > allowed {
                return wait as u64;
            }
        }
        0
    }

    /// The computed result and that of the full simulation, per quantile.
    fn both(run: &[(usize, usize)]) -> Vec<(f64, u64, u64)> {
        let lengths: Vec<u64> = run.iter().map(|one| one.1 as u64).collect();
        let runtime: usize = run.iter().map(|one| one.0 + one.1).sum();
        let moments = by_force(run);
        waits(&lengths, runtime as u64)
            .into_iter()
            .map(|(q, ns)| (q, ns, wait_by_force(&moments, q)))
            .collect()
    }

    proptest! {
        /// Lengths below 2,048 have separate cells, so that only rounding remains.
        #[test]
        fn waits_are_those_of_a_run_laid_out_in_full(
            run in proptest::collection::vec((0usize..3_000, 1usize..2_000), 1..60),
        ) {
            let found = both(&run);
            for (quantile, wait, forced) in &found {
                prop_assert!(wait.abs_diff(*forced) <= 1, "q {} is {}, by force {}", quantile, wait, forced);
                let longer = run.iter().filter(|one| one.1 as u64 >= *wait).count();
                prop_assert!(*wait == 0 || longer >= 6, "{} of {:?}", wait, run);
            }
            prop_assert!(found.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{:?}", found);
        }

        /// Cells of up to 16: half a cell of error, plus rounding.
        #[test]
        fn long_waits_err_by_less_than_half_a_cell(
            run in proptest::collection::vec((0usize..200, 2_048usize..20_000), 7..12),
        ) {
            for (quantile, wait, forced) in both(&run) {
                prop_assert!(wait.abs_diff(forced) <= 8 + 1, "q {} is {}, by force {}", quantile, wait, forced);
            }
        }

        #[test]
        fn hostile_figures_give_no_panic(
            lengths in proptest::collection::vec((1u64..1 << 41, any::<u64>()), 0..20), max: u64, runtime_ns: u128, threshold_ns: u64,
        ) {
            let mut held = Histogram::<u64>::new_with_bounds(1, 1 << 42, 3).unwrap();
            for (length, count) in lengths {
                held.saturating_record_n(length, count);
            }
            let lost = LostTime { lengths: Some(&held), length_ns_max: max, threshold_ns, runtime_ns };
            prop_assert!(time_percentiles(&lost).len() <= QUANTILES.len());
        }
    }
}
