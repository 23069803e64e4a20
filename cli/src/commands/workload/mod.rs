//! `lowlat workload`: workloads under different placements, idle settings and policies.

mod article;
mod compare;
mod list;
mod measure;
mod run;

use super::{Subcommand, examples, group, run_member};
use crate::output::Exit;
use clap::{ArgMatches, Command};

pub const COMMAND: Subcommand = Subcommand { name: "workload", declare, run };

/// The subcommands, in help order. A new one adds its file and its line here.
const MEMBERS: &[Subcommand] = &[list::COMMAND, run::COMMAND, compare::COMMAND, article::COMMAND];

fn declare(command: Command) -> Command {
    group(command, MEMBERS)
        .about("Measure workloads under placements, idle settings and policies")
        .after_help(examples(&[
            (
                "lowlat workload list",
                "List the workloads, and what is missing for those that cannot run here.",
            ),
            (
                "lowlat workload compare pipe --a place=spread --b place=one",
                "Compare two placements of two processes that wake each other.",
            ),
            ("lowlat workload article", "Take published gains apart by placement and idle states."),
        ]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    run_member("workload", MEMBERS, matches)
}
