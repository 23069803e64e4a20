//! `lowlat cache memory`: latency and bandwidth of memory between nodes.

use crate::{
    arguments::{bytes, cpus},
    commands::{help, outputs::OutputArgs},
    documents::Run,
    exit::Exit,
    host::HostArgs,
    signals,
};
use clap::{Args, value_parser};
use lowlat_cache::memory::MemoryMeasurement;
use lowlat_cores_run::cache::memory::{self, MemoryOptions};
use lowlat_host::CpuSet;

/// Measure latency and bandwidth of memory, from each node to each node
#[derive(Debug, Args)]
#[command(after_help = help("Latency is the time of a load that depends on the load before, in random order: first with the other CPUs of \
    the node idle, then while they read as fast as they can. Bandwidth is what all CPUs of the node read, write or \
    copy together. Each is measured in small and in huge pages. Buffers exceed all last-level caches of a node, and \
    take no more than half of the memory that the host and the control group have left.\n\
    CXL, device-dax and GPU memory is named if the kernel or its driver reports it.\n\n\
    Exit codes: 0 clean, 2 error, 4 nothing was measured, 130 interrupted.", &[
    ("lowlat cache memory", "Measure every pair of nodes."),
    ("lowlat cache memory --curves", "Show what each cache adds, and what load and several misses at once do."),
    ("lowlat cache memory --cpus 2-9 --buffer 1G", "Read 1 GiB from CPUs 2 to 9."),
]))]
pub struct CacheMemoryArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Read with these CPUs only [default: all]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Take buffers of this size, such as 512M [default: four times the last-level caches of a node, at least 64M]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    buffer: Option<u64>,
    /// Compare huge and small pages up to this size
    #[arg(long, value_name = "SIZE", value_parser = bytes, default_value = "1G")]
    largest: u64,
    /// Measure time by size, by load and by chases at once too
    #[arg(long)]
    curves: bool,
    /// Print the sizes of buffers, and measure nothing; always so with --root
    #[arg(long, conflicts_with_all = ["report", "result"])]
    dry_run: bool,
    /// Measure every pair of nodes this many times
    #[arg(long, value_name = "COUNT", default_value_t = 9, value_parser = value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    #[command(flatten)]
    outputs: OutputArgs,
}

pub fn run(arguments: &CacheMemoryArgs) -> anyhow::Result<Exit> {
    let outputs = arguments.outputs.prepare()?;
    let labels = &arguments.outputs.files.language.labels;
    let mut run = Run::begin(MemoryMeasurement::COMMAND, labels, || arguments.host.read())?;
    run.start();
    let host = &run.host;
    let online = &host.snapshot.topology.online;
    let usable = match &arguments.cpus {
        // The affinity of this process says nothing about another host.
        asked if !host.root.is_live() => asked.as_ref().unwrap_or(online).intersection(online),
        asked => super::usable(asked.as_ref(), &host.snapshot)?,
    };
    let options = MemoryOptions {
        cpus: usable,
        buffer_bytes: arguments.buffer,
        largest_bytes: arguments.largest,
        rounds: arguments.rounds,
        has_curves: arguments.curves,
    };
    let is_plan = arguments.dry_run || !host.root.is_live();
    let stop = signals::stop_flag()?;
    let record = if is_plan {
        memory::plan(&host.root, &host.snapshot, &options)
    } else {
        memory::run(&host.root, &host.snapshot, &options, &stop, &mut |text| run.progress.say(text))
    }?;
    let is_done = is_plan || !record.paths.is_empty();
    let document = run.document(vec![MemoryMeasurement::from(record).into()], &stop);
    outputs.write(&document)?;
    Ok(Exit::of_measurement(document.is_interrupted, is_done))
}
