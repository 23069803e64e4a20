//! Workloads of two runs: before and after a change of what one run cannot change, such as the kernel or the firmware.

use crate::{Cell, Setting, Verdict, WorkloadRecord, verdict};
use lowlat_host::statistics::MedianInterval;
use serde::{Deserialize, Serialize};

/// Rates of one workload before and after.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkloadChange {
    pub workload: String,
    /// The counted unit: "round trips".
    pub unit: String,
    pub copies: u32,
    pub setting: Setting,
    /// Operations per second before: median.
    pub before_per_s: f64,
    /// Operations per second after: median.
    pub after_per_s: f64,
    /// The rate after divided by the rate before, with the interval that those of both medians allow.
    pub ratio: MedianInterval,
    /// Verdict on the ratio; `Faster`: after the change.
    pub verdict: Verdict,
}

/// Compares every workload that both sides measured with the same copies under the same setting. The rounds of a side's
/// runs are pooled; with as many runs as an interval takes rounds, each run is one value instead. `doubts` gets a
/// sentence, without a full stop, for what is left out or less certain.
pub fn between(
    before: &[&WorkloadRecord],
    after: &[&WorkloadRecord],
    doubts: &mut Vec<String>,
) -> Vec<WorkloadChange> {
    let mut cells: Vec<&Cell> = Vec::new();
    for cell in before.iter().chain(after).flat_map(|record| &record.cells) {
        let is_it =
            |of: &&Cell| (&of.workload, of.copies, of.setting) == (&cell.workload, cell.copies, cell.setting);
        if !cells.iter().any(is_it) {
            cells.push(cell);
        }
    }
    let (mut changes, mut alone) = (Vec::new(), Vec::new());
    for cell in cells {
        let [a, b] = [before, after].map(|side| MedianInterval::of(&values(side, cell)));
        match a.zip(b).and_then(|(a, b)| Some((a, b, ratio(&b, &a)?))) {
            Some((a, b, ratio)) => changes.push(WorkloadChange {
                workload: cell.workload.clone(),
                unit: cell.unit.clone(),
                copies: cell.copies,
                setting: cell.setting,
                before_per_s: a.median,
                after_per_s: b.median,
                ratio,
                verdict: verdict(&ratio),
            }),
            None => alone.push(format!("{} x {} with {}", cell.workload, cell.copies, cell.setting)),
        }
    }
    if !alone.is_empty() {
        doubts.push(format!("not counted on both sides, so not compared: {}", alone.join(", ")));
    }
    let is_pooled = !has_many(before) || !has_many(after);
    if !changes.is_empty() && is_pooled {
        doubts.push(format!(
            "the intervals of the workloads are those of rounds: what differs from run to run, or from boot to boot, is not in \
             them unless each side has {} runs (--pairs)",
            MedianInterval::ROUNDS_MIN
        ));
    }
    changes
}

/// True if a side has enough runs to use each as one value.
fn has_many(side: &[&WorkloadRecord]) -> bool {
    side.len() >= MedianInterval::ROUNDS_MIN as usize
}

/// The values of a side: rates of all rounds, or medians of runs if there are enough.
fn values(side: &[&WorkloadRecord], of: &Cell) -> Vec<f64> {
    let found =
        side.iter().filter_map(|record| Some((record, record.find(&of.workload, of.copies, of.setting)?)));
    if has_many(side) {
        return found.filter_map(|(record, cell)| Some(record.rate(cell)?.median)).collect();
    }
    found.flat_map(|(record, cell)| record.rates(cell).map(|(_, rate)| rate)).collect()
}

/// The ratio of two independent medians, from the lowest to the highest that both intervals allow: wider than 95 %.
/// `None` if neither side counted anything.
fn ratio(of: &MedianInterval, to: &MedianInterval) -> Option<MedianInterval> {
    let over = |a: f64, b: f64| if b > 0.0 { a / b } else { f64::MAX };
    (of.high > 0.0 || to.high > 0.0).then(|| MedianInterval {
        median: if of.median > 0.0 { over(of.median, to.median) } else { 0.0 },
        low: if of.low > 0.0 { over(of.low, to.high) } else { 0.0 },
        high: if of.high > 0.0 { over(of.high, to.low) } else { 0.0 },
        rounds: of.rounds.min(to.rounds),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CellRun, Place};

    fn record(workloads: &[&str], rates: &[f64]) -> WorkloadRecord {
        let cell = |name: &&str| Cell { workload: (*name).to_owned(), copies: 1, ..Cell::default() };
        let run = |(round, rate): (usize, &f64)| CellRun {
            round: u32::try_from(round).unwrap(),
            per_s: *rate,
            ..CellRun::default()
        };
        WorkloadRecord {
            cells: workloads.iter().map(cell).collect(),
            runs: rates.iter().enumerate().map(run).collect(),
            ..WorkloadRecord::default()
        }
    }

    fn rates(middle: f64, count: u32) -> Vec<f64> {
        (0..count).map(|round| middle * (1.0 + 0.01 * f64::from(round * 5 % 7))).collect()
    }

    #[test]
    fn a_verdict_takes_rounds_that_do_not_overlap() {
        let of = |a: &[f64], b: &[f64]| {
            let changes = between(&[&record(&["pipe"], a)], &[&record(&["pipe"], b)], &mut Vec::new());
            changes.first().map(|change| change.verdict)
        };
        assert_eq!(of(&rates(100.0, 7), &rates(120.0, 7)), Some(Verdict::Faster));
        assert_eq!(of(&rates(100.0, 7), &rates(90.0, 9)), Some(Verdict::Slower));
        assert_eq!(of(&rates(100.0, 7), &rates(100.5, 7)), Some(Verdict::NoDifferenceShown));
        assert_eq!(of(&rates(100.0, 7), &rates(120.0, 5)), Some(Verdict::TooFewRounds));
        assert_eq!(of(&rates(100.0, 7), &[0.0; 7]), Some(Verdict::Slower));
        assert_eq!(of(&[0.0; 7], &rates(100.0, 7)), Some(Verdict::Faster));
        assert_eq!(of(&[0.0; 7], &[0.0; 7]), None);
        assert_eq!(of(&[], &rates(100.0, 7)), None);
        let some = [0.0, 0.0, 0.0, 99.0, 101.0, 98.0, 100.0];
        assert_eq!(of(&some, &rates(100.0, 7)), Some(Verdict::NothingCounted));
        assert_eq!(of(&rates(100.0, 7), &some), Some(Verdict::NothingCounted));
    }

    #[test]
    fn what_one_side_lacks_is_said_and_runs_are_values_when_there_are_enough() {
        let mut doubts = Vec::new();
        let mut other = record(&["pipe", "futex"], &rates(100.0, 7));
        other.cells[0].setting.place = Place::One;
        let changes = between(&[&record(&["pipe"], &rates(100.0, 7))], &[&other], &mut doubts);
        assert!(changes.is_empty());
        assert_eq!(
            doubts,
            [
                "not counted on both sides, so not compared: pipe x 1 with place=kernel, pipe x 1 with place=one, \
              futex x 1 with place=kernel"
            ]
        );
        doubts.clear();
        // The rounds of a run agree, and the runs do not.
        let runs: Vec<WorkloadRecord> =
            [90.0, 110.0, 100.0, 80.0, 120.0, 105.0].map(|of| record(&["pipe"], &rates(of, 7))).into();
        let all: Vec<&WorkloadRecord> = runs.iter().collect();
        assert_eq!(between(&all, &all, &mut doubts)[0].ratio.rounds, 6);
        assert!(doubts.is_empty(), "{doubts:?}");
        assert_eq!(between(&all[..1], &all[1..2], &mut doubts)[0].verdict, Verdict::Faster);
        assert!(doubts[0].contains("from boot to boot"), "{doubts:?}");
    }
}
