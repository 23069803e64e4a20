//! `lowlat man`: man pages from the declarations.

use super::{Subcommand, cli, examples};
use crate::{
    output::{self, Exit},
    results,
};
use anyhow::Context;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use clap_mangen::Man;
use lowlat_sys::output::{Access, OutputDirectory, OutputError};
use std::path::{Path, PathBuf};

pub const COMMAND: Subcommand = Subcommand { name: "man", declare, run };

#[derive(Debug, Args)]
struct Arguments {
    /// Write one page per command to this directory instead of printing the main page
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command).about("Print the man page, or write one per command").after_help(
        examples(&[
            ("lowlat man | man -l -", "Read the main page."),
            ("lowlat man --dir /usr/local/share/man/man1", "Install the page of every command."),
        ]),
    )
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    if let Some(dir) = &arguments.dir {
        write_pages(dir)?;
    } else {
        let mut page = Vec::new();
        Man::new(cli()).render(&mut page).context("cannot render the man page")?;
        output::print_plain(&String::from_utf8_lossy(&page))?;
    }
    Ok(Exit::Clean)
}

/// Writes the page of every command to a directory.
fn write_pages(dir: &Path) -> anyhow::Result<()> {
    let failed = |error: OutputError| results::in_words(&error, "name another directory with --dir");
    let dir = OutputDirectory::open(dir).map_err(failed)?;
    // Like `clap_mangen::generate_to`, except for the writing.
    let mut command = cli().disable_help_subcommand(true);
    command.build();
    pages(command, &mut |name, page| dir.file(name.as_ref(), Access::Shared).write(page).map_err(failed))
}

fn pages(command: Command, write: &mut impl FnMut(&str, &[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()).cloned() {
        pages(below, write)?;
    }
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text).context("cannot render the man page")?;
    write(&page.get_filename(), &text)
}
