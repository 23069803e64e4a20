//! Interruptions: lowlat beside sysjitter and oslat; wake-ups by a timer: beside cyclictest.

mod cyclictest;
mod oslat;
mod summary_tool;

use crate::{
    rounds::{in_rounds, in_turn, print_ratio, print_ratio_of},
    tools,
};
use std::path::Path;
use summary_tool::SummaryTool;

/// Interruptions beside sysjitter and oslat, wake-ups beside cyclictest.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// CPU to measure
    #[arg(long, default_value_t = 1)]
    cpu: u32,
    /// Rounds, each of one run of every program
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// Seconds of one run of a round
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Threshold of the count, in nanoseconds
    #[arg(long, default_value_t = 2_000)]
    threshold: u64,
}

/// Runs all comparisons and prints them.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let lowlat = tools::lowlat()?;
    println!("lowlat     {}", lowlat.display());
    let sysjitter = tools::on_path("sysjitter");
    let oslat = tools::on_path("oslat");
    let cyclictest = tools::on_path("cyclictest");
    for (name, found) in [("sysjitter", &sysjitter), ("oslat", &oslat), ("cyclictest", &cyclictest)] {
        println!(
            "{name:<10} {}",
            found.as_ref().map_or("not on PATH: left out".into(), |path| path.display().to_string())
        );
    }
    let ours = SummaryTool::lowlat(lowlat, arguments.cpu);
    if let Some(program) = sysjitter {
        let theirs = SummaryTool::sysjitter(program, arguments.cpu);
        beside_sysjitter(arguments, &ours, &theirs)?;
    }
    if let Some(program) = oslat {
        beside_oslat(arguments, &ours, &program)?;
    }
    if let Some(program) = cyclictest {
        beside_cyclictest(arguments, &ours, &program)?;
    }
    Ok(())
}

fn beside_sysjitter(arguments: &Arguments, ours: &SummaryTool, theirs: &SummaryTool) -> anyhow::Result<()> {
    let (mut turns, mut counts) = (Vec::new(), Vec::new());
    for round in 0..arguments.rounds {
        // The program that runs first changes from round to round.
        let (our_turn, their_turn) = in_turn(round, || ours.turn_ns(), || theirs.turn_ns())?;
        turns.push((our_turn, their_turn));
        let rate = |tool: &SummaryTool| tool.rate(arguments.threshold, arguments.seconds);
        let (our_rate, their_rate) = in_turn(round, || rate(ours), || rate(theirs))?;
        counts.push((our_rate, their_rate));
        println!(
            "round {:>2}  turn {our_turn:>5.0} ns | {their_turn:>5.0} ns   interruptions {our_rate:>9.1}/s | {their_rate:>9.1}/s   (lowlat | sysjitter)",
            round + 1
        );
    }
    print_ratio("turn of the loop, lowlat / sysjitter", &turns);
    print_ratio(
        &format!("interruptions of {} ns and more, lowlat / sysjitter", arguments.threshold),
        &counts,
    );
    Ok(())
}

fn beside_oslat(arguments: &Arguments, ours: &SummaryTool, oslat: &Path) -> anyhow::Result<()> {
    // oslat's buckets are microseconds: what it counts from its third bucket on took 2 us and more.
    let threshold_ns = 2_000;
    let runs = in_rounds(
        arguments.rounds,
        || ours.document(threshold_ns, arguments.seconds),
        || oslat::run(oslat, arguments.cpu, arguments.seconds),
        |round, our, their| {
            println!(
                "round {round:>2}  mean turn {:>6.1} ns | {:>6.1} ns   interruptions {:>9.1}/s | {:>9.1}/s   (lowlat | oslat)",
                our.turn_ns, their.turn_ns, our.rate, their.rate
            );
        },
    )?;
    print_ratio_of("mean turn of the loop, lowlat / oslat", &runs, |run| run.turn_ns);
    print_ratio_of("interruptions of 2 us and more, lowlat / oslat", &runs, |run| run.rate);
    Ok(())
}

fn beside_cyclictest(arguments: &Arguments, ours: &SummaryTool, cyclictest: &Path) -> anyhow::Result<()> {
    let runs = in_rounds(
        arguments.rounds,
        || ours.wakes(arguments.seconds),
        || cyclictest::run(cyclictest, arguments.cpu, arguments.seconds),
        |round, our, their| {
            println!(
                "round {round:>2}  mean wake-up {:>8.0} ns | {:>8.0} ns   longest {:>9.0} ns | {:>9.0} ns   (lowlat | cyclictest)",
                our.mean_ns, their.mean_ns, our.max_ns, their.max_ns
            );
        },
    )?;
    print_ratio_of("mean latency of a wake-up, lowlat / cyclictest", &runs, |run| run.mean_ns);
    print_ratio_of("longest latency of a run, lowlat / cyclictest", &runs, |run| run.max_ns);
    Ok(())
}

/// Latencies of a thread that a timer wakes, in one run of a program.
#[derive(Debug, Clone, Copy)]
pub struct Wakes {
    pub mean_ns: f64,
    pub max_ns: f64,
}

/// Figures of one run of a program.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// Mean time of a turn: the run's length divided by its turns, so interruptions are included.
    pub turn_ns: f64,
    /// Number of interruptions per second.
    pub rate: f64,
}
