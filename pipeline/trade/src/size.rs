//! Number of strategies that this host carries: measures their costs, checks the prediction, and proposes CPUs.

use crate::run::{Runner, Turn, Watch, on_one_line};
use lowlat_host::{Allocation, Topology};
use lowlat_node::Refusal;
use lowlat_pipeline::{
    Mode, PipelineParameters, PipelineRecord,
    check::{HUGE_PAGES, Memory, OTHER_RUNS, Point, Room, RoomFacts, admit, came_beside, judge},
    size::{
        Answer, CapacityGoal, CheckedPoint, Costs, Fit, HugePages, Load, Placement, SizeDocument,
        StrategyGroup, capacity, place, predict,
    },
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Rate at which costs are measured, in quotes per second: low enough that no quote queues behind
/// another.
const COST_RATE: f64 = 500.0;
/// Minimum CPUs for spinning processes that do not take time from each other: md, td and a
/// strategy.
const SPINNING_CPUS: usize = 4;

/// Options of a sizing.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Quotes per second of each strategy.
    pub rate_per_s: f64,
    /// Limits of latency and CPU use that must hold.
    pub goal: CapacityGoal,
    pub mode: Mode,
    /// CPU time that each strategy computes per quote, in every run, ns.
    pub strategy_cost_ns: u64,
    /// Strategies of different rates to place; empty: as many as fit, at [`Wanted::rate_per_s`].
    pub strategies: Vec<StrategyGroup>,
    /// Numbers of strategies to run, to check the prediction.
    pub checks: Vec<u32>,
    /// Runs of each of them.
    pub repeats: u32,
    pub duration: Duration,
    /// Starts runs even if their figures would not be meaningful.
    pub is_forced: bool,
}

/// The inputs of a sizing.
#[derive(Debug)]
pub struct Sizing<'a> {
    pub wanted: &'a Wanted,
    pub topology: &'a Topology,
    /// CPUs for housekeeping and for trading.
    pub allocation: &'a Allocation,
    /// Resources of the host, for the checks before a run.
    pub facts: &'a RoomFacts,
    /// Ends the sizing early once it is set.
    pub stop: &'a AtomicBool,
}

impl Sizing<'_> {
    /// Measures the costs of one strategy, checks the prediction, and proposes CPUs. `host` and `started_at` are the
    /// document's.
    ///
    /// # Errors
    /// The costs could not be measured. None if the user interrupted it before they were known.
    pub fn find(
        &self,
        host: &str,
        started_at: String,
        runner: &mut dyn Runner,
        watch: &mut Watch<'_>,
    ) -> Result<Option<SizeDocument>, Refusal> {
        let wanted = self.wanted;
        let mut warnings = self.doubts();
        let runs = &mut Runs { sizing: self, runner, watch, made: 0 };
        let costs = self.costs(runs, &mut warnings);
        let mut checked = Vec::new();
        if let Ok(costs) = &costs {
            // In rounds, so that a disturbance does not fall on all runs of one number.
            for number in (0..wanted.repeats).flat_map(|_| &wanted.checks) {
                if self.is_stopped() {
                    break;
                }
                match self.check(*number, costs, runs) {
                    // A run that was interrupted before its first order does not count.
                    Ok(point) if point.measured.is_cut_short && point.measured.orders == 0 => {}
                    Ok(point) => {
                        warnings.extend(came_beside(&point.measured));
                        checked.push(point);
                    }
                    Err(error) => {
                        warnings.push(format!(
                            "{number} strategies could not be checked: {}.",
                            on_one_line(&error)
                        ));
                    }
                }
            }
        }
        let huge_pages = self.huge_pages(&checked, runs);
        checked.sort_by_key(|point| point.load.strategies);
        if costs.is_err() && self.is_stopped() {
            return Ok(None);
        }
        let costs = costs?;
        warnings.dedup();
        let fit = Fit::of(&checked);
        let load = self.load(&self.parameters(1, wanted.rate_per_s, wanted.mode));
        let by = |fit: &Fit| capacity(&costs, fit, &load, wanted.rate_per_s, &wanted.goal);
        let capacity = by(&fit);
        let range = fit.error_factor.map(|off| [off, 1.0 / off].map(|factor| by(&fit.slower(factor))));
        let answer = Answer::of(&checked, &wanted.goal, &capacity, range);
        let groups = match wanted.strategies.as_slice() {
            [] => {
                vec![StrategyGroup { strategies: capacity.strategies.max(1), rate_per_s: wanted.rate_per_s }]
            }
            groups => groups.to_vec(),
        };
        Ok(Some(SizeDocument {
            document: SizeDocument::DOCUMENT.into(),
            schema_version: SizeDocument::SCHEMA_VERSION,
            lowlat_version: env!("CARGO_PKG_VERSION").into(),
            started_at,
            is_interrupted: self.is_stopped(),
            labels: lowlat_host::Labels::default(),
            host: host.to_owned(),
            costs,
            strategy_cost_ns: wanted.strategy_cost_ns,
            checked,
            fit,
            rate_each_per_s: wanted.rate_per_s,
            load,
            goal: wanted.goal,
            capacity,
            answer,
            huge_pages,
            placement: self.place(&groups),
            warnings,
        }))
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: a lone flag.
        self.stop.load(Ordering::Relaxed)
    }

    /// Doubts about the host that hold for any load.
    pub fn doubts(&self) -> Vec<String> {
        let points = judge(&self.parameters(1, COST_RATE, Mode::Parked), self.facts);
        let of_host = |id: &str| ["swap", OTHER_RUNS].contains(&id);
        let doubtful = points.iter().filter(|point| of_host(point.id) && point.room == Room::Doubtful);
        doubtful.map(Point::sentence).collect()
    }

    /// True if the host has enough CPUs to measure the cost of a transfer.
    fn can_spin(&self) -> bool {
        self.facts.cpus.known().is_some_and(|cpus| cpus.len() >= SPINNING_CPUS)
    }

    /// The parameters of a run of the largest number to check on huge pages; `None` without a number.
    fn on_huge_pages(&self) -> Option<PipelineParameters> {
        let number = *self.wanted.checks.iter().max()?;
        let rate = self.wanted.rate_per_s * f64::from(number);
        let usual = self.parameters(number, rate, self.wanted.mode);
        Some(PipelineParameters { may_use_huge_pages: true, ..usual })
    }

    /// Pages of 2 MiB that the comparison with huge pages needs.
    pub fn pages_needed(&self) -> u64 {
        self.on_huge_pages().map_or(0, |parameters| Memory::of(&parameters).huge_pages())
    }

    /// Returns the reason why huge pages cannot be tried; `None` if they can.
    fn lacks_huge_pages(&self, parameters: &PipelineParameters) -> Option<String> {
        let points = judge(parameters, self.facts);
        let point = points.into_iter().find(|point| point.id == HUGE_PAGES && point.room > Room::Fine)?;
        let why = match point.room {
            Room::Doubtful => {
                let pages = Memory::of(parameters).huge_pages();
                format!("{pages} free pages of 2 MiB are needed, and the pool has fewer")
            }
            _ => point.found,
        };
        Some(format!("{why}; --reserve-huge-pages reserves them"))
    }

    /// Compares huge pages with usual ones, in turns, at the largest number that was checked.
    fn huge_pages(&self, checked: &[CheckedPoint], runs: &mut Runs<'_, '_>) -> Option<HugePages> {
        let huge = self.on_huge_pages()?;
        let point = checked.iter().find(|point| point.load.strategies == huge.strategies)?;
        let not_tried = self.lacks_huge_pages(&huge);
        let mut tried = HugePages {
            strategies: huge.strategies,
            usual: vec![point.measured.clone()],
            huge: Vec::new(),
            not_tried,
        };
        let usual = PipelineParameters { may_use_huge_pages: false, ..huge.clone() };
        for parameters in [&huge, &usual, &huge] {
            if tried.not_tried.is_some() || self.is_stopped() {
                break;
            }
            match runs.make(parameters, "huge pages, 4 KiB pages") {
                Ok(run) if run.is_cut_short => {}
                Ok(run) if parameters.may_use_huge_pages => tried.huge.push(run),
                Ok(run) => tried.usual.push(run),
                Err(error) => tried.not_tried = Some(on_one_line(&error)),
            }
        }
        Some(tried)
    }

    /// Number of runs: those that measure costs, those that check the prediction, and those that compare huge pages with
    /// usual ones.
    fn runs(&self) -> usize {
        let costs = 1 + usize::from(self.can_spin());
        let checks = self.wanted.checks.len() * usize::try_from(self.wanted.repeats).unwrap_or(usize::MAX);
        let can = self.on_huge_pages().is_some_and(|parameters| self.lacks_huge_pages(&parameters).is_none());
        costs + checks + if can { 3 } else { 0 }
    }

    fn place(&self, groups: &[StrategyGroup]) -> Placement {
        place(self.topology, self.allocation, groups)
    }

    /// Measures the costs of one strategy: asleep and, if there are enough CPUs, spinning.
    fn costs(&self, runs: &mut Runs<'_, '_>, warnings: &mut Vec<String>) -> Result<Costs, Refusal> {
        let parked = runs.make(&self.parameters(1, COST_RATE, Mode::Parked), "costs")?;
        warnings.extend(came_beside(&parked));
        let fast = if self.can_spin() {
            let parameters = self.parameters(1, COST_RATE, Mode::Fast);
            Some(runs.make(&parameters, "costs, spinning")?)
        } else {
            let cpus = self.facts.cpus.known().map_or(0, lowlat_host::CpuSet::len);
            warnings.push(format!(
                "{cpus} CPUs are too few for spinning processes, so the costs of a wake and a transfer are measured as one."
            ));
            None
        };
        Costs::of(&parked, fast.as_ref()).map_err(Refusal::new)
    }

    /// Compares the prediction for this number of strategies with a run.
    fn check(&self, number: u32, costs: &Costs, runs: &mut Runs<'_, '_>) -> Result<CheckedPoint, Refusal> {
        let rate = self.wanted.rate_per_s * f64::from(number);
        let parameters = self.parameters(number, rate, self.wanted.mode);
        let load = self.load(&parameters);
        let measured = runs.make(&parameters, &format!("check of {number}"))?;
        Ok(CheckedPoint { load, predicted: predict(costs, &load), measured })
    }

    fn load(&self, parameters: &PipelineParameters) -> Load {
        let cpus = self.facts.cpus.known().map_or(1, lowlat_host::CpuSet::len);
        Load::of(parameters, u32::try_from(cpus).unwrap_or(u32::MAX))
    }

    /// The parameters of a run with the proposed placement.
    fn parameters(&self, strategies: u32, rate_per_s: f64, mode: Mode) -> PipelineParameters {
        let group = StrategyGroup { strategies, rate_per_s: rate_per_s / f64::from(strategies) };
        PipelineParameters {
            strategies,
            rate_per_s,
            mode,
            duration_s: self.wanted.duration.as_secs_f64(),
            pins: self.place(&[group]).pins,
            host_core: None,
            may_use_huge_pages: false,
            has_md_threads: false,
            strategy_cost_ns: self.wanted.strategy_cost_ns,
        }
    }
}

/// Makes the runs of a sizing.
struct Runs<'a, 'w> {
    sizing: &'a Sizing<'a>,
    runner: &'a mut dyn Runner,
    watch: &'a mut Watch<'w>,
    /// Number of runs so far.
    made: usize,
}

impl Runs<'_, '_> {
    fn make(&mut self, parameters: &PipelineParameters, name: &str) -> Result<PipelineRecord, Refusal> {
        self.made += 1;
        admit(parameters, self.sizing.facts, self.sizing.wanted.is_forced).map_err(Refusal::of)?;
        let (number, total) = (self.made, self.sizing.runs());
        let turn = Turn { number, total, name, parameters };
        self.runner
            .run(parameters, &mut |now| (self.watch)(&turn, now))
            .map_err(|why| Refusal::new(format!("run {number} of {total} ({name}) failed: {why}")))
    }
}

#[cfg(test)]
mod tests;
