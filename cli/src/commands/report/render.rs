//! `lowlat report render`.

use super::{named, read};
use crate::{
    arguments::PageArgs,
    commands::{Subcommand, examples},
    documents,
    output::{self, Exit},
    results::{OutputFile, write_all},
};
use anyhow::Context;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::path::PathBuf;

pub const COMMAND: Subcommand = Subcommand { name: "render", declare, run };

#[derive(Debug, Args)]
struct Arguments {
    /// Render these documents; several make one page
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print Markdown instead of text
    #[arg(long)]
    markdown: bool,
    /// Write the HTML page to this file, and print nothing
    #[arg(long, value_name = "FILE", conflicts_with = "markdown")]
    report: Option<PathBuf>,
    #[command(flatten)]
    language: PageArgs,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command).about("Render documents as text, Markdown or one HTML page").after_help(
        format!(
            "Exit codes: 0 done, 2 error.\n\n{}",
            examples(&[
                ("lowlat report render desk7.json", "Print a document as the command that measured it did."),
                (
                    "lowlat report render desk7.json desk8.json --report desks.html",
                    "Write one page of two documents.",
                ),
                ("lowlat report render desk7.json --markdown", "Print Markdown for a ticket."),
            ])
        ),
    )
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    let page = arguments.report.as_deref().map(|path| OutputFile::prepare(path, "--report")).transpose()?;
    let mut documents = read(&arguments.files, &arguments.language.labels)?;
    for (name, document) in &mut documents {
        documents::study_again(document).with_context(|| format!("cannot render {name}"))?;
    }
    let documents = named(&documents);
    let labels = match documents.as_slice() {
        [(_, document)] => document.labels.clone(),
        documents => arguments.language.labels.of_all(documents.iter().map(|(_, document)| &document.labels)),
    };
    match &page {
        Some(_) => write_all(page.iter().map(|file| {
            (file, Ok(arguments.language.page(lowlat_results_report::documents_html(&documents), &labels)))
        }))?,
        None if arguments.markdown => {
            output::print_plain(&lowlat_results_report::documents_markdown(&documents))?;
        }
        None => output::print(&lowlat_results_report::documents_text(&documents, output::width()))?,
    }
    Ok(Exit::Clean)
}
