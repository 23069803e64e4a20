//! `lowlat cache`: cores and caches.

mod c2c;
mod clock;
mod clusters;
mod false_sharing;
mod find;
mod memory;
mod partition;

use super::{Subcommand, examples};
use crate::{choose, exit::Exit, output};
use clap::{ArgMatches, FromArgMatches, Subcommand as _};
use lowlat_host::{CpuSet, HostSnapshot};
use lowlat_host_run::affinity;

pub const COMMAND: Subcommand = Subcommand { name: "cache", declare: Action::augment_subcommands, run };

/// Measure cores and caches, and divide caches
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = examples(&[
    ("lowlat cache c2c", "Measure the latency between cores, and compare their groups with the kernel's topology."),
    ("lowlat cache clock", "Measure the clock of each core while all are busy."),
    ("lowlat cache clusters", "Show whether the kernel spreads load over clusters, and measure what filling one costs."),
    ("lowlat cache false-sharing", "Measure what it costs when threads write to one cache line."),
    ("lowlat cache memory", "Measure latency and bandwidth of memory between nodes."),
    ("lowlat cache partition --dry-run", "Show how the isolated CPUs would get ways of the cache of their own."),
]))]
enum Action {
    C2c(c2c::CacheC2cArgs),
    Clock(clock::CacheClockArgs),
    Clusters(clusters::CacheClustersArgs),
    FalseSharing(false_sharing::CacheFalseSharingArgs),
    Memory(memory::CacheMemoryArgs),
    Partition(partition::CachePartitionArgs),
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::C2c(arguments) => c2c::run(&arguments),
        Action::Clock(arguments) => clock::run(&arguments),
        Action::Clusters(arguments) => clusters::run(&arguments),
        Action::FalseSharing(arguments) => false_sharing::run(&arguments),
        Action::Memory(arguments) => memory::run(&arguments),
        Action::Partition(arguments) => partition::run(&arguments),
    }
}

/// The CPUs to measure: those asked for, all of which must be usable; else those to which somebody bound this process; else
/// all usable ones.
fn usable(asked: Option<&CpuSet>, host: &HostSnapshot) -> anyhow::Result<CpuSet> {
    let online = &host.topology.online;
    if asked.is_none()
        && let Some(bound) = choose::bound(host)
    {
        bound.note.iter().for_each(|note| output::talk(note));
        return Ok(bound.cpus);
    }
    let usable = affinity::settable(asked.unwrap_or(online))?;
    if let Some(asked) = asked {
        let missing = asked.difference(&usable);
        anyhow::ensure!(
            missing.is_empty(),
            "cannot measure CPUs {missing}: offline or outside of this process's cpuset\nhint: choose CPUs among {}",
            affinity::settable(online)?
        );
    }
    Ok(usable)
}
