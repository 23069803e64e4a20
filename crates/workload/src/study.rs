//! What the rounds show.

use crate::WorkloadRecord;
use lowlat_host::statistics::MedianInterval;

/// What a ratio of rates shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval is above 1.
    Faster,
    /// The whole interval is below 1.
    Slower,
    /// The interval contains 1. This does not prove equality.
    NoDifferenceShown,
    /// There are too few rounds for an interval.
    TooFewRounds,
}

/// Judges a ratio of rates.
pub fn verdict(ratio: &MedianInterval) -> Verdict {
    match ratio {
        _ if !ratio.is_interval() => Verdict::TooFewRounds,
        _ if ratio.low > 1.0 => Verdict::Faster,
        _ if ratio.high < 1.0 => Verdict::Slower,
        _ => Verdict::NoDifferenceShown,
    }
}

impl WorkloadRecord {
    /// Operations per second of a cell, over its rounds.
    pub fn rate(&self, cell: usize) -> Option<MedianInterval> {
        MedianInterval::of(&self.rates(cell).map(|(_, rate)| rate).collect::<Vec<_>>())
    }

    /// Bytes per second of a cell, over its rounds.
    pub fn bytes(&self, cell: usize) -> Option<MedianInterval> {
        let runs = self.runs.iter().filter(|run| usize::try_from(run.cell) == Ok(cell));
        MedianInterval::of(&runs.filter_map(|run| run.bytes_per_s).collect::<Vec<_>>())
    }

    /// Rate of one cell divided by that of another, round by round. Rounds that lack one of them do not count.
    pub fn ratio(&self, cell: usize, to: usize) -> Option<MedianInterval> {
        let ratio = |(round, rate): (u32, f64)| {
            let (_, other) = self.rates(to).find(|(other, _)| *other == round)?;
            (other > 0.0).then_some(rate / other)
        };
        MedianInterval::of(&self.rates(cell).filter_map(ratio).collect::<Vec<_>>())
    }

    fn rates(&self, cell: usize) -> impl Iterator<Item = (u32, f64)> {
        let runs = self.runs.iter().filter(move |run| usize::try_from(run.cell) == Ok(cell));
        runs.map(|run| (run.round, run.per_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CellRun;

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
        let mut record = record(&[(100.0, 200.0), (0.0, 200.0), (100.0, 300.0)]);
        record.runs.retain(|run| (run.round, run.cell) != (2, 1));
        assert_eq!(record.ratio(1, 0).unwrap().rounds, 1);
        assert_eq!(record.rate(7), None);
    }
}
