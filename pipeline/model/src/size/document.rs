//! The answer with what it rests on.

use super::{Answer, Capacity, CapacityGoal, Costs, Load, Placement, Prediction};
use crate::{
    PipelineRecord,
    matrix::{SpeedVerdict, StageRange, compare},
};
use serde::{Deserialize, Serialize};

/// A point at which the prediction was compared with a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckedPoint {
    pub load: Load,
    /// Prediction; `None` when the model says that a CPU has more work than time.
    pub predicted: Option<Prediction>,
    pub measured: PipelineRecord,
}

impl CheckedPoint {
    /// Ratios of measured to predicted median and 99th percentile, where both exist: without the strategy's work, which
    /// takes the same time on any host.
    pub fn ratios(&self) -> [Option<f64>; 2] {
        let t2o = &self.measured.stages.t2o;
        let work_ns = self.measured.parameters.strategy_cost_ns as f64;
        let ratio = |measured: Option<u64>, predicted: Option<f64>| {
            measured
                .zip(predicted)
                .map(|(measured, predicted)| (measured as f64 - work_ns) / (predicted - work_ns))
                .filter(|of| *of > 0.0 && of.is_finite())
        };
        [
            ratio(t2o.p50_ns, self.predicted.map(|of| of.p50_ns)),
            ratio(t2o.p99_ns, self.predicted.map(|of| of.p99_ns)),
        ]
    }
}

/// Correction factors of the model from the checked points, and the deviation of the points from the corrected model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Points that carried a ratio.
    pub points: usize,
    /// Geometric mean of the ratios of measured to predicted median.
    pub p50_factor: f64,
    /// The same of the 99th percentile.
    pub p99_factor: f64,
    /// The largest factor, up or down, that a checked point's 99th percentile lies off the corrected prediction; none
    /// with fewer than two points, as one point is always met.
    pub error_factor: Option<f64>,
    /// The strategy's work, which is not corrected, ns a quote.
    pub work_ns: f64,
}

impl Default for Fit {
    fn default() -> Self {
        Self { points: 0, p50_factor: 1.0, p99_factor: 1.0, error_factor: None, work_ns: 0.0 }
    }
}

impl Fit {
    /// The fit of points; without any the model is unchanged.
    pub fn of(points: &[CheckedPoint]) -> Self {
        let ratios =
            |which: usize| -> Vec<f64> { points.iter().filter_map(|point| point.ratios()[which]).collect() };
        let mean = |ratios: &[f64]| {
            let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
            if ratios.is_empty() { 1.0 } else { (sum / ratios.len() as f64).exp() }
        };
        let tails = ratios(1);
        let p99_factor = mean(&tails);
        let off = tails.iter().map(|ratio| (ratio / p99_factor).ln().abs().exp());
        Self {
            points: tails.len(),
            p50_factor: mean(&ratios(0)),
            p99_factor,
            error_factor: off.reduce(f64::max).filter(|_| tails.len() > 1),
            // The same in all runs.
            work_ns: points.first().map_or(0.0, |point| point.measured.parameters.strategy_cost_ns as f64),
        }
    }

    /// Returns the fit for a host slower by this factor at the 99th percentile than the points show on average.
    #[must_use]
    pub fn slower(self, factor: f64) -> Self {
        Self { p99_factor: self.p99_factor * factor, ..self }
    }

    /// Returns the corrected prediction, with the strategy's work unchanged.
    pub fn correct(&self, of: &Prediction) -> Prediction {
        let corrected = |ns: f64, factor: f64| self.work_ns + (ns - self.work_ns) * factor;
        Prediction {
            mean_ns: corrected(of.mean_ns, self.p50_factor),
            p50_ns: corrected(of.p50_ns, self.p50_factor),
            p99_ns: corrected(of.p99_ns, self.p99_factor),
            utilisation: of.utilisation,
        }
    }
}

/// Runs on huge pages and on usual ones, in turns, with the largest number of strategies that was checked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HugePages {
    /// Number of strategies in every run.
    pub strategies: u32,
    pub usual: Vec<PipelineRecord>,
    pub huge: Vec<PipelineRecord>,
    /// Reason why there are no runs on huge pages, or no more of them.
    pub not_tried: Option<String>,
}

impl HugePages {
    /// Tick to order on huge pages, and on usual ones.
    pub fn ranges(&self) -> [StageRange; 2] {
        [&self.huge, &self.usual].map(|runs| StageRange::of(runs, |stages| &stages.t2o))
    }

    /// Compares huge pages with usual ones; `None` with fewer than two runs of either.
    pub fn compared(&self) -> Option<SpeedVerdict> {
        let [huge, usual] = self.ranges();
        compare((&huge, self.huge.len()), (&usual, self.usual.len()))
    }

    /// Fewest bytes that a run on huge pages got from the pool.
    pub fn pooled_bytes(&self) -> u64 {
        let of_pool = |run: &PipelineRecord| {
            let kinds = run.backing_bytes.iter().filter(|(kind, _)| kind.ends_with("pages of the pool"));
            kinds.map(|(_, bytes)| *bytes).sum()
        };
        self.huge.iter().map(of_pool).min().unwrap_or(0)
    }
}

/// Results of `lowlat pipeline size`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeDocument {
    /// Always "lowlat-pipeline-size".
    pub document: String,
    /// Version of this shape. Fields are only ever added; a change of meaning raises it.
    pub schema_version: u32,
    /// The lowlat that wrote it.
    pub lowlat_version: String,
    /// When it began, RFC 3339, UTC.
    pub started_at: String,
    /// True if the user cut it short.
    pub is_interrupted: bool,
    /// Name of the host, title and note.
    #[serde(flatten)]
    pub labels: lowlat_host::Labels,
    /// The host in a line.
    pub host: String,
    /// Costs measured with one strategy.
    pub costs: Costs,
    /// Work of each strategy in all runs (`--strategy-cost`), ns a quote. It is part of the costs.
    pub strategy_cost_ns: u64,
    pub checked: Vec<CheckedPoint>,
    pub fit: Fit,
    /// Quotes a second of each strategy.
    pub rate_each_per_s: f64,
    /// Mode and CPUs that were predicted for.
    pub load: Load,
    pub goal: CapacityGoal,
    /// Number of strategies that the host carries by the model.
    pub capacity: Capacity,
    /// The part of it that runs support; all defaults in documents written before this field existed.
    pub answer: Answer,
    /// Comparison of huge pages with usual ones; `None` in documents of earlier versions, and if no point was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub huge_pages: Option<HugePages>,
    /// Assignment of CPUs to processes; `lowlat pipeline run --pins` accepts it.
    pub placement: Placement,
    /// Doubts about it, one sentence each.
    pub warnings: Vec<String>,
}

impl SizeDocument {
    /// Current value of the field [`SizeDocument::schema_version`].
    pub const SCHEMA_VERSION: u32 = 1;
    /// Value of the field [`SizeDocument::document`].
    pub const DOCUMENT: &'static str = "lowlat-pipeline-size";
}

#[cfg(test)]
mod tests {
    use super::super::Cores;
    use super::*;
    use crate::{Mode, testing};

    fn point(p99_ns: f64, factor: f64) -> CheckedPoint {
        let measured = testing::run(5_000, 20_000);
        let found = measured.stages.t2o.p99_ns.unwrap() as f64;
        let predicted = Prediction { mean_ns: 0.0, p50_ns: p99_ns, p99_ns: found / factor, utilisation: 0.1 };
        let load =
            Load { strategies: 1, rate_per_s: 1.0, mode: Mode::Parked, cores: Cores::Shared { cpus: 2 } };
        CheckedPoint { load, predicted: Some(predicted), measured }
    }

    #[test]
    fn the_model_is_corrected_by_what_was_seen() {
        let fit = Fit::of(&[point(1.0, 1.0), point(1.0, 4.0)]);
        assert!((fit.p99_factor - 2.0).abs() < 1e-9 && fit.points == 2);
        assert!(fit.error_factor.is_some_and(|off| (off - 2.0).abs() < 1e-9), "each lies a factor of 2 off");
        assert_eq!(Fit::of(&[point(1.0, 3.0)]).error_factor, None, "one point is always met");
        assert_eq!(Fit::of(&[]), Fit::default());
    }

    #[test]
    fn the_strategy_s_work_is_not_corrected() {
        let mut working = point(1.0, 1.0);
        working.measured.parameters.strategy_cost_ns = 100_000;
        working.measured.stages.t2o.p99_ns = Some(340_000);
        working.predicted =
            Some(Prediction { p50_ns: 110_000.0, p99_ns: 120_000.0, ..Prediction::default() });
        let fit = Fit::of(&[working.clone(), working]);
        assert!(
            (fit.p99_factor - 12.0).abs() < 1e-9,
            "240 us beyond the work, where 20 were predicted: {fit:?}"
        );
        let of = fit.correct(&Prediction { p99_ns: 130_000.0, ..Prediction::default() });
        assert!((of.p99_ns - 460_000.0).abs() < 1e-3, "{of:?}");
        assert!((fit.slower(2.0).p99_factor - 24.0).abs() < 1e-9);
    }

    #[test]
    fn a_difference_needs_two_runs_of_each() {
        let runs = |ns: [u64; 2]| ns.map(|ns| testing::run(100, ns)).to_vec();
        let mut tried =
            HugePages { usual: runs([40_000, 42_000]), huge: runs([20_000, 21_000]), ..HugePages::default() };
        assert!(
            matches!(tried.compared(), Some(SpeedVerdict::Faster(factor)) if (1.9..2.1).contains(&factor))
        );
        assert_eq!(tried.pooled_bytes(), 0);
        tried.huge.pop();
        assert_eq!(tried.compared(), None);
        for run in &mut tried.huge {
            run.backing_bytes.insert("2048 KiB pages of the pool".to_owned(), 4 << 20);
        }
        assert_eq!(tried.pooled_bytes(), 4 << 20);
    }
}
