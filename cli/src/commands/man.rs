//! `lowlat man`: man pages from the declarations.

use super::{Subcommand, cli, examples};
use crate::{exit::Exit, output, results};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};
use lowlat_host_run::output::{FileAccess, OutputDirectory, OutputError};
use std::path::{Path, PathBuf};

pub const COMMAND: Subcommand = Subcommand { name: "man", declare: ManArgs::augment_args, run };

/// Print the man page, or write one per command
#[derive(Debug, Args)]
#[command(after_help = examples(&[
    ("lowlat man | man -l -", "Read the main page."),
    ("lowlat man --dir /usr/local/share/man/man1", "Install the page of every command."),
]))]
struct ManArgs {
    /// Write one page per command to this directory instead of printing the main page
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = ManArgs::from_arg_matches(matches)?;
    if let Some(dir) = &arguments.dir {
        write_pages(dir)?;
    } else {
        output::print_plain(&String::from_utf8_lossy(&rendered(&whole())?))?;
    }
    Ok(Exit::Clean)
}

/// Writes the page of every command to a directory.
fn write_pages(dir: &Path) -> anyhow::Result<()> {
    let failed = |error: OutputError| results::in_words(&error, "name another directory with --dir");
    let dir = OutputDirectory::create(dir).map_err(failed)?;
    pages(&whole(), &mut |name, page| dir.file(name.as_ref(), FileAccess::Shared).write(page).map_err(failed))
}

/// The declaration of all commands that have a page.
fn whole() -> Command {
    let mut command = cli().disable_help_subcommand(true);
    command.build();
    command
}

/// Renders the page of a command after those of its members.
fn pages(command: &Command, write: &mut impl FnMut(&str, &[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(below, write)?;
    }
    write(&Man::new(command.clone()).get_filename(), &rendered(command)?)
}

/// Renders a page. The text after the help becomes the usual sections; clap has one section for all of it.
fn rendered(command: &Command) -> anyhow::Result<Vec<u8>> {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (mut notes, mut status, mut examples) = (Vec::new(), Vec::new(), Vec::new());
    for paragraph in help.split("\n\n") {
        if let Some(lines) = paragraph.strip_prefix("Examples:\n") {
            examples.push(lines);
        } else {
            let (note, codes) = paragraph.split_once("Exit codes: ").unwrap_or((paragraph, ""));
            notes.push(note);
            status.push(codes);
        }
    }
    let mut roff = Roff::new();
    for (title, paragraphs) in [("NOTES", notes), ("EXIT STATUS", status), ("EXAMPLES", examples)] {
        for (at, text) in paragraphs.into_iter().filter(|text| !text.trim().is_empty()).enumerate() {
            // Tables and commands keep their lines.
            let is_laid_out = text.starts_with("  ") || text.contains("\n  ");
            if at == 0 {
                roff.control("SH", [title])
            } else {
                roff.control("PP", [])
            };
            roff.control(if is_laid_out { "nf" } else { "fi" }, []);
            for line in text.lines() {
                roff.text([roman(line)]);
            }
            roff.control("fi", []);
        }
    }
    let page = Man::new(command.clone().after_help(None::<&str>));
    let mut text = Vec::new();
    page.source(concat!("lowlat ", env!("CARGO_PKG_VERSION"))).render(&mut text)?;
    roff.to_writer(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn pages_have_the_usual_sections_and_name_only_pages_that_exist() {
        let mut found = BTreeMap::new();
        pages(&whole(), &mut |name, page| {
            found.insert(name.to_owned(), String::from_utf8(page.to_vec())?);
            Ok(())
        })
        .unwrap();
        assert_eq!(found["lowlat.1"].as_bytes(), rendered(&whole()).unwrap());
        for (name, page) in &found {
            assert!(page.contains("\n.SH EXAMPLES\n") || name.matches('-').count() != 1, "{name}");
            assert!(!page.contains("EXTRA") && !page.contains("Exit codes:"), "{name}");
            let references = page.lines().filter_map(|line| line.strip_suffix("(1)"));
            for reference in references.map(|of| of.replace("\\-", "-")) {
                assert!(found.contains_key(&format!("{reference}.1")), "{name} refers to {reference}(1)");
            }
        }
        assert!(found["lowlat.1"].contains("lowlat\\-tune(1)"), "{}", found["lowlat.1"]);
        assert!(found["lowlat-tune-plan.1"].contains("\n.SH \"EXIT STATUS\"\n"));
    }
}
