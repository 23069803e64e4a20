//! The figures of a row out of its runs.

use crate::{MatrixRow, PipelineRecord, StageFigures, Stages};
use hdrhistogram::Histogram;
use lowlat_host::histogram;

/// A stage over the runs of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageRange {
    /// The lowest and the highest mean of a run; none without a measured run. The report's figure.
    pub means_ns: Option<(f64, f64)>,
    /// All latencies of all runs together.
    pub pooled: StageFigures,
}

impl StageRange {
    /// One stage of some runs, put together. Runs whose histogram cannot be read count with their means only.
    pub fn of(runs: &[PipelineRecord], of: impl Fn(&Stages) -> &StageFigures) -> Self {
        let figures = || runs.iter().map(|run| of(&run.stages)).filter(|figures| figures.count > 0);
        let means = || figures().filter_map(|figures| figures.mean_ns);
        let means_ns = means()
            .reduce(f64::min)
            .zip(means().reduce(f64::max))
            .filter(|(low, high)| low.is_finite() && high.is_finite());
        let mut pooled: Option<Histogram<u64>> = None;
        for figures in figures() {
            let Ok(histogram) = histogram::decode(&figures.histogram) else { continue };
            match &mut pooled {
                // Adding fails only where the range of one is narrower and fixed; all runs of a lowlat have the same.
                Some(pooled) => _ = pooled.add(&histogram),
                None => pooled = Some(histogram),
            }
        }
        let mut pooled = pooled.map(|histogram| StageFigures::of(&histogram)).unwrap_or_default();
        pooled.max_ns = figures().filter_map(|figures| figures.max_ns).max().or(pooled.max_ns);
        Self { means_ns, pooled }
    }
}

/// The figures of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowFigures {
    pub runs: usize,
    /// Ticks that md published in them.
    pub ticks: u64,
    /// md wrote, the strategy had read.
    pub md: StageRange,
    /// The strategy wrote, td had read.
    pub order: StageRange,
    /// md wrote, td had read.
    pub t2o: StageRange,
    /// The same from the time the quote was due.
    pub t2o_scheduled: StageRange,
    /// CPUs kept busy: CPU time of all processes by the time in which it was counted; none without a run.
    pub cpus_busy: Option<f64>,
    /// Switches, asked for and not, of all processes by ticks; none without ticks.
    pub switches_per_tick: Option<f64>,
    /// Wakes by ticks; none without ticks.
    pub wakes_per_tick: Option<f64>,
    /// Page faults of all processes and runs, those that read a disk with them.
    pub faults: u64,
    /// Records lost, wakes missed, and orders unanswered or not sent: all must be 0.
    pub failures: u64,
    /// Runs whose md could not keep to its schedule: fewer ticks than scheduled, though nobody stopped it.
    pub late_runs: usize,
}

impl RowFigures {
    /// Puts the runs together. Runs whose histogram cannot be read count with their means only.
    pub fn of(row: &MatrixRow) -> Self {
        let runs = &row.runs;
        let sum = |of: &dyn Fn(&PipelineRecord) -> u64| runs.iter().map(of).fold(0, u64::saturating_add);
        let uses = || runs.iter().flat_map(|run| &run.uses);
        let ticks = sum(&|run| run.ticks_published);
        let per_tick = |count: u64| (ticks > 0).then(|| count as f64 / ticks as f64);
        let by_s: f64 = runs.iter().map(PipelineRecord::busy_by_s).sum();
        let switches = uses().map(|of| of.voluntary_switches + of.involuntary_switches).sum();
        Self {
            runs: runs.len(),
            ticks,
            md: StageRange::of(runs, |stages| &stages.md),
            order: StageRange::of(runs, |stages| &stages.order),
            t2o: StageRange::of(runs, |stages| &stages.t2o),
            t2o_scheduled: StageRange::of(runs, |stages| &stages.t2o_scheduled),
            cpus_busy: (by_s > 0.0).then(|| uses().map(|of| of.cpu_s).sum::<f64>() / by_s),
            switches_per_tick: per_tick(switches),
            wakes_per_tick: per_tick(sum(&|run| run.wakes)),
            faults: uses().map(|of| of.minor_faults + of.major_faults).sum(),
            failures: sum(&|run| {
                run.lost + run.missed_wakes + run.orders.abs_diff(run.answers) + run.balance.unsent()
            }),
            late_runs: runs.iter().filter(|run| run.has_missed_schedule()).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mode, PipelineParameters, ProcessUse, testing};

    fn row(runs: Vec<PipelineRecord>) -> MatrixRow {
        let parameters = PipelineParameters {
            strategies: 2,
            rate_per_s: 100.0,
            mode: Mode::Parked,
            duration_s: 1.0,
            pins: std::collections::BTreeMap::new(),
            host_core: None,
            may_use_huge_pages: false,
            has_md_threads: false,
            strategy_cost_ns: 0,
        };
        MatrixRow {
            id: "A10".into(),
            group: 'A',
            group_name: "made up".into(),
            scenario: 10,
            parameters,
            ticks_per_run: 100,
            not_run: None,
            runs,
        }
    }

    #[test]
    fn means_have_a_range_and_the_rest_is_pooled() {
        let runs = vec![testing::run(100, 20_000), testing::run(100, 40_000)];
        let figures = RowFigures::of(&row(runs.clone()));
        let (low, high) = figures.t2o.means_ns.unwrap();
        assert!(low < high && low >= 20_000.0, "{low} {high}");
        assert_eq!(figures.t2o.pooled.count, 200);
        assert_eq!(figures.t2o.pooled.max_ns, runs.iter().filter_map(|run| run.stages.t2o.max_ns).max());
        let switches: u64 = runs.iter().flat_map(|run| &run.uses).map(switches).sum();
        assert_eq!(figures.switches_per_tick, Some(switches as f64 / 200.0));
    }

    fn switches(of: &ProcessUse) -> u64 {
        of.voluntary_switches + of.involuntary_switches
    }

    #[test]
    fn a_run_that_was_stopped_was_not_late() {
        let mut late = testing::run(100, 20_000);
        late.ticks_scheduled = 200;
        let stopped = PipelineRecord { is_cut_short: true, ..late.clone() };
        assert_eq!(RowFigures::of(&row(vec![late, stopped])).late_runs, 1);
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        let figures = RowFigures::of(&row(Vec::new()));
        assert_eq!(figures, RowFigures::default());
        let mut damaged = testing::run(100, 20_000);
        damaged.stages.t2o.histogram = "damaged".into();
        let figures = RowFigures::of(&row(vec![damaged]));
        assert!(figures.t2o.means_ns.is_some() && figures.t2o.pooled.p50_ns.is_none());
    }
}
