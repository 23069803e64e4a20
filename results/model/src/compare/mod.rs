//! Comparison of two measurements: did a change help, and which causes disappeared?
//!
//! Pure: records are compared without the machines that they came from. Every verdict is based on an
//! interval; if nothing can be shown, it says so.

mod causes;
mod dispersion;
mod documents;
mod doubts;
mod explain;
mod harm;
mod limit;
mod ratio;
mod resample;
mod side;
mod side_by_side;
#[cfg(test)]
mod tests;

pub use causes::{CauseComparison, CauseFigures, CauseVerdict};
pub use documents::{SettingChange, compare_documents, compare_settings};
pub use explain::{Direction, Explanation};
pub use harm::{Harm, HarmVerdict, MARGIN, Quantity, QuantityHarm, SECONDS_MIN};
pub use limit::{Limit, LimitOutcome, LimitVerdict, LimitedQuantity};
pub use ratio::{RateRatio, RateVerdict};
pub use resample::{LengthVerdict, PercentileDifference};
pub use side_by_side::{DocumentFigures, JitterFigures, SideBySide};

use crate::ResultDocument;
use lowlat_host::{CpuId, CpuSet, diff::Difference, statistics::RateInterval};
use lowlat_jitter::{JitterRecord, JitterStudy, LengthCells, Percentile, StudyError};
use lowlat_workload::{WorkloadChange, WorkloadRecord, between};
use serde::{Deserialize, Serialize};
use side::Side;
use std::borrow::Cow;

/// Reason why two measurements cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ComparisonError {
    /// A side has no document.
    #[error(
        "cannot compare: no document from {0} the change\nhint: name at least one document for each side"
    )]
    NoRun(SideName),
    /// A document without a jitter measurement.
    /// - `started_at`: start of the run of that document.
    #[error(
        "cannot compare: a document from {side} the change ({started_at}, `lowlat {command}`) contains no jitter \
         measurement\nhint: name one written by `lowlat jitter` or `lowlat assess`"
    )]
    NoMeasurement { side: SideName, started_at: String, command: String },
    /// The runs are of different kinds.
    #[error(
        "cannot compare: one run measured wake-ups, and another interruptions, or wake-ups at another interval\nhint: name runs with the same --wake-every"
    )]
    Wakes,
    /// The record of a side is damaged.
    /// - `side`: the side of the damaged record.
    #[error("{side} the change: {source}")]
    Study { side: SideName, source: StudyError },
}

/// The two sides of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SideName {
    Before,
    After,
}

impl std::fmt::Display for SideName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Before => "before",
            Self::After => "after",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Comparison {
    pub before: Vec<RunSummary>,
    pub after: Vec<RunSummary>,
    /// The CPUs measured in every run: only these are compared. Empty if there are none; then all CPUs of one
    /// side are compared with all of the other.
    pub cpus: CpuSet,
    /// Interruptions of at least this length are compared: the highest threshold of any run.
    pub threshold_ns: u64,
    pub harm: Harm,
    /// Interruptions over all compared CPUs.
    pub all: Compared,
    /// Each CPU that was measured on both sides, in order of their numbers.
    pub by_cpu: Vec<CpuComparison>,
    /// Percentiles over time that both sides support, and that lie above the thresholds if these differ; empty if a
    /// side has several runs.
    pub time_percentiles: Vec<PercentilePair>,
    /// Quantiles over time that only one side supports, or that lie below the higher threshold: not compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time_quantiles_left_out: Vec<f64>,
    /// Percentiles over interruptions that both sides support; empty if thresholds differ or a side has
    /// several runs. They describe only the lengths: with fewer interruptions they may well be longer.
    pub percentiles: Vec<PercentilePair>,
    /// Causes, those with the most time per core-second on either side first; empty unless both sides have
    /// them from the same source.
    pub causes: Vec<CauseComparison>,
    /// Workloads that both sides counted; `None` unless both measured some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workloads: Option<Vec<WorkloadChange>>,
    /// Settings with a different verdict or value; empty if bare records are compared.
    pub setting_changes: Vec<SettingChange>,
    /// The same settings, ranked by how well they explain the measured difference.
    pub explanations: Vec<Explanation>,
    /// Other facts of the host that changed, at most [`DIFFERENCES_MAX`].
    pub differences: Vec<Difference>,
    /// Number of changed facts beyond these.
    pub differences_cut_count: u64,
    /// Limits of the comparison: what it does not show, or shows less surely than it seems to. One sentence each.
    pub doubts: Vec<String>,
}

/// Maximum number of facts in [`Comparison::differences`].
pub const DIFFERENCES_MAX: usize = 50;

/// One run of a side.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunSummary {
    /// Start, RFC 3339, UTC; empty if a bare record is compared.
    pub started_at: String,
    /// The kernel's release; empty if unknown.
    pub kernel: String,
    /// True if the document has a measurement of interruptions, compared or not.
    pub is_measured: bool,
    /// The CPUs that were measured.
    pub cpus: CpuSet,
    /// Length of the run ([`JitterRecord::ran_ns`]).
    pub duration_ns: u64,
    /// The threshold of this run.
    pub threshold_ns: u64,
    /// The counter that was read.
    pub counter: String,
    /// Real-time priority of the samplers; `None` for ordinary threads.
    pub real_time: Option<String>,
}

/// Interruptions before and after the change.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Compared {
    pub before: Figures,
    pub after: Figures,
    /// The rate after relative to the rate before.
    pub rate: RateRatio,
}

/// Figures of interruptions on one side.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Interruptions of at least [`Comparison::threshold_ns`].
    pub count: u64,
    /// Sampled time over the CPUs.
    pub core_seconds: f64,
    /// Interruptions per core-second, with the interval of independent events; `None` if nothing was sampled.
    pub rate: Option<RateInterval>,
    /// Share of the sampled time that they took, 0 to 1; `None` if nothing was sampled or thresholds differ.
    pub lost_share: Option<f64>,
    /// The longest; `None` if there was none.
    pub length_ns_max: Option<u64>,
}

/// One CPU before and after.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuComparison {
    pub cpu: CpuId,
    #[serde(flatten)]
    pub compared: Compared,
}

/// One percentile before and after.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PercentilePair {
    /// The quantile: 0.99 for p99.
    pub quantile: f64,
    pub before_ns: u64,
    pub after_ns: u64,
    /// Its difference; `None` if no interval can be given.
    pub difference: Option<PercentileDifference>,
}

impl Comparison {
    /// True if a side has a rate of interruptions.
    pub fn has_rates(&self) -> bool {
        self.all.before.rate.is_some() || self.all.after.rate.is_some()
    }

    /// Adds the workloads of documents that have some.
    fn add_workloads(&mut self, before: &[&ResultDocument], after: &[&ResultDocument]) {
        let [a, b] = [before, after].map(|side| {
            side.iter().filter_map(|of| Some(&of.workload()?.record)).collect::<Vec<&WorkloadRecord>>()
        });
        let are_both = !a.is_empty() && !b.is_empty();
        self.workloads = are_both.then(|| between(&a, &b, &mut self.doubts));
    }
}

/// Compares runs of two sides, pooled per side: for A B A B that is (A, A) and (B, B).
///
/// # Errors
/// [`ComparisonError::NoRun`] if a side has none, [`ComparisonError::Wakes`] if the runs are of different kinds,
/// [`ComparisonError::Study`] if a record is damaged.
pub fn compare_runs(
    before: &[&JitterRecord],
    after: &[&JitterRecord],
) -> Result<Comparison, ComparisonError> {
    for (runs, side) in [(before, SideName::Before), (after, SideName::After)] {
        if runs.is_empty() {
            return Err(ComparisonError::NoRun(side));
        }
    }
    let mut all = before.iter().chain(after);
    if all.next().is_some_and(|first| all.any(|run| run.wake_every_ns != first.wake_every_ns)) {
        return Err(ComparisonError::Wakes);
    }
    let cpus = side::common_cpus(before.iter().chain(after).copied());
    let threshold_ns = before.iter().chain(after).map(|run| run.threshold_ns).max().unwrap_or(0);
    let side_of = |runs, side| {
        Side::of(runs, &cpus, threshold_ns).map_err(|source| ComparisonError::Study { side, source })
    };
    let (a, b) = (side_of(before, SideName::Before)?, side_of(after, SideName::After)?);
    let harm = Harm::of([before, after], &cpus, harm::WANTED);
    let all = compared(&a, &b, None);
    let has_one_threshold = before.iter().chain(after).all(|run| run.threshold_ns == threshold_ns);
    let mut time_percentiles = pairs(&a, &b, |study| &study.all.time_percentiles);
    if !has_one_threshold {
        // Below the higher threshold, only one side counted everything that makes a thread wait.
        time_percentiles.retain(|pair| pair.before_ns.min(pair.after_ns) >= threshold_ns);
    }
    let time_quantiles_left_out = left_out(&a, &b, &time_percentiles);
    let mut comparison = Comparison {
        before: before.iter().map(|run| summary(run)).collect(),
        after: after.iter().map(|run| summary(run)).collect(),
        threshold_ns,
        harm,
        all,
        by_cpu: a.cpus().intersection(&b.cpus()).iter().map(|cpu| by_cpu(&a, &b, cpu)).collect(),
        time_percentiles,
        time_quantiles_left_out,
        percentiles: if has_one_threshold {
            pairs(&a, &b, |study| &study.all.percentiles)
        } else {
            Vec::new()
        },
        causes: if has_one_threshold { causes::compare(&a, &b, all.rate.dispersion) } else { Vec::new() },
        cpus,
        ..Comparison::default()
    };
    add_intervals(&mut comparison, &a, &b)?;
    comparison.doubts = doubts::of(&comparison, &a, &b);
    Ok(comparison)
}

/// Adds the intervals of the differences of percentiles.
fn add_intervals(comparison: &mut Comparison, a: &Side, b: &Side) -> Result<(), ComparisonError> {
    let ([before], [after]) = (a.runs.as_slice(), b.runs.as_slice()) else { return Ok(()) };
    let cells_of = |run, side| LengthCells::of(run).map_err(|source| ComparisonError::Study { side, source });
    let (before, after) = (cells_of(before, SideName::Before)?, cells_of(after, SideName::After)?);
    let Comparison { time_percentiles, percentiles, all, .. } = comparison;
    resample::add_intervals([time_percentiles, percentiles], [&before, &after], all.rate.dispersion);
    Ok(())
}

fn by_cpu(a: &Side, b: &Side, cpu: CpuId) -> CpuComparison {
    CpuComparison { cpu, compared: compared(a, b, Some(cpu)) }
}

/// One CPU of both sides, or all.
fn compared(a: &Side, b: &Side, cpu: Option<CpuId>) -> Compared {
    let dispersion = dispersion::greater(a.dispersion(cpu), b.dispersion(cpu));
    let (before, after) = (a.figures(cpu), b.figures(cpu));
    let tally = |figures: &Figures| ratio::Tally { count: figures.count, exposure_s: figures.core_seconds };
    Compared { before, after, rate: RateRatio::of(tally(&before), tally(&after), dispersion) }
}

/// Returns the study of a document's run; empty if it was not studied.
fn study_of(document: &ResultDocument) -> Cow<'_, JitterStudy> {
    let study = document.jitter().and_then(|measured| measured.study.as_ref());
    study.map_or_else(|| Cow::Owned(JitterStudy::default()), Cow::Borrowed)
}

fn summary(run: &JitterRecord) -> RunSummary {
    RunSummary {
        is_measured: true,
        cpus: side::cpus_of(run),
        duration_ns: run.ran_ns(),
        threshold_ns: run.threshold_ns,
        counter: run.counter.clone(),
        real_time: run.real_time.clone(),
        ..RunSummary::default()
    }
}

/// Quantiles over time that a side supports and that are not among the compared ones.
fn left_out(a: &Side, b: &Side, compared: &[PercentilePair]) -> Vec<f64> {
    let ([a], [b]) = (a.studies.as_slice(), b.studies.as_slice()) else { return Vec::new() };
    let is_same = |x: f64, y: f64| (x - y).abs() < 1e-12;
    let mut left_out: Vec<f64> = Vec::new();
    for of in a.all.time_percentiles.iter().chain(&b.all.time_percentiles) {
        let is_known = compared.iter().any(|pair| is_same(pair.quantile, of.quantile))
            || left_out.iter().any(|known| is_same(*known, of.quantile));
        if !is_known {
            left_out.push(of.quantile);
        }
    }
    left_out.sort_by(f64::total_cmp);
    left_out
}

/// The percentiles that both sides support.
fn pairs(a: &Side, b: &Side, of: fn(&JitterStudy) -> &Vec<Percentile>) -> Vec<PercentilePair> {
    let ([a], [b]) = (a.studies.as_slice(), b.studies.as_slice()) else { return Vec::new() };
    let pair = |before: &Percentile| {
        let is_same = |after: &&Percentile| (after.quantile - before.quantile).abs() < 1e-12;
        let after = of(b).iter().find(is_same)?;
        Some(PercentilePair {
            quantile: before.quantile,
            before_ns: before.length_ns,
            after_ns: after.length_ns,
            difference: None,
        })
    };
    of(a).iter().filter_map(pair).collect()
}
