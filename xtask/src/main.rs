//! Commands of this repository: `cargo xtask --help`.
#![forbid(unsafe_code)]

mod check;
mod dist;
#[cfg(target_arch = "x86_64")]
mod footprint;
mod handbook;
mod library;
mod numbers;
mod packages;
mod run;
mod wheel;
mod workspace;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", about = "Commands of this repository")]
struct Arguments {
    #[command(subcommand)]
    command: XtaskCommand,
}

#[derive(Debug, Subcommand)]
enum XtaskCommand {
    /// Check the format, and lint and unit-test the crates that differ from main
    Check(check::Options),
    /// Build the static binary that users get, with its debug information in a file beside it
    Dist(dist::Options),
    /// Count the instructions, and the lines and pages of code, of a wake in a pipeline
    #[cfg(target_arch = "x86_64")]
    Footprint(footprint::FootprintOptions),
    /// Make the handbook in target/book: docs/ with the help of each command, a page for each setting, and the schema of results
    Handbook,
    /// Print how large the tree is, and how many of its types share a name
    Numbers(numbers::Options),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        XtaskCommand::Check(options) => check::check(&options),
        XtaskCommand::Dist(options) => dist::dist(&options),
        #[cfg(target_arch = "x86_64")]
        XtaskCommand::Footprint(options) => footprint::footprint(&options),
        XtaskCommand::Handbook => handbook::make(),
        XtaskCommand::Numbers(options) => numbers::numbers(&options),
    }
}
