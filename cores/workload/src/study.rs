//! Statistics over the rounds of a record.

use crate::{Cell, CellRun, WorkloadRecord};
use lowlat_host::statistics::MedianInterval;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering::Equal;

/// Conclusion from a ratio of rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is above 1.
    Faster,
    /// The whole interval is below 1.
    Slower,
    /// The interval contains 1. This does not prove equality.
    NoDifferenceShown,
    /// There are too few rounds for an interval.
    #[default]
    TooFewRounds,
    /// A side counted nothing in so many rounds that the interval has no end.
    NothingCounted,
}

/// Judges a ratio of rates. A side that counts nothing in nearly all rounds is slower, whichever it is; one that counts
/// nothing in some of them gets no verdict.
pub fn verdict(ratio: &MedianInterval) -> Verdict {
    match ratio {
        _ if !ratio.is_interval() => Verdict::TooFewRounds,
        _ if ratio.low > UNBOUNDED => Verdict::Faster,
        _ if ratio.high <= 0.0 => Verdict::Slower,
        _ if ratio.high > UNBOUNDED || ratio.low <= 0.0 => Verdict::NothingCounted,
        _ if ratio.low > 1.0 => Verdict::Faster,
        _ if ratio.high < 1.0 => Verdict::Slower,
        _ => Verdict::NoDifferenceShown,
    }
}

/// A ratio above this has no number: one side counted nothing.
pub const UNBOUNDED: f64 = f64::MAX / 4.0;

/// Fewest runs of a hump, and the least distance between two: the lowest rate of the upper is this many times the
/// highest of the lower.
const HUMP_MIN: usize = 2;
const HUMP_DISTANCE: f64 = 1.05;
/// The gap between two humps is at least this many times as wide as the humps, divided by the number of runs. Of 7
/// rates with one hump, 2 % look as if they had two; of 12, 0.3 %.
const HUMP_GAP: f64 = 10.0;

impl WorkloadRecord {
    /// Operations per second of a cell, over its rounds.
    pub fn rate(&self, cell: usize) -> Option<MedianInterval> {
        MedianInterval::of(&self.rates(cell).map(|(_, rate)| rate).collect::<Vec<_>>())
    }

    /// Bytes per second of a cell, over its rounds.
    pub fn bytes(&self, cell: usize) -> Option<MedianInterval> {
        self.over(cell, |run| run.bytes_per_s)
    }

    /// Median and 99th percentile of the time of one operation, in nanoseconds: medians over the rounds.
    pub fn latency_ns(&self, cell: usize) -> Option<[f64; 2]> {
        let p50 = self.over(cell, |run| Some(run.latency?.p50_ns))?;
        Some([p50.median, self.over(cell, |run| Some(run.latency?.p99_ns))?.median])
    }

    fn over(&self, cell: usize, value: fn(&CellRun) -> Option<f64>) -> Option<MedianInterval> {
        let runs = self.runs.iter().filter(|run| usize::try_from(run.cell) == Ok(cell));
        MedianInterval::of(&runs.filter_map(value).collect::<Vec<_>>())
    }

    /// Rate of one cell divided by that of another, round by round. Rounds that lack one of them, or in which neither
    /// counted anything, do not count. If only one counted, the ratio is 0 or unbounded ([`UNBOUNDED`]), whichever
    /// side it is.
    pub fn ratio(&self, cell: usize, to: usize) -> Option<MedianInterval> {
        let ratio = |(round, rate): (u32, f64)| {
            let (_, other) = self.rates(to).find(|(other, _)| *other == round)?;
            match (rate > 0.0, other > 0.0) {
                (false, false) => None,
                (_, true) => Some(rate / other),
                (true, false) => Some(f64::MAX),
            }
        };
        MedianInterval::of(&self.rates(cell).filter_map(ratio).collect::<Vec<_>>())
    }

    /// Rounds in which a cell counted nothing, and all of its rounds.
    pub fn empty_rounds(&self, cell: usize) -> [usize; 2] {
        [self.rates(cell).filter(|(_, rate)| *rate <= 0.0).count(), self.rates(cell).count()]
    }

    /// The middles of two humps of a cell's rates; `None` if they have one, or are too few.
    pub fn humps(&self, cell: usize) -> Option<[f64; 2]> {
        let mut rates: Vec<f64> = self.rates(cell).map(|(_, rate)| rate).collect();
        if rates.len() < MedianInterval::ROUNDS_MIN as usize {
            return None;
        }
        rates.sort_by(f64::total_cmp);
        let width = |of: &[f64]| Some(of.last()? - of.first()?);
        let gap = |at: &usize| Some(rates.get(*at)? - rates.get(*at - 1)?);
        let fewest = HUMP_MIN.max(rates.len().div_ceil(4));
        let at =
            (fewest..=rates.len() - fewest).max_by(|a, b| gap(a).partial_cmp(&gap(b)).unwrap_or(Equal))?;
        let (lower, upper) = rates.split_at_checked(at)?;
        let is_far = *upper.first()? > HUMP_DISTANCE * lower.last()?;
        let is_wide = gap(&at)? * rates.len() as f64 > HUMP_GAP * (width(lower)? + width(upper)?);
        let middle = |of: &[f64]| MedianInterval::of(of).map_or(0.0, |of| of.median);
        (is_far && is_wide).then(|| [middle(lower), middle(upper)])
    }

    /// Pairs of cells of one workload and number of copies, in the order of the cells.
    pub fn pairs(&self) -> Vec<[usize; 2]> {
        let cells_of = |row: (&str, u32)| -> Vec<usize> {
            let is_it = |(_, cell): &(usize, &Cell)| (cell.workload.as_str(), cell.copies) == row;
            self.cells.iter().enumerate().filter(is_it).map(|(place, _)| place).collect()
        };
        self.rows().into_iter().filter_map(|row| cells_of(row).try_into().ok()).collect()
    }

    pub(crate) fn rates(&self, cell: usize) -> impl Iterator<Item = (u32, f64)> {
        let runs = self.runs.iter().filter(move |run| usize::try_from(run.cell) == Ok(cell));
        runs.map(|run| (run.round, run.per_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(pairs: &[(f64, f64)]) -> WorkloadRecord {
        let run = |round: usize, cell: u32, per_s: f64| CellRun {
            round: u32::try_from(round).unwrap(),
            cell,
            per_s,
            ..CellRun::default()
        };
        let runs =
            pairs.iter().enumerate().flat_map(|(round, (a, b))| [run(round, 0, *a), run(round, 1, *b)]);
        WorkloadRecord { runs: runs.collect(), ..WorkloadRecord::default() }
    }

    #[test]
    fn ratios_are_of_rounds_and_need_six_of_them() {
        // The host is half as fast in every second round.
        let pairs: Vec<(f64, f64)> =
            (0..8).map(|round| if round % 2 == 0 { (100.0, 300.0) } else { (50.0, 150.0) }).collect();
        let ratio = record(&pairs).ratio(1, 0).unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (3.0, 3.0, 3.0));
        assert_eq!(verdict(&ratio), Verdict::Faster);
        let back = record(&pairs).ratio(0, 1).unwrap();
        assert_eq!(verdict(&back), Verdict::Slower);
        assert_eq!(verdict(&record(&pairs[..5]).ratio(1, 0).unwrap()), Verdict::TooFewRounds);
        let unclear: Vec<(f64, f64)> = (0..8).map(|round| (100.0, 96.0 + f64::from(round))).collect();
        assert_eq!(verdict(&record(&unclear).ratio(1, 0).unwrap()), Verdict::NoDifferenceShown);
    }

    #[test]
    fn rounds_without_both_and_rates_of_nothing_do_not_count() {
        let mut record = record(&[(100.0, 200.0), (0.0, 0.0), (100.0, 300.0)]);
        record.runs.retain(|run| (run.round, run.cell) != (2, 1));
        assert_eq!(record.ratio(1, 0).unwrap().rounds, 1);
        assert_eq!(record.rate(7), None);
    }

    #[test]
    fn a_side_that_counts_nothing_is_judged_alike_whichever_it_is() {
        for (empty, rounds) in [(15, 15), (8, 15), (12, 15), (3, 15), (1, 7), (4, 9), (1, 9), (7, 7), (4, 8)]
        {
            let noise = |round: u32| 100.0 + f64::from(round * 7 % 5);
            let pairs: Vec<(f64, f64)> = (0..rounds)
                .map(|round| (if round < empty { 0.0 } else { noise(round) }, noise(round + 1)))
                .collect();
            let mirror: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
            let of = |pairs: &[(f64, f64)]| record(pairs).ratio(1, 0).unwrap();
            let (there, back) = (of(&pairs), of(&mirror));
            let opposite = match verdict(&there) {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                other => other,
            };
            assert_eq!((verdict(&back), back.rounds), (opposite, there.rounds), "{empty} of {rounds}");
            // The other rounds have no effect on it.
            let expected = match (empty, rounds) {
                (15 | 12, 15) | (7, 7) => Verdict::Faster,
                (1, 9) | (3, 15) => Verdict::NoDifferenceShown,
                _ => Verdict::NothingCounted,
            };
            assert_eq!(verdict(&there), expected, "{empty} of {rounds}");
            assert_eq!(record(&pairs).empty_rounds(0), [empty as usize, rounds as usize]);
            assert_eq!(there.median > UNBOUNDED, 2 * empty >= rounds, "{empty} of {rounds}: {there:?}");
        }
        let both = record(&[(0.0, 0.0); 7]);
        assert_eq!((both.ratio(1, 0), both.rate(0).unwrap().median), (None, 0.0));
    }

    #[test]
    fn two_humps_are_told_from_noise() {
        let humps = |rates: &[f64]| {
            record(&rates.iter().map(|rate| (*rate, 1.0)).collect::<Vec<_>>())
                .humps(0)
                .map(|of| of.map(f64::round))
        };
        assert_eq!(humps(&[100.0, 84.0, 101.0, 85.0, 99.0, 83.0, 100.0]), Some([84.0, 100.0]));
        assert_eq!(humps(&[84.0, 85.0, 86.0, 150.0, 149.0, 84.0, 85.0, 151.0, 85.0]), Some([85.0, 150.0]));
        assert_eq!(humps(&[84.0, 88.0, 91.0, 95.0, 98.0, 101.0, 105.0]), None);
        assert_eq!(humps(&[100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 30.0]), None, "one odd round");
        assert_eq!(humps(&[100.0, 80.0, 100.0, 80.0]), None, "too few");
        assert_eq!(humps(&[0.0; 7]), None);
        assert_eq!(humps(&[0.0, 0.0, 0.0, 0.0, 90.0, 91.0, 92.0]), Some([0.0, 91.0]));
    }
}
