//! Verdicts on the rounds of a comparison.

use super::{CompareRecord, CompareRun};
use crate::{
    pingpong::{control_moved, control_ratio},
    tools::ToolRow,
    unique,
    words::words,
};
use lowlat_host::statistics::MedianInterval;
use serde::{Deserialize, Serialize};

/// Result of a comparison, computed from its record.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CompareStudy {
    /// Ratio of the slowest to the fastest control between the same CPUs; `None` without two controls.
    pub control_ratio: Option<f64>,
    /// Reasons why no winner may be named.
    pub obstacles: Vec<Obstacle>,
    /// Each size that all sides measured; each size of any side if there is none, or if the outputs are imported.
    pub sizes: Vec<SizeComparison>,
}

/// Reason why no winner may be named.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Obstacle {
    /// The control moved ([`control_moved`]).
    /// - `ratio`: ratio of the slowest to the fastest control.
    ControlMoved { ratio: f64 },
    /// The runs were not measured in turn.
    NotInTurn,
    /// Fewer rounds than an interval needs.
    /// - `rounds`: rounds in which every side has a run.
    TooFewRounds { rounds: u32 },
    /// The sides have no size in common.
    NoCommonSize,
}

/// Figures of all sides for one message size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SizeComparison {
    /// The size, if it is known.
    pub size_bytes: Option<u32>,
    /// Each side, over its rounds.
    pub sides: Vec<SideFigures>,
    /// The sides after the first, each compared with the first.
    pub comparisons: Vec<Comparison>,
}

/// Medians of a side over its rounds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct SideFigures {
    /// Median of the rounds' medians.
    pub p50_ns: Option<f64>,
    /// Median of the rounds' means.
    pub mean_ns: Option<f64>,
    /// Median of the rounds' 99th percentiles.
    pub p99_ns: Option<f64>,
    /// Rounds with a row of this size.
    pub rounds: u32,
}

/// One side compared with the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Index of the side in the record.
    pub side: usize,
    /// The figures that both sides have.
    pub figures: Vec<Difference>,
}

/// One figure of a side relative to the first side's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    pub figure: Figure,
    /// This side's figure divided by the first side's, over rounds that both have.
    pub ratio: MedianInterval,
    pub verdict: Verdict,
}

words! {
    /// A figure of a run.
    Figure {
        P50 = "p50",
        Mean = "mean",
        P99 = "p99",
    }
}

/// Conclusion from the interval of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval is below 1.
    Faster,
    /// The whole interval is above 1.
    Slower,
    /// The interval contains 1. This does not prove that the sides are equal.
    NoDifferenceShown,
    /// The difference is smaller than the steps of a program's output.
    /// - `step_ns`: step of the coarser output, in nanoseconds.
    BelowSteps { step_ns: f64 },
    /// No winner may be named.
    NotJudged,
}

impl Figure {
    /// Returns its value in a run's row, and the steps of that value.
    fn of(self, row: &ToolRow) -> (Option<f64>, f64) {
        match self {
            Self::P50 => (row.p50_ns, row.quantile_step_ns),
            Self::Mean => (row.mean_ns, row.mean_step_ns),
            Self::P99 => (row.p99_ns, row.quantile_step_ns),
        }
    }
}

impl CompareStudy {
    pub fn of(record: &CompareRecord) -> Self {
        let record = &with_sizes(record);
        let control_ratio = control_ratio(record.controls());
        let common = common_sizes(record);
        let mut obstacles = Vec::new();
        let medians =
            record.runs.iter().flat_map(|run| &run.rows).filter_map(|row| row.p50_ns.or(row.mean_ns));
        if let Some(ratio) = control_moved(record.controls(), medians) {
            obstacles.push(Obstacle::ControlMoved { ratio });
        }
        if record.is_imported {
            obstacles.push(Obstacle::NotInTurn);
        }
        let rounds = complete_rounds(record);
        if rounds < MedianInterval::ROUNDS_MIN && !record.is_imported {
            obstacles.push(Obstacle::TooFewRounds { rounds });
        }
        if common.is_empty() {
            obstacles.push(Obstacle::NoCommonSize);
        }
        // Finished outputs are shown whole.
        let all = || unique(sizes_by_side(record).into_iter().flatten());
        let sizes = if record.is_imported || common.is_empty() { all() } else { common };
        let sizes = sizes.into_iter().map(|size| compare_size(record, size, obstacles.is_empty())).collect();
        Self { control_ratio, obstacles, sizes }
    }
}

/// Rounds in which every side has a run.
fn complete_rounds(record: &CompareRecord) -> u32 {
    let has = |round: u32, side: usize| runs_of(record, side).any(|run| run.round == round);
    let is_complete = |round: &u32| (0..record.sides.len()).all(|side| has(*round, side));
    let last = record.runs.iter().map(|run| run.round).max().map_or(0, |last| last.saturating_add(1));
    // Documents from elsewhere may name any round; each run is in one.
    let last = last.min(u32::try_from(record.runs.len()).unwrap_or(u32::MAX));
    u32::try_from((0..last).filter(is_complete).count()).unwrap_or(u32::MAX)
}

fn runs_of(record: &CompareRecord, side: usize) -> impl Iterator<Item = &CompareRun> {
    record.runs.iter().filter(move |run| usize::try_from(run.side) == Ok(side))
}

/// Sizes of each side, in the order of measurement.
fn sizes_by_side(record: &CompareRecord) -> Vec<Vec<Option<u32>>> {
    let sizes_of = |side: usize| {
        let rows = runs_of(record, side).flat_map(|run| &run.rows);
        unique(rows.map(|row| row.size_bytes))
    };
    (0..record.sides.len()).map(sizes_of).collect()
}

/// The record with a size for each row: a program that does not print its size measured that of the others, if each
/// side measured one.
fn with_sizes(record: &CompareRecord) -> CompareRecord {
    let mut record = record.clone();
    let all = sizes_by_side(&record);
    let mut known = all.iter().flatten().flatten();
    let size = known.next().copied();
    if all.iter().all(|sizes| sizes.len() == 1) && known.all(|other| Some(*other) == size) {
        let rows = record.runs.iter_mut().flat_map(|run| &mut run.rows);
        rows.for_each(|row| row.size_bytes = size);
    }
    record
}

/// The sizes that every side measured, in the order of the first.
fn common_sizes(record: &CompareRecord) -> Vec<Option<u32>> {
    let all = sizes_by_side(record);
    let Some((first, others)) = all.split_first() else { return Vec::new() };
    let is_common = |size: &&Option<u32>| others.iter().all(|sizes| sizes.contains(size));
    first.iter().filter(is_common).copied().collect()
}

fn row_of(run: &CompareRun, size: Option<u32>) -> Option<&ToolRow> {
    run.rows.iter().find(|row| row.size_bytes == size)
}

fn compare_size(record: &CompareRecord, size: Option<u32>, may_judge: bool) -> SizeComparison {
    let sides = 0..record.sides.len();
    let comparison = |side: usize| {
        let of = |figure: Figure| Difference::of(figure, &pairs_of(record, size, side, figure), may_judge);
        Comparison { side, figures: Figure::ALL.iter().copied().filter_map(of).collect() }
    };
    SizeComparison {
        size_bytes: size,
        comparisons: sides.clone().skip(1).map(comparison).collect(),
        sides: sides.map(|side| figures_of(record, size, side)).collect(),
    }
}

fn figures_of(record: &CompareRecord, size: Option<u32>, place: usize) -> SideFigures {
    let rows: Vec<&ToolRow> = runs_of(record, place).filter_map(|run| row_of(run, size)).collect();
    let over = |figure: Figure| {
        let values: Option<Vec<f64>> = rows.iter().map(|row| figure.of(row).0).collect();
        median(values?)
    };
    SideFigures {
        p50_ns: over(Figure::P50),
        mean_ns: over(Figure::Mean),
        p99_ns: over(Figure::P99),
        rounds: u32::try_from(rows.len()).unwrap_or(u32::MAX),
    }
}

/// A median; `None` without values.
fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    MedianInterval::of(&values.into_iter().collect::<Vec<_>>()).map(|of| of.median)
}

/// A figure of both sides in one round, with the larger of their steps, in nanoseconds.
struct Pair {
    first: f64,
    other: f64,
    step: f64,
}

/// The rounds in which both the first side and another have a figure.
fn pairs_of(record: &CompareRecord, size: Option<u32>, place: usize, figure: Figure) -> Vec<Pair> {
    let value = |run: &CompareRun| row_of(run, size).map(|row| figure.of(row));
    let pair = |run: &CompareRun| {
        let first = runs_of(record, 0).find(|first| first.round == run.round)?;
        let ((first, first_step), (other, other_step)) = (value(first)?, value(run)?);
        Some(Pair { first: first?, other: other?, step: first_step.max(other_step) })
    };
    runs_of(record, place).filter_map(pair).collect()
}

impl Difference {
    /// Compares two sides round by round. `None` without a round.
    fn of(figure: Figure, pairs: &[Pair], may_judge: bool) -> Option<Self> {
        let ratios: Vec<f64> = pairs.iter().map(|pair| pair.other / pair.first).collect();
        let ratio = MedianInterval::of(&ratios)?;
        let (first, other) =
            (median(pairs.iter().map(|pair| pair.first))?, median(pairs.iter().map(|pair| pair.other))?);
        let step_ns = pairs.iter().map(|pair| pair.step).fold(0.0, f64::max);
        let is_different = ratio.low > 1.0 || ratio.high < 1.0;
        let verdict = if !(may_judge && ratio.is_interval()) {
            Verdict::NotJudged
        } else if is_different && (first - other).abs() <= step_ns {
            Verdict::BelowSteps { step_ns }
        } else if ratio.high < 1.0 {
            Verdict::Faster
        } else if ratio.low > 1.0 {
            Verdict::Slower
        } else {
            Verdict::NoDifferenceShown
        };
        Some(Self { figure, ratio, verdict })
    }
}

#[cfg(test)]
mod tests;
