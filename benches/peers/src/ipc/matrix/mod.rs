//! The whole comparison: loads, ways to wait and pinning, in rounds in which every contestant runs once.

mod cell;
mod figures;

use super::{
    kungfu, pipeline,
    trial::{self, Subject},
};
use cell::{Cell, Contestant, Waiting};
use figures::{Compared, Figures, Round, compare};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

/// The matrix.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// 80 strategies, three rates, parked, not pinned, 3 rounds: some minutes
    #[arg(long)]
    quick: bool,
    /// Numbers of strategies [default: 8,80,200; quick: 80]
    #[arg(long, value_delimiter = ',')]
    strategies: Vec<u32>,
    /// Quotes per second over all instruments
    #[arg(long, value_delimiter = ',', default_values_t = [80.0, 800.0, 8000.0])]
    rates: Vec<f64>,
    /// How processes wait [default: all; quick: parked]
    #[arg(long, value_enum, value_delimiter = ',')]
    waiting: Vec<Waiting>,
    /// Whether roles are pinned [default: both; quick: false]
    #[arg(long)]
    pinned: Option<bool>,
    /// Rounds of each cell [default: 7; quick: 3]
    #[arg(long)]
    rounds: Option<u32>,
    /// Seconds of each run's schedule. A 99th percentile needs 368 quotes
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// The lowlat whose `pipeline run` takes part
    #[arg(long, value_name = "PROGRAM")]
    lowlat: Option<PathBuf>,
    /// Prints a JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Result of a cell, for the document.
#[derive(Debug, Serialize)]
struct CellResult {
    #[serde(flatten)]
    cell: Cell,
    remark: Option<&'static str>,
    /// Reasons why the cell, or a contestant, was left out.
    left_out: BTreeMap<&'static str, String>,
    ratios: Vec<Compared>,
    rounds: Vec<Round>,
}

#[derive(Debug, Serialize)]
struct MatrixDocument {
    document: &'static str,
    schema_version: u32,
    /// "kungfu-model" is a model written for this comparison, not Kungfu.
    models: [&'static str; 1],
    cpus: Vec<u32>,
    seconds: f64,
    is_interrupted: bool,
    left_out: BTreeMap<&'static str, String>,
    cells: Vec<CellResult>,
}

impl Arguments {
    fn cells(&self) -> Vec<Cell> {
        let or = |given: &[u32], quick: &[u32], all: &[u32]| {
            let pick = if self.quick { quick } else { all };
            if given.is_empty() { pick.to_vec() } else { given.to_vec() }
        };
        let all = if self.quick {
            vec![Waiting::Parked]
        } else {
            vec![Waiting::Parked, Waiting::PlatformFast, Waiting::Fast, Waiting::Host]
        };
        let waitings = if self.waiting.is_empty() { all } else { self.waiting.clone() };
        let pinnings = match self.pinned {
            Some(is_pinned) => vec![is_pinned],
            None if self.quick => vec![false],
            None => vec![false, true],
        };
        let mut cells = Vec::new();
        for strategies in or(&self.strategies, &[80], &[8, 80, 200]) {
            for waiting in &waitings {
                for is_pinned in &pinnings {
                    let cell = |rate_per_s: &f64| Cell {
                        strategies,
                        rate_per_s: *rate_per_s,
                        waiting: *waiting,
                        is_pinned: *is_pinned,
                    };
                    cells.extend(self.rates.iter().map(cell));
                }
            }
        }
        cells
    }
}

/// CPUs that this process may use.
fn allowed_cpus() -> anyhow::Result<Vec<u32>> {
    let set = rustix::thread::sched_getaffinity(None)?;
    let numbers = (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    Ok(numbers.filter_map(|cpu| u32::try_from(cpu).ok()).collect())
}

/// Runs all cells and prints their results.
pub fn run(arguments: &Arguments, stop: &AtomicBool) -> anyhow::Result<()> {
    let cpus = allowed_cpus()?;
    let mut left_out = BTreeMap::new();
    let mut contestants = vec![Contestant::IpcStar, Contestant::Floor];
    match kungfu::missing() {
        None => contestants.insert(0, Contestant::KungfuModel),
        Some(why) => drop(left_out.insert(Contestant::KungfuModel.name(), why)),
    }
    match &arguments.lowlat {
        Some(_) => contestants.push(Contestant::Lowlat),
        None => drop(left_out.insert(Contestant::Lowlat.name(), "not given: --lowlat PROGRAM".to_owned())),
    }
    for (name, why) in &left_out {
        eprintln!("{name} left out: {why}");
    }
    let mut cells = Vec::new();
    for cell in arguments.cells() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let result = run_cell(arguments, cell, &contestants, &cpus, stop);
        if !arguments.json {
            print(&result);
        }
        cells.push(result);
    }
    if arguments.json {
        let document = MatrixDocument {
            document: "lowlat-peers-matrix",
            schema_version: 1,
            models: [Contestant::KungfuModel.name()],
            cpus,
            seconds: arguments.seconds,
            is_interrupted: stop.load(Ordering::Relaxed),
            left_out,
            cells,
        };
        println!("{}", serde_json::to_string_pretty(&document)?);
    }
    Ok(())
}

fn run_cell(
    arguments: &Arguments,
    cell: Cell,
    contestants: &[Contestant],
    cpus: &[u32],
    stop: &AtomicBool,
) -> CellResult {
    eprintln!("{}", cell.title());
    let mut result = CellResult {
        cell,
        remark: cell.remark(cpus),
        left_out: BTreeMap::new(),
        ratios: Vec::new(),
        rounds: Vec::new(),
    };
    if let Some(why) = cell.senseless(cpus) {
        result.left_out.insert("cell", why);
        return result;
    }
    let rounds = arguments.rounds.unwrap_or(if arguments.quick { 3 } else { 7 });
    for number in 0..rounds {
        let mut round = Round::new();
        // The contestant that runs first changes from round to round.
        let first = usize::try_from(number).unwrap_or(0) % contestants.len();
        for contestant in contestants.iter().cycle().skip(first).take(contestants.len()) {
            if result.left_out.contains_key(contestant.name()) || stop.load(Ordering::Relaxed) {
                continue;
            }
            match run_one(arguments, cell, *contestant, cpus, stop) {
                Ok(figures) => {
                    eprintln!("  round {:>2} {:<12} {}", number + 1, contestant.name(), figures.text());
                    round.insert(*contestant, figures);
                }
                Err(error) => {
                    eprintln!("  round {:>2} {:<12} failed: {error:#}", number + 1, contestant.name());
                    // A contestant that fails in the first round would fail again.
                    if number == 0 {
                        result.left_out.insert(contestant.name(), format!("{error:#}"));
                    }
                }
            }
        }
        result.rounds.push(round);
    }
    result.ratios = compare(&result.rounds);
    result
}

fn run_one(
    arguments: &Arguments,
    cell: Cell,
    contestant: Contestant,
    cpus: &[u32],
    stop: &AtomicBool,
) -> anyhow::Result<Figures> {
    let parameters = cell.parameters(contestant, cpus, arguments.seconds);
    let record = match (contestant, &arguments.lowlat) {
        (Contestant::KungfuModel, _) => trial::run(Subject::KungfuModel, &parameters, stop)?,
        (Contestant::IpcStar, _) => trial::run(Subject::IpcStar, &parameters, stop)?,
        (Contestant::Floor, _) => trial::run(Subject::Floor, &parameters, stop)?,
        (Contestant::Lowlat, Some(program)) => pipeline::run(program, &parameters, stop)?,
        (Contestant::Lowlat, None) => anyhow::bail!("no lowlat was given"),
    };
    Ok(Figures::of(&record))
}

fn print(result: &CellResult) {
    println!("{}", result.cell.title());
    if let Some(remark) = result.remark {
        println!("  {remark}");
    }
    for (who, why) in &result.left_out {
        println!("  {who} left out: {why}");
    }
    for row in &result.ratios {
        println!("  {:<22} {:>12} / {:<9} {}", row.figure, row.above.name(), row.below.name(), row.text);
    }
}
