//! `lowlat pipeline role`: one process of a run, started by its master.

use crate::{
    commands::{Subcommand, examples},
    output::Exit,
};
use anyhow::bail;
use clap::{Arg, ArgMatches, Command, value_parser};
use std::ffi::OsString;

pub const COMMAND: Subcommand = Subcommand { name: "role", declare, run };

/// The processes of a run.
const ROLES: [&str; 6] = ["master", "cached", "md", "td", "strategy", "host"];

fn declare(command: Command) -> Command {
    command
        .hide(true)
        .about("Run one process of the pipeline: md, td, a strategy, a strategy host, master or cached")
        .after_help(examples(&[("lowlat pipeline role md --help", "what md takes; its master gives it")]))
        .arg(Arg::new("role").required(true).value_parser(ROLES).help("Which process"))
        .arg(
            Arg::new("arguments")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(OsString))
                .help("Its arguments"),
        )
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let role = matches.get_one::<String>("role").map_or("", String::as_str);
    bail!("{role}: this build of lowlat has no processes to run; use a later one")
}
