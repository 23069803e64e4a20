//! `lowlat net`: network cards and network latency.

mod nics;
mod pingpong;
mod prepare;

use super::{Subcommand, examples, group, run_member};
use crate::output::Exit;
use clap::{ArgMatches, Command};
use lowlat_host::{HostSnapshot, snapshot::Nic};

pub const COMMAND: Subcommand = Subcommand { name: "net", declare, run };

/// The subcommands, in help order. A new one adds its file and its line here.
const MEMBERS: &[Subcommand] = &[nics::COMMAND, prepare::COMMAND, pingpong::COMMAND];

fn declare(command: Command) -> Command {
    group(command, MEMBERS)
        .about("Show and prepare network interfaces, and measure network latency")
        .after_help(examples(&[
            ("lowlat net nics", "Show every physical interface, and whether it can be measured."),
            ("lowlat net prepare enp1s0f1 --plan", "Show what prepares the host for an interface."),
            ("lowlat net pingpong server", "Answer clients on this host."),
            (
                "lowlat net pingpong client tcp 10.0.0.2 --wait spin",
                "Measure half round trips of every size.",
            ),
            ("lowlat net pingpong --import sfnt.log", "Read the output of sfnt-pingpong."),
        ]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    run_member("net", MEMBERS, matches)
}

/// The interface of this name.
fn found<'a>(host: &'a HostSnapshot, name: &str) -> anyhow::Result<&'a Nic> {
    host.nics.iter().find(|nic| nic.name == name).ok_or_else(|| {
        let names: Vec<&str> = host.nics.iter().map(|nic| nic.name.as_str()).collect();
        anyhow::anyhow!(
            "cannot use interface {name}: this host has no such interface\nhint: choose one of {}",
            names.join(", ")
        )
    })
}
