//! `lowlat report fleet`.

use super::names;
use crate::{
    arguments::PageArgs,
    commands::{help, outputs::RunFiles},
    documents,
    exit::Exit,
    labels::WithLabels,
    output,
};
use clap::Args;
use lowlat_results::fleet::{Fleet, FleetHost};
use std::path::PathBuf;

/// Show which hosts of a fleet differ from the others, and in what
#[derive(Debug, Args)]
#[command(after_help = help("Hosts are compared by the verdicts on their settings, so hosts with other CPU numbers can be\n\
    alike. Hosts that differ come first, and settings at fault on the fewest hosts.\n\
    A file that cannot be read is named and left out; other documents of lowlat are passed over.\n\n\
    Exit codes: 0 no verdict differs between the hosts, 1 at least one does, 2 error, \
    4 none differs, but less than half of the settings could be checked.", &[
    ("lowlat report fleet *.json", "List the hosts that differ from most others."),
    ("lowlat report fleet *.json --report fleet.html", "Write the page of a fleet."),
]))]
pub struct ReportFleetArgs {
    /// Compare these documents, one of each host
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON on stdout
    #[arg(long)]
    json: bool,
    /// Write the HTML page to this file, and print nothing
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    report: Option<PathBuf>,
    #[command(flatten)]
    language: PageArgs,
}

pub fn run(arguments: &ReportFleetArgs) -> anyhow::Result<Exit> {
    let page = RunFiles::prepare_page(arguments.report.as_deref(), &arguments.language)?;
    let labels = &arguments.language.labels;
    // Of each document only what the fleet needs is kept: a thousand of them fit into memory.
    let (mut hosts, mut is_whole) = (Vec::new(), true);
    for (name, path) in names(&arguments.files, labels, "host").into_iter().zip(&arguments.files) {
        let read = documents::RESULT.bytes(path);
        match read.map(|bytes| (is_of_another_command(&bytes), documents::RESULT.parse(path, &bytes))) {
            Ok((_, Ok(document))) => {
                let name = name.strip_suffix(".json").unwrap_or(&name);
                hosts.push(FleetHost::of(name, &labels.label(document)));
            }
            // Such as a verification in the same folder.
            Ok((true, Err(other))) => {
                let told = other.to_string();
                output::talk(&format!("passed over: {}", told.lines().next().unwrap_or_default()));
            }
            Ok((false, Err(error))) | Err(error) => {
                is_whole = false;
                output::talk(&format!("lowlat report fleet: {}", crate::in_words(&error)));
            }
        }
    }
    anyhow::ensure!(
        !hosts.is_empty(),
        "cannot compare hosts: none of the files is a result document\nhint: name documents that `lowlat assess --result` wrote"
    );
    let fleet = Fleet::of(hosts);
    let of_fleet = labels.of_all(std::iter::empty());
    if arguments.report.is_some() {
        page.write_page(&of_fleet, || lowlat_results_report::fleet_html(&fleet))?;
    } else {
        let document = output::Document::of("lowlat-fleet", &fleet);
        output::print_as(arguments.json, &WithLabels { labels: &of_fleet, result: &document }, |width| {
            lowlat_results_report::fleet_text(&fleet, width)
        })?;
    }
    if !is_whole {
        return Ok(Exit::Error);
    }
    Ok(fleet.checked().claim(fleet.alike_count() < fleet.hosts.len()).into())
}

fn is_of_another_command(bytes: &[u8]) -> bool {
    let kind = documents::kind_of(bytes);
    kind.is_some_and(|kind| kind.starts_with("lowlat-") && kind != documents::RESULT.document)
}
