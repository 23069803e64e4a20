//! `lowlat bios`: BIOS settings from saved Redfish JSON, judged, and the requests that change them.

use super::{Subcommand, examples};
use crate::{
    output::{self, Exit},
    results::OutputFile,
};
use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand as _};
use lowlat_model::{
    Profile,
    bios::{BYTES_MAX, BiosAudit, BiosExport, BiosFacts, BiosReader, needs_accepted_risk},
    catalogue,
};
use lowlat_report::BiosTextOptions;
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

pub const COMMAND: Subcommand = Subcommand { name: "bios", declare, run };

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Judge the BIOS settings of a server, active and pending, by its saved Redfish resources
    Audit(Audit),
    /// Write the requests that make the settings as wanted, and those that restore the present ones
    Export(Export),
}

#[derive(Debug, Args)]
struct Source {
    /// Saved Redfish JSON: the Bios resource, its settings resource, ComputerSystem; one file each or bundled
    #[arg(long, value_name = "FILE", required = true)]
    file: Vec<PathBuf>,
    /// Saved attribute registry of this BIOS: accepted values, dependencies
    #[arg(long, value_name = "FILE")]
    registry: Option<PathBuf>,
    /// Profile to judge by: trading or guide-57037
    #[arg(long, value_name = "NAME", default_value_t)]
    profile: Profile,
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
}

fn declare(command: Command) -> Command {
    Action::augment_subcommands(command)
        .about("Judge BIOS settings from saved Redfish JSON; write the requests that change them")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(examples(&[
            (
                "lowlat bios audit --file bios.json --file settings.json --registry registry.json",
                "what differs, what waits for a restart, what another setting holds",
            ),
            (
                "lowlat bios export --file saved.json --profile guide-57037 --out change.json",
                "the PATCH bodies in their order, and a snapshot that restores the present settings",
            ),
        ]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::Audit(arguments) => audit(&arguments),
        Action::Export(arguments) => export(&arguments),
    }
}

fn audit(arguments: &Audit) -> anyhow::Result<Exit> {
    let facts = arguments.source.read()?;
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
    for id in &arguments.accept_risk {
        check_risk(id, profile)?;
    }
    let out = arguments.out.as_deref().map(|path| OutputFile::prepare(path, "--out")).transpose()?;
    let facts = arguments.source.read()?;
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

/// An accepted risk must be one: a misspelt id would leave its row out without a word.
fn check_risk(id: &str, profile: Profile) -> anyhow::Result<()> {
    match (needs_accepted_risk(id, profile), catalogue::nearest(id)) {
        (Some(true), _) => Ok(()),
        (Some(false), _) => {
            bail!("--accept-risk {id}: profile {profile} wants nothing risky of it; leave it out")
        }
        (None, Some(near)) => bail!("no BIOS setting has the id \"{id}\"; did you mean \"{near}\"?"),
        (None, None) => bail!("no BIOS setting has the id \"{id}\"; `lowlat audit --list` shows every id"),
    }
}

impl Source {
    fn read(&self) -> anyhow::Result<BiosFacts> {
        let mut reader = BiosReader::default();
        for path in self.file.iter().chain(&self.registry) {
            reader.add(&path.display().to_string(), &bounded(path)?)?;
        }
        Ok(reader.finish()?)
    }
}

/// The file's bytes, one more than are taken at most: enough to refuse it.
fn bounded(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let next = "name a file with saved Redfish JSON";
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {shown}; {next}"))?;
    if !metadata.is_file() {
        bail!("{shown} is no regular file; {next}");
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {shown}; {next}"))?;
    Ok(bytes)
}
