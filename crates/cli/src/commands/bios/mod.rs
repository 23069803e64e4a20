//! `lowlat bios`: BIOS settings from a Redfish service or its saved answers, judged; the requests that change them, and
//! the sending of these.

mod apply;
mod connection;
mod source;

use super::{Subcommand, examples};
use crate::{
    output::{self, Exit},
    results::OutputFile,
};
use anyhow::bail;
use clap::{ArgGroup, ArgMatches, Args, Command, FromArgMatches, Subcommand as _};
use connection::Connection;
use lowlat_bios::{BiosAudit, BiosExport, needs_accepted_risk};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::Profile;
use lowlat_report::BiosTextOptions;
use source::Source;
use std::path::PathBuf;

pub const COMMAND: Subcommand = Subcommand { name: "bios", declare, run };

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Judge the BIOS settings of a server, active and pending, by its Redfish service or its saved answers
    Audit(Audit),
    /// Write the requests that make the settings as wanted, and those that restore the present ones
    Export(Export),
    /// Send the next of these requests to the service, after writing down what restores the present settings
    Apply(apply::Apply),
}

#[derive(Debug, Args)]
struct Audit {
    #[command(flatten)]
    source: Source,
    /// Show also the rows that are as wanted, or on which the profile has no opinion
    #[arg(long)]
    all: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Args)]
struct Export {
    #[command(flatten)]
    source: Source,
    /// Include this setting although it costs security or protection against memory errors; may be given again
    #[arg(long, value_name = "ID")]
    accept_risk: Vec<String>,
    /// Write the document here [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
}

fn declare(command: Command) -> Command {
    Action::augment_subcommands(command)
        .about("Judge BIOS settings over Redfish or from saved answers, and change them")
        .subcommand_required(true)
        .arg_required_else_help(true)
        // The audit and the export take --file in its place.
        .mut_subcommand("audit", needs_source)
        .mut_subcommand("export", needs_source)
        .mut_subcommand("apply", |apply| apply.mut_arg("redfish", |argument| argument.required(true)))
        .after_help(examples(&[
            (
                "lowlat bios audit --redfish https://bmc7 --user operator --save bmc7",
                "asks for the password, reads the settings, keeps the answers in the directory bmc7",
            ),
            (
                "lowlat bios audit --file bios.json --file settings.json --registry registry.json",
                "what differs, what waits for a restart, what another setting holds",
            ),
            (
                "lowlat bios export --file saved.json --profile guide-57037 --out change.json",
                "the PATCH bodies in their order, and a snapshot that restores the present settings",
            ),
            (
                "lowlat bios apply --redfish https://bmc7 --user operator --password-file bmc7.password",
                "shows what would be sent next; with --yes, sends it and reads it back",
            ),
            (
                "lowlat bios apply --redfish https://bmc7 --user operator --restore lowlat-bios-before.json --yes",
                "sends the next request on the way back",
            ),
        ]))
}

/// Requires saved answers or a service, so that the error and the usage name both.
fn needs_source(command: Command) -> Command {
    command.group(ArgGroup::new("settings").args(["file", "redfish"]).required(true).multiple(true))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::Audit(arguments) => audit(&arguments),
        Action::Export(arguments) => export(&arguments),
        Action::Apply(arguments) => apply::run(&arguments),
    }
}

fn audit(arguments: &Audit) -> anyhow::Result<Exit> {
    let facts = arguments.source.read(&arguments.connection)?;
    let audit = BiosAudit::of(&facts, arguments.source.profile);
    if arguments.json {
        output::print_json(&audit)?;
    } else {
        let options = BiosTextOptions { show_all: arguments.all, width: output::width() };
        output::print(&lowlat_report::bios_text(&audit, options))?;
    }
    Ok(if audit.counts.differences > 0 { Exit::Findings } else { Exit::Clean })
}

fn export(arguments: &Export) -> anyhow::Result<Exit> {
    let profile = arguments.source.profile;
    check_risks(&arguments.accept_risk, profile)?;
    let out = arguments.out.as_deref().map(|path| OutputFile::prepare(path, "--out")).transpose()?;
    let facts = arguments.source.read(&arguments.connection)?;
    let export = BiosExport::of(&facts, profile, &arguments.accept_risk);
    match &out {
        Some(file) => file.write_json_lines(&export)?,
        None => output::print_json(&export)?,
    }
    for left_out in &export.left_out {
        output::talk(&format!("left out: {} ({}): {}", left_out.id, left_out.attribute, left_out.why));
    }
    for warning in &export.warnings {
        output::talk(&format!("warning: {warning}"));
    }
    if let Some(file) = &out {
        let steps = export.steps.len();
        output::talk(&format!(
            "wrote {}: {steps} {} to send in order, and what restores the present settings",
            file.path().display(),
            if steps == 1 { "request" } else { "requests" },
        ));
    }
    let is_clean = export.steps.is_empty() && export.left_out.is_empty();
    Ok(if is_clean { Exit::Clean } else { Exit::Findings })
}

fn check_risks(ids: &[String], profile: Profile) -> anyhow::Result<()> {
    ids.iter().try_for_each(|id| check_risk(id, profile))
}

/// An accepted risk must be one: a misspelt id would leave its row out without a word.
fn check_risk(id: &str, profile: Profile) -> anyhow::Result<()> {
    match (needs_accepted_risk(id, profile), CATALOGUE.nearest(id)) {
        (Some(true), _) => Ok(()),
        (Some(false), _) => {
            bail!("--accept-risk {id}: profile {profile} wants nothing risky of it; leave it out")
        }
        (None, Some(near)) => bail!("no BIOS setting has the id \"{id}\"; did you mean \"{near}\"?"),
        (None, None) => bail!("no BIOS setting has the id \"{id}\"; `lowlat audit --list` shows every id"),
    }
}
