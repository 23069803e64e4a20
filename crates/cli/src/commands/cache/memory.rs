//! `lowlat cache memory`: latency and bandwidth of memory between nodes.

use crate::{
    arguments::{bytes, cpus},
    commands::{Subcommand, examples},
    host::HostArgs,
    output::{self, Exit},
    progress::Progress,
    signals,
};
use clap::{ArgMatches, Args, Command, FromArgMatches, value_parser};
use lowlat_host::CpuSet;
use lowlat_measure::cache::memory::{self, MemoryOptions};
use std::sync::atomic::Ordering;

pub const COMMAND: Subcommand = Subcommand { name: "memory", declare, run };

#[derive(Debug, Args)]
struct Arguments {
    #[command(flatten)]
    host: HostArgs,
    /// Read with these CPUs only [default: all]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Take buffers of this size, such as 512M [default: four times the largest cache, at least 64M]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    buffer: Option<u64>,
    /// Measure every pair of nodes this many times
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about("Measure latency and bandwidth of memory, from each node to each node")
        .after_help(format!(
            "Latency is the time of a load that depends on the load before, in random order: first with the other CPUs of \
             the node idle, then while they read as fast as they can. Bandwidth is what all CPUs of the node read together. \
             Each is measured in small and in huge pages.\n\
             CXL, device-dax and GPU memory is named if the kernel or its driver reports it.\n\n\
             Exit codes: 0 clean, 2 error, 130 interrupted.\n\n{}",
            examples(&[
                ("lowlat cache memory", "Measure every pair of nodes."),
                ("lowlat cache memory --cpus 2-9 --buffer 1G", "Read 1 GiB from CPUs 2 to 9."),
            ])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    let progress = Progress::new();
    progress.say("reading the host");
    let host = arguments.host.read_live("memory")?;
    let topology = &host.snapshot.topology;
    let usable = super::usable(arguments.cpus.as_ref(), &topology.online)?;
    let options = MemoryOptions { cpus: usable, buffer_bytes: arguments.buffer, rounds: arguments.rounds };
    let stop = signals::stop_flag()?;
    let record = memory::run(&host.root, topology, &options, &stop, &mut |text| progress.say(text));
    progress.finish();
    let record = record?;
    if arguments.json {
        output::print_json(&output::Document::of("lowlat-cache-memory", &record))?;
    } else {
        output::print(&lowlat_cache_report::memory_text(&record, output::width()))?;
    }
    // Relaxed: set by the signal handler; the threads have been joined.
    Ok(if stop.load(Ordering::Relaxed) { Exit::Interrupted } else { Exit::Clean })
}
