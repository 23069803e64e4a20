//! `lowlat man`: man pages from the declarations.

use super::{Subcommand, cli, examples};
use crate::output::{self, Exit};
use anyhow::Context;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::path::PathBuf;

pub const COMMAND: Subcommand = Subcommand { name: "man", declare, run };

#[derive(Debug, Args)]
struct Arguments {
    /// Write a page per command into this directory instead of printing the main page
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command).about("Print the man page, or write one per command").after_help(
        examples(&[
            ("lowlat man | man -l -", "read the main page"),
            ("lowlat man --dir /usr/local/share/man/man1", "install the page of every command"),
        ]),
    )
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    if let Some(dir) = &arguments.dir {
        clap_mangen::generate_to(cli(), dir)
            .with_context(|| format!("cannot write man pages into {}", dir.display()))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(cli()).render(&mut page).context("cannot render the man page")?;
        output::print(&String::from_utf8_lossy(&page))?;
    }
    Ok(Exit::Clean)
}
