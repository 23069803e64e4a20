//! `lowlat pipeline size`: how many strategies this host carries, and on which CPUs.

use super::{ModeWord, live::Live, now, on_one_line, room, run::rate, runner::Runner};
use crate::{
    arguments::{duration, time_ns},
    commands::{Subcommand, examples},
    host::HostArgs,
    output::{self, Exit, Interrupted},
    results::OutputFile,
    signals,
};
use anyhow::{Context, bail, ensure};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_host::{Allocation, Topology};
use lowlat_pipeline::{
    Mode, PipelineParameters, PipelineRecord,
    check::{OTHER_RUNS, Point, Room, RoomFacts, came_beside, judge},
    size::{
        Answer, CheckedPoint, Costs, Fit, Goal, Load, Placement, SizeDocument, StrategyGroup, capacity,
        place, predict,
    },
};
use lowlat_report::size_text;
use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

pub const COMMAND: Subcommand = Subcommand { name: "size", declare, run };

/// Rate at which costs are measured, in quotes per second: low enough that no quote queues behind
/// another.
const COST_RATE: f64 = 500.0;
/// Minimum CPUs for spinning processes that do not take time from each other: md, td and a
/// strategy.
const SPINNING_CPUS: usize = 4;

#[derive(Debug, Args)]
struct Arguments {
    /// Quotes per second of each strategy
    #[arg(long, value_name = "RATE", default_value = "10", value_parser = rate, allow_negative_numbers = true)]
    rate: f64,
    /// Highest acceptable p99 of tick to order
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = time_ns)]
    goal: u64,
    /// Highest acceptable CPU use, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=95))]
    utilisation: u32,
    /// How processes wait
    #[arg(long, value_enum, default_value_t = ModeWord::Parked)]
    mode: ModeWord,
    /// Time that a real strategy computes per quote, in addition to the measured cost
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = time_ns)]
    strategy_cost: u64,
    /// Strategies of different rates to place, as COUNTxRATE: 60x10,20x100 [default: as many as fit, at --rate]
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', value_parser = group)]
    strategies: Vec<StrategyGroup>,
    /// Numbers of strategies to run, to check the prediction
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_values_t = [10, 40, 80], value_parser = clap::value_parser!(u32).range(1..=1000))]
    check: Vec<u32>,
    /// Duration of each run
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration, allow_hyphen_values = true)]
    duration: Duration,
    /// Run even if the figures would not be meaningful
    #[arg(long)]
    force: bool,
    /// Write the placement, for lowlat pipeline run --pins
    #[arg(long, value_name = "FILE")]
    placement: Option<PathBuf>,
    /// Print the JSON document on stdout instead of the tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

/// Parses a group such as "60x10".
fn group(text: &str) -> Result<StrategyGroup, String> {
    let parts =
        text.split_once('x').and_then(|(count, each)| Some((count.parse::<u32>().ok()?, rate(each).ok()?)));
    match parts {
        Some((strategies @ 1..=1000, rate_per_s)) => Ok(StrategyGroup { strategies, rate_per_s }),
        _ => Err(format!(
            "\"{text}\": expected COUNTxRATE, such as 60x10 for 60 strategies of 10 quotes per second"
        )),
    }
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about("Find how many strategies this host carries, and propose CPUs for them")
        .after_help(format!(
            "Exit codes: 0 a run kept the goal, 1 no run did, 2 error.\n\n{}",
            examples(&[
                ("lowlat pipeline size --rate 10 --goal 500us", "strategies of 10 quotes per second each"),
                (
                    "lowlat pipeline size --strategy-cost 20us --utilisation 50",
                    "strategies that compute for 20 us per quote",
                ),
                (
                    "lowlat pipeline size --strategies 60x10,20x100 --placement placement.json",
                    "propose CPUs for two groups; lowlat pipeline run --pins uses them",
                ),
            ])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    ensure!(!arguments.duration.is_zero(), "--duration is 0\nhint: give at least 1s");
    ensure!(arguments.goal > 0, "--goal is 0, which no order can meet\nhint: give a time such as 500us");
    let file =
        arguments.placement.as_deref().map(|path| OutputFile::prepare(path, "--placement")).transpose()?;
    let host = arguments.host.read()?;
    ensure!(
        host.root.is_live(),
        "cannot size the pipeline for {}: only the running host can be measured\nhint: leave out --root",
        host.root.label()
    );
    let stop = signals::stop_flag()?;
    let (mut runner, facts) = super::runner::real(&stop)?;
    let (title, cpus) = lowlat_report::host_line(&host.snapshot);
    let sizing = Sizing {
        arguments: &arguments,
        topology: &host.snapshot.topology,
        allocation: &host.allocation,
        facts: &facts,
        stop: &stop,
    };
    let document = sizing.find(&format!("{title}: {cpus}"), &mut runner)?;
    if arguments.json {
        output::print_json(&document)?;
    } else {
        output::print(&size_text(&document, output::width()))?;
    }
    if let Some(file) = &file {
        let (note, shown) = (file.note(), file.path().display());
        file.write_json_lines(&document.placement)?;
        output::talk(&format!("{note}\nhint: lowlat pipeline run --pins {shown} uses it"));
    }
    Ok(match document.answer.checked {
        _ if document.is_interrupted => Exit::Interrupted,
        None => Exit::Findings,
        Some(_) => Exit::Clean,
    })
}

/// The inputs of a sizing.
struct Sizing<'a> {
    arguments: &'a Arguments,
    topology: &'a Topology,
    allocation: &'a Allocation,
    facts: &'a RoomFacts,
    stop: &'a AtomicBool,
}

impl Sizing<'_> {
    fn find(&self, host: &str, runner: &mut dyn Runner) -> anyhow::Result<SizeDocument> {
        let arguments = self.arguments;
        let started_at = now();
        let mut warnings = self.doubts();
        room::talk("size", &warnings);
        let live = Live::new();
        let costs = self.costs(runner, &live, &mut warnings);
        let mut checked = Vec::new();
        if let Ok(costs) = &costs {
            let before = self.cost_runs();
            for (at, number) in arguments.check.iter().enumerate() {
                if self.is_stopped() {
                    break;
                }
                match self.check(*number, costs, before + at + 1, runner, &live) {
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
        live.finish();
        if costs.is_err() && self.is_stopped() {
            bail!(Interrupted("the costs of one strategy were known".to_owned()));
        }
        let costs = costs?;
        warnings.dedup();
        let fit = Fit::of(&checked);
        let goal =
            Goal { p99_ns: arguments.goal as f64, utilisation: f64::from(arguments.utilisation) / 100.0 };
        let load = self.load(&self.parameters(1, arguments.rate, arguments.mode.into()));
        let capacity = capacity(&costs, &fit, &load, arguments.rate, &goal);
        let answer = Answer::of(&checked, &goal, arguments.strategy_cost as f64, &capacity);
        let groups = match arguments.strategies.as_slice() {
            [] => vec![StrategyGroup { strategies: capacity.strategies.max(1), rate_per_s: arguments.rate }],
            groups => groups.to_vec(),
        };
        Ok(SizeDocument {
            document: SizeDocument::DOCUMENT.into(),
            schema_version: SizeDocument::SCHEMA_VERSION,
            lowlat_version: env!("CARGO_PKG_VERSION").into(),
            started_at,
            is_interrupted: self.is_stopped(),
            host: host.to_owned(),
            costs,
            strategy_extra_ns: arguments.strategy_cost as f64,
            checked,
            fit,
            rate_each_per_s: arguments.rate,
            load,
            goal,
            capacity,
            answer,
            placement: self.place(&groups),
            warnings,
        })
    }

    fn is_stopped(&self) -> bool {
        // Relaxed: a lone flag.
        self.stop.load(Ordering::Relaxed)
    }

    /// Doubts about the host that hold for any load.
    fn doubts(&self) -> Vec<String> {
        let points = judge(&self.parameters(1, COST_RATE, Mode::Parked), self.facts);
        let of_host = |id: &str| ["swap", OTHER_RUNS].contains(&id);
        let doubtful = points.iter().filter(|point| of_host(point.id) && point.room == Room::Doubtful);
        doubtful.map(Point::sentence).collect()
    }

    /// Whether the host has enough CPUs to measure the cost of a transfer.
    fn can_spin(&self) -> bool {
        self.facts.cpus.known().is_some_and(|cpus| cpus.len() >= SPINNING_CPUS)
    }

    /// Number of runs that measure costs.
    fn cost_runs(&self) -> usize {
        1 + usize::from(self.can_spin())
    }

    fn place(&self, groups: &[StrategyGroup]) -> Placement {
        place(self.topology, self.allocation, groups)
    }

    /// Measures the costs of one strategy: asleep and, if there are enough CPUs, spinning.
    fn costs(
        &self,
        runner: &mut dyn Runner,
        live: &Live,
        warnings: &mut Vec<String>,
    ) -> anyhow::Result<Costs> {
        let parked = self.made(&self.parameters(1, COST_RATE, Mode::Parked), "costs", 1, runner, live)?;
        warnings.extend(came_beside(&parked));
        let fast = if self.can_spin() {
            let parameters = self.parameters(1, COST_RATE, Mode::Fast);
            Some(self.made(&parameters, "costs, spinning", 2, runner, live)?)
        } else {
            let cpus = self.facts.cpus.known().map_or(0, lowlat_host::CpuSet::len);
            warnings.push(format!(
                "{cpus} CPUs are too few for spinning processes, so the costs of a wake and a transfer are measured as one."
            ));
            None
        };
        Costs::of(&parked, fast.as_ref(), self.arguments.strategy_cost as f64).map_err(anyhow::Error::msg)
    }

    /// Compares the prediction for this number of strategies with a run. The strategies of the run
    /// compute nothing, so the prediction leaves their cost out too.
    fn check(
        &self,
        number: u32,
        costs: &Costs,
        run: usize,
        runner: &mut dyn Runner,
        live: &Live,
    ) -> anyhow::Result<CheckedPoint> {
        let extra_ns = self.arguments.strategy_cost as f64;
        let bare = Costs {
            decide_ns: costs.decide_ns - extra_ns,
            strategy_cpu_ns: costs.strategy_cpu_ns - extra_ns,
            ..*costs
        };
        let rate = self.arguments.rate * f64::from(number);
        let parameters = self.parameters(number, rate, self.arguments.mode.into());
        let load = self.load(&parameters);
        let measured = self.made(&parameters, &format!("check of {number}"), run, runner, live)?;
        Ok(CheckedPoint { load, predicted: predict(&bare, &load), measured })
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
            duration_s: self.arguments.duration.as_secs_f64(),
            pins: self.place(&[group]).pins,
            host_core: None,
            may_use_huge_pages: false,
        }
    }

    fn made(
        &self,
        parameters: &PipelineParameters,
        title: &str,
        run: usize,
        runner: &mut dyn Runner,
        live: &Live,
    ) -> anyhow::Result<PipelineRecord> {
        room::check(parameters, self.facts, self.arguments.force)?;
        let total = self.cost_runs() + self.arguments.check.len();
        let title = format!("run {run} of {total}, {title}: {}", lowlat_report::load_words(parameters));
        runner
            .run(parameters, &mut |now| live.show(&title, parameters.duration_s, now))
            .with_context(|| format!("the run failed ({title})"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::runner::fake::Fake;
    use super::*;
    use lowlat_host::{CpuSet, Reading};
    use std::sync::Arc;

    fn arguments(words: &[&str]) -> Result<Arguments, clap::Error> {
        let command = declare(Command::new("size"));
        Arguments::from_arg_matches(&command.try_get_matches_from([&["size"], words].concat())?)
    }

    fn find(words: &[&str], cpus: u32, runner: &mut Fake) -> SizeDocument {
        try_find(words, cpus, runner, &AtomicBool::new(false)).unwrap()
    }

    fn try_find(
        words: &[&str],
        cpus: u32,
        runner: &mut Fake,
        stop: &AtomicBool,
    ) -> anyhow::Result<SizeDocument> {
        let arguments = arguments(words).unwrap();
        let topology = Topology { online: CpuSet::first(cpus), ..Topology::default() };
        let allocation = Allocation {
            housekeeping: CpuSet::of(0),
            isolated: CpuSet::first(cpus).difference(&CpuSet::of(0)),
            ..Allocation::default()
        };
        let facts = RoomFacts {
            cpus: Reading::Known(CpuSet::first(cpus)),
            other_runs: Reading::Known(vec!["process 4711 (run a)".to_owned()]),
            ..RoomFacts::default()
        };
        let sizing = Sizing {
            arguments: &arguments,
            topology: &topology,
            allocation: &allocation,
            facts: &facts,
            stop,
        };
        sizing.find("made up", runner)
    }

    #[test]
    fn costs_are_measured_then_points_checked_then_cpus_proposed() {
        let mut runner = Fake::default();
        let document = find(&["--rate", "10", "--goal", "5ms"], 8, &mut runner);
        let asked: Vec<(u32, Mode)> = runner.asked.iter().map(|of| (of.strategies, of.mode)).collect();
        let parked = |number| (number, Mode::Parked);
        assert_eq!(asked, [parked(1), (1, Mode::Fast), parked(10), parked(40), parked(80)]);
        assert_eq!(document.checked.len(), 3);
        // 500 ticks at the first point are too few for a p99.
        assert!(document.capacity.strategies > 0 && document.fit.points == 2, "{:?}", document.fit);
        assert_eq!(document.placement.pins["strategies"].len(), document.capacity.strategies as usize);
        let read: SizeDocument = serde_json::from_value(serde_json::to_value(&document).unwrap()).unwrap();
        assert_eq!(read.placement, document.placement);
    }

    #[test]
    fn a_small_host_warns_that_wake_and_transfer_are_measured_as_one() {
        let document = find(&["--check", "10", "--strategies", "6x10,2x100"], 2, &mut Fake::default());
        assert!(document.warnings[1].contains("too few for spinning processes"));
        assert_eq!(document.placement.groups.len(), 2);
        assert!(document.costs.transfer_ns == 0.0);
    }

    #[test]
    fn another_running_pipeline_is_reported() {
        let document = find(&["--check", "10"], 8, &mut Fake::default());
        assert!(document.warnings[0].starts_with("other runs: process 4711"), "{:?}", document.warnings);
    }

    #[test]
    fn an_interrupt_before_the_costs_are_known_is_an_error() {
        let stop = Arc::new(AtomicBool::new(false));
        let stops_after = Some((1, Arc::clone(&stop)));
        let mut runner = Fake { fails_at: Some(2), stops_after, ..Fake::default() };
        let error = try_find(&[], 8, &mut runner, &stop).unwrap_err();
        assert!(error.is::<Interrupted>(), "{error}");
    }

    #[test]
    fn a_run_accepts_the_written_placement() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("placement.json");
        let document = find(&["--check", "10"], 8, &mut Fake::default());
        OutputFile::prepare(&path, "--placement").unwrap().write_json_lines(&document.placement).unwrap();
        assert_eq!(super::super::pins::read(&path).unwrap(), document.placement.pins);
    }

    #[test]
    fn a_failed_point_leaves_the_others() {
        let mut runner = Fake { fails_at: Some(3), ..Fake::default() };
        let document = find(&[], 8, &mut runner);
        assert_eq!(document.checked.len(), 2);
        assert!(
            document.warnings.iter().any(|warning| warning.starts_with("10 strategies could not be checked"))
        );
    }

    #[test]
    fn groups_need_a_count_and_a_rate() {
        assert_eq!(group("60x10"), Ok(StrategyGroup { strategies: 60, rate_per_s: 10.0 }));
        for text in ["60", "0x10", "60x", "x", "60x-1"] {
            assert!(group(text).unwrap_err().contains("such as 60x10"), "{text}");
        }
        assert!(arguments(&["--utilisation", "100"]).is_err() && arguments(&["--goal", "5"]).is_err());
    }
}
