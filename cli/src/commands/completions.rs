//! `lowlat completions`: completion scripts from the declarations.

use super::{Subcommand, cli, examples};
use crate::{exit::Exit, output};
use clap::{ArgMatches, Args, FromArgMatches};
use clap_complete::Shell;

pub const COMMAND: Subcommand =
    Subcommand { name: "completions", declare: CompletionsArgs::augment_args, run };

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = examples(&[("lowlat completions bash > /etc/bash_completion.d/lowlat", "Install completions for every user's bash.")]))]
struct CompletionsArgs {
    /// Shell to complete commands in
    shell: Shell,
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = CompletionsArgs::from_arg_matches(matches)?;
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut cli(), "lowlat", &mut script);
    output::print_plain(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Clean)
}
