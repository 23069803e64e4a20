//! `lowlat report`: result documents as pages, and compared with each other.

mod compare;
mod render;

use super::{Subcommand, examples, group, run_member};
use crate::{documents, output::Exit};
use clap::{ArgMatches, Command};
use lowlat_result::ResultDocument;
use std::path::{Path, PathBuf};

pub const COMMAND: Subcommand = Subcommand { name: "report", declare, run };

/// The subcommands, in help order.
const MEMBERS: &[Subcommand] = &[compare::COMMAND, render::COMMAND];

fn declare(command: Command) -> Command {
    group(command, MEMBERS).about("Compare result documents, or render them as one page").after_help(
        examples(&[
            (
                "lowlat report compare before.json after.json",
                "Show what a change did, and which settings explain it.",
            ),
            (
                "lowlat report compare before.json after.json --fail-if-worse 5%",
                "Fail a script if interruptions are more frequent by more than 5 %.",
            ),
            (
                "lowlat report render desk7.json desk8.json --html desks.html",
                "Render two documents as one page.",
            ),
        ]),
    )
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    run_member("report", MEMBERS, matches)
}

/// Reads documents, each with a name: that of its file, or its path if two files have the same name.
fn read(files: &[PathBuf]) -> anyhow::Result<Vec<(String, ResultDocument)>> {
    let name =
        |path: &Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let is_shared = |path: &Path| files.iter().filter(|other| name(other) == name(path)).count() > 1;
    let read = |path: &PathBuf| -> anyhow::Result<(String, ResultDocument)> {
        let shown = if is_shared(path) { path.display().to_string() } else { name(path) };
        Ok((shown, documents::read(path)?))
    };
    files.iter().map(read).collect()
}

/// Returns the documents by reference, with their names.
fn named(documents: &[(String, ResultDocument)]) -> Vec<(String, &ResultDocument)> {
    documents.iter().map(|(name, document)| (name.clone(), document)).collect()
}
