//! `lowlat cache`: cores and caches.

mod c2c;
mod clock;
mod clusters;
mod false_sharing;
mod find;
mod memory;
mod partition;

use super::{Subcommand, examples, group, run_member};
use crate::{
    choose,
    output::{self, Exit},
};
use clap::{ArgMatches, Command};
use lowlat_host::{CpuSet, HostSnapshot};
use lowlat_host_run::affinity;

pub const COMMAND: Subcommand = Subcommand { name: "cache", declare, run };

/// The subcommands, in help order. A new one adds its file and its line here.
const MEMBERS: &[Subcommand] = &[
    c2c::COMMAND,
    clock::COMMAND,
    clusters::COMMAND,
    false_sharing::COMMAND,
    memory::COMMAND,
    partition::COMMAND,
];

fn declare(command: Command) -> Command {
    group(command, MEMBERS).about("Measure cores and caches, and divide caches").after_help(examples(&[
        (
            "lowlat cache c2c",
            "Measure the latency between cores, and compare their groups with the kernel's topology.",
        ),
        ("lowlat cache clock", "Measure the clock of each core while all are busy."),
        (
            "lowlat cache clusters",
            "Show whether the kernel spreads load over clusters, and measure what filling one costs.",
        ),
        ("lowlat cache false-sharing", "Measure what it costs when threads write to one cache line."),
        ("lowlat cache memory", "Measure latency and bandwidth of memory between nodes."),
        (
            "lowlat cache partition --dry-run",
            "Show how the isolated CPUs would get ways of the cache of their own.",
        ),
    ]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    run_member("cache", MEMBERS, matches)
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
