//! `lowlat bios`: judges BIOS settings from a Redfish service or its saved responses, and changes them.

mod apply;
mod connection;
mod diff;
mod hosts;
mod sheet;
mod source;

use super::{Subcommand, examples};
use crate::{arguments::PageArgs, commands::outputs::RunFiles, exit::Exit, labels::WithLabels, output};
use anyhow::bail;
use clap::{ArgMatches, Args, FromArgMatches, Subcommand as _};
use connection::Connection;
use lowlat_bios::{BiosAudit, BiosFleet, FleetServer, needs_accepted_risk};
use lowlat_catalogue::CATALOGUE;
use lowlat_tune_report::BiosTextOptions;
use source::Source;
use std::path::PathBuf;

pub const COMMAND: Subcommand = Subcommand { name: "bios", declare: Action::augment_subcommands, run };

/// Judge and change BIOS settings over Redfish, judge saved responses, print a sheet
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = examples(&[
    ("lowlat bios audit --redfish https://bmc7 --user operator --save bmc7", "Prompt for the password, judge the settings, save the responses in directory bmc7."),
    ("lowlat bios audit --file bios.json --file settings.json --registry registry.json", "Show which settings differ, are pending or are locked by another setting."),
    ("lowlat bios apply --dry-run --file saved.json --profile guide-57037 --out change.json", "Write the PATCH bodies in order, and a snapshot to restore the current settings."),
    ("lowlat bios apply --redfish https://bmc7 --user operator --password-file bmc7.password", "Show the next request; with --yes, send it and read it back."),
    ("lowlat bios apply --redfish https://bmc7 --user operator --restore lowlat-bios-before.json --yes", "Send the next request that restores the saved settings."),
    ("lowlat bios audit --hosts bmcs.txt --user operator --password-file bmc.password --report servers.html", "Audit many servers at a time, show which settings differ on most, and write a page."),
    ("lowlat bios diff bmc7 bmc8", "Show in which settings two servers differ, from what --save wrote for each."),
    ("lowlat bios sheet --profile guide-57037 --report bios.html", "Print the guide's BIOS settings in menu order, and write a page for paper."),
]))]
enum Action {
    /// Judge the active and pending BIOS settings of a server
    Audit(BiosAuditArgs),
    /// Save the current settings, then send the next request to the service
    Apply(apply::Apply),
    /// Compare the settings of two servers
    Diff(diff::DiffArgs),
    /// Print a profile's settings menu by menu, to set them by hand without Redfish
    Sheet(sheet::Sheet),
}

#[derive(Debug, Args)]
struct BiosAuditArgs {
    #[command(flatten)]
    source: Source,
    /// Audit every service in this file: on each line an address, and sha256:HEX if its certificate is pinned
    #[arg(long, value_name = "FILE", group = "settings", conflicts_with_all = ["file", "redfish", "registry", "all", "pin"])]
    hosts: Option<PathBuf>,
    /// Audit this many services at a time
    #[arg(long, value_name = "N", default_value_t = 8, requires = "hosts",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    parallel: u16,
    /// Also show rows that are as wanted, or that the profile leaves open
    #[arg(long)]
    all: bool,
    /// Write a page of the servers and their findings to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    language: PageArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::Audit(arguments) => audit(&arguments),
        Action::Apply(arguments) => apply::run(&arguments),
        Action::Diff(arguments) => diff::run(&arguments),
        Action::Sheet(arguments) => sheet::run(&arguments),
    }
}

fn audit(arguments: &BiosAuditArgs) -> anyhow::Result<Exit> {
    if let Some(path) = &arguments.hosts {
        return hosts::audit(arguments, path);
    }
    let page = RunFiles::prepare_page(arguments.report.as_deref(), &arguments.language)?;
    let facts = arguments.source.read(&arguments.connection)?;
    let audit = BiosAudit::of(&facts, arguments.source.profile);
    let labels = arguments.language.labels.of_all(std::iter::empty());
    output::print_as(arguments.json, &WithLabels { labels: &labels, result: &audit }, |width| {
        lowlat_tune_report::bios_text(&audit, BiosTextOptions { show_all: arguments.all, width })
    })?;
    page.write_page(&labels, || {
        let address = arguments.connection.redfish.clone().unwrap_or_else(|| "saved answers".to_owned());
        let server = FleetServer { address, audit: Some(audit.clone()), error: None };
        lowlat_tune_report::bios_fleet_html(&BiosFleet::of(arguments.source.profile, vec![server]))
    })?;
    Ok(audit.counts.checked().claim(audit.counts.differences > 0).into())
}

fn check_risks(ids: &[String]) -> anyhow::Result<()> {
    ids.iter().try_for_each(|id| check_risk(id))
}

/// Refuses an id without a risk: a misspelt id would otherwise leave its row out silently.
fn check_risk(id: &str) -> anyhow::Result<()> {
    match (needs_accepted_risk(id), CATALOGUE.nearest(id)) {
        (Some(true), _) => Ok(()),
        (Some(false), _) => {
            bail!("--accept-risk {id}: no value of this setting needs it\nhint: remove --accept-risk {id}")
        }
        (None, Some(near)) => bail!("no BIOS setting has the id \"{id}\"; did you mean \"{near}\"?"),
        (None, None) => {
            bail!("no BIOS setting has the id \"{id}\"\nhint: `lowlat audit --list` shows every id")
        }
    }
}
