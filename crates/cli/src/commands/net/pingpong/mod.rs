//! `lowlat net pingpong`: round trips, and logs of sfnt-pingpong.

mod import;

use crate::{
    commands::{Subcommand, examples},
    output::Exit,
};
use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use std::path::PathBuf;

pub const COMMAND: Subcommand = Subcommand { name: "pingpong", declare, run };

#[derive(Debug, Args)]
struct Arguments {
    /// Read the output of sfnt-pingpong 1.5.0 or 1.6.0 from these files
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "reference", required_unless_present = "reference")]
    import: Vec<PathBuf>,
    /// Show the published tables of sfnt-pingpong over Onload (2019), marked doubtful
    #[arg(long)]
    reference: bool,
    /// What to print on stdout: tables for people, sfnt-pingpong's own format, or JSON
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Forms of a log on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    // Plain comments keep the help of each option on one line.
    // Tables for people.
    Text,
    // The format of sfnt-pingpong.
    Sfnt,
    // JSON.
    Json,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command).about("Measure round trips, or read logs of sfnt-pingpong").after_help(
        examples(&[
            ("lowlat net pingpong --import sfnt.log", "the table with units, and what makes it doubtful"),
            ("lowlat net pingpong --reference --format json", "the published tables for a program"),
        ]),
    )
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    import::run(&arguments)
}
