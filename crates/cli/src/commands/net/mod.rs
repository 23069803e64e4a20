//! `lowlat net`: network cards and network latency.

mod pingpong;

use super::{Subcommand, examples, group, run_member};
use crate::output::Exit;
use clap::{ArgMatches, Command};

pub const COMMAND: Subcommand = Subcommand { name: "net", declare, run };

/// The subcommands, in help order. A new one adds its file and its line here.
const MEMBERS: &[Subcommand] = &[pingpong::COMMAND];

fn declare(command: Command) -> Command {
    group(command, MEMBERS).about("Measure network latency, and read measurements of other tools").after_help(
        examples(&[
            (
                "lowlat net pingpong --import sfnt.log",
                "read the output of sfnt-pingpong, and say what makes it doubtful",
            ),
            ("lowlat net pingpong --reference", "the published tables of sfnt-pingpong over Onload"),
        ]),
    )
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    run_member("net", MEMBERS, matches)
}
