//! `lowlat report`: result documents as pages, and compared with each other.

mod compare;
mod fleet;
mod render;

use super::{Subcommand, examples};
use crate::{documents, exit::Exit, labels::LabelArgs};
use clap::{ArgMatches, FromArgMatches, Subcommand as _};
use lowlat_results::ResultDocument;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

pub const COMMAND: Subcommand = Subcommand { name: "report", declare: Action::augment_subcommands, run };

/// Compare result documents, render them as one page, or find the odd hosts of a fleet
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true, after_help = examples(&[
    ("lowlat report compare before.json after.json", "Show what a change did, and which settings explain it."),
    ("lowlat report compare before.json after.json --fail-if-worse 5%", "Fail a script if interruptions are more frequent by more than 5 %."),
    ("lowlat report render desk7.json desk8.json --report desks.html", "Render two documents as one page."),
    ("lowlat report fleet *.json --report fleet.html", "Show which hosts of a fleet differ."),
]))]
enum Action {
    Compare(compare::ReportCompareArgs),
    Render(render::ReportRenderArgs),
    Fleet(fleet::ReportFleetArgs),
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::Compare(arguments) => compare::run(&arguments),
        Action::Render(arguments) => render::run(arguments),
        Action::Fleet(arguments) => fleet::run(&arguments),
    }
}

/// Reads documents, each with its name.
fn read(files: &[PathBuf], labels: &LabelArgs) -> anyhow::Result<Vec<(String, ResultDocument)>> {
    let read = |(name, path): (String, &PathBuf)| Ok((name, labels.label(documents::read(path)?)));
    names(files, labels, "document").into_iter().zip(files).map(read).collect()
}

/// Returns a document's name for each file: that of the file, or its path if two files have the same name. Files are
/// often named after their hosts, so an anonymous page numbers them as `what`.
fn names(files: &[PathBuf], labels: &LabelArgs, what: &str) -> Vec<String> {
    if labels.anonymous {
        return (1..=files.len()).map(|number| format!("{what} {number}")).collect();
    }
    let name =
        |path: &Path| path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut counts: HashMap<String, usize> = HashMap::new();
    for path in files {
        *counts.entry(name(path)).or_default() += 1;
    }
    let is_shared = |name: &str| counts.get(name).is_some_and(|count| *count > 1);
    let shown = |path: &PathBuf| match name(path) {
        name if is_shared(&name) => path.display().to_string(),
        name => name,
    };
    files.iter().map(shown).collect()
}

/// Returns the documents by reference, with their names.
fn named(documents: &[(String, ResultDocument)]) -> Vec<(String, &ResultDocument)> {
    documents.iter().map(|(name, document)| (name.clone(), document)).collect()
}
