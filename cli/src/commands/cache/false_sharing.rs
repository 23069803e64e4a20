//! `lowlat cache false-sharing`: what false sharing costs on this host, and where a program has it.

use super::find::{Target, find};
use crate::{
    arguments::{cpus, duration},
    commands::{help, outputs::OutputArgs},
    documents::Run,
    exit::Exit,
    host::RoleArgs,
    signals,
};
use clap::{Args, value_parser};
use lowlat_cache::{FalseSharing, FalseSharingMeasurement};
use lowlat_cores_run::cache::sharing;
use lowlat_host::{CpuId, CpuSet, topology::Topology};
use std::time::Duration;

/// Fewest threads that can share a line.
const THREADS_MIN: usize = 2;

/// Measure what false sharing costs, or find the cache lines that a program's threads share
#[derive(Debug, Args)]
#[command(after_help = help("Threads add to one value, to values of their own in one line, 64 and 128 bytes apart, and to one counter with a \
    part for each CPU (crate lowlat-counter).\n\n\
    With --pid or a command, lowlat samples the writes of a program's threads: it protects pages for moments, then \
    counts reads and writes with the processor's breakpoints, and names the fields that different threads use in one \
    line at the same time. A command is watched with the processes that it starts. \
    This needs no performance counters, so it works in virtual machines. The program runs on, and waits for lowlat \
    for up to a quarter of the time; while it is watched, no debugger can attach to it. Transparent huge pages stay \
    whole. Where the processor counts cache traffic, `perf c2c` also sees kernel memory.\n\n\
    Exit codes: 0 clean, 1 false sharing found or suspected, 2 error, 4 nothing was measured, or nothing \
    found and part not looked at, 130 interrupted.", &[
    ("lowlat cache false-sharing", "Measure two CPUs of different cores."),
    ("lowlat cache false-sharing --cpus 2,3,10,11", "Measure four threads across two clusters."),
    ("sudo lowlat cache false-sharing --pid 4711", "Find false sharing in a running process."),
    ("lowlat cache false-sharing --duration 30s -- ./strategy", "Find it in a command."),
]))]
pub struct CacheFalseSharingArgs {
    #[command(flatten)]
    role: RoleArgs,
    /// Run a thread on each of these CPUs [default: two, on different cores if possible]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Measure every layout this many times
    #[arg(long, value_name = "COUNT", default_value_t = 15, value_parser = value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Find false sharing in this running process, instead of measuring its cost
    #[arg(long, value_name = "PID", value_parser = value_parser!(u32).range(1..), conflicts_with_all = ["cpus", "rounds", "command"])]
    pid: Option<u32>,
    /// Watch the process or command for this long
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, conflicts_with_all = ["cpus", "rounds"])]
    duration: Duration,
    #[command(flatten)]
    outputs: OutputArgs,
    /// Command with its arguments, to find false sharing in
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["cpus", "rounds"])]
    command: Vec<String>,
}

pub fn run(arguments: &CacheFalseSharingArgs) -> anyhow::Result<Exit> {
    let target = match arguments.pid {
        Some(pid) => Some(Target::Process(pid)),
        None => (!arguments.command.is_empty()).then_some(Target::Command(&arguments.command)),
    };
    let outputs = arguments.outputs.prepare()?;
    let labels = &arguments.outputs.files.language.labels;
    let mut run = Run::begin(FalseSharingMeasurement::COMMAND, labels, || arguments.role.read())?;
    if let Some(target) = target {
        return find(&target, arguments.duration, run, &outputs);
    }
    let host = &run.host;
    let topology = &host.snapshot.topology;
    let usable = super::usable(arguments.cpus.as_ref(), &host.snapshot)?;
    let chosen: Vec<CpuId> = match &arguments.cpus {
        Some(asked) => asked.iter().collect(),
        None => two(&usable, topology),
    };
    anyhow::ensure!(
        chosen.len() >= THREADS_MIN,
        "cannot measure CPUs {usable}: two threads take two CPUs\nhint: name more with --cpus"
    );
    let stop = signals::stop_flag()?;
    run.progress.say(format!("measuring {} rounds", arguments.rounds));
    run.progress.stand_still();
    run.start();
    let record = sharing::run(&run.host.root, &chosen, arguments.rounds, &stop)?;
    let is_measured = !record.rounds.is_empty();
    let document =
        run.document(vec![FalseSharingMeasurement::from(FalseSharing::Cost(record)).into()], &stop);
    outputs.write(&document)?;
    Ok(Exit::of_measurement(document.is_interrupted, is_measured))
}

/// The first CPU and one on another core; any other one if all share a core.
fn two(usable: &CpuSet, topology: &Topology) -> Vec<CpuId> {
    let Some(first) = usable.iter().next() else { return Vec::new() };
    let siblings = topology.siblings(first);
    let other = usable.iter().find(|cpu| !siblings.contains(*cpu));
    let other = other.or_else(|| usable.iter().nth(1));
    std::iter::once(first).chain(other).collect()
}
