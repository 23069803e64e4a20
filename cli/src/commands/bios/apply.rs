//! `lowlat bios apply`: shows the next request and, with --yes, sends it and reads it back.

use super::{
    check_risks,
    connection::{Connection, in_words},
    source::{Source, bounded},
};
use crate::{arguments::duration_within, commands::completions, exit::Exit, output, results};
use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;
use lowlat_bios::{BiosAudit, BiosChange, BiosExport, BiosFacts, MaintenanceWindow, Request};
use lowlat_host::Profile;
use lowlat_host_run::output::{FileAccess, OutputFile};
use lowlat_redfish::Sent;
use lowlat_text::units::plural;
use serde::Serialize;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

#[derive(Debug, Args)]
pub struct Apply {
    #[command(flatten)]
    source: Source,
    /// Include this setting although it weakens security or memory error protection; repeatable
    #[arg(long, value_name = "ID", add = completions::settings())]
    accept_risk: Vec<String>,
    /// Restore the settings saved in this file by an earlier apply
    #[arg(long, value_name = "FILE", conflicts_with_all = ["profile", "accept_risk"])]
    restore: Option<PathBuf>,
    /// Send the request [default: only show it]
    #[arg(long)]
    yes: bool,
    /// Write all requests in order, and what restores the current settings, and send nothing
    #[arg(long, conflicts_with_all = ["yes", "restore", "with_pending", "before", "json"])]
    dry_run: bool,
    /// Write the document of --dry-run to this file [default: stdout]
    #[arg(long, value_name = "FILE", requires = "dry_run")]
    out: Option<PathBuf>,
    /// Let the service apply the change in a maintenance window that starts then, as 2030-01-31T02:00:00Z
    #[arg(long, value_name = "TIME", requires = "window_length", value_parser = window_start)]
    window_start: Option<String>,
    /// Length of that maintenance window, 1 min to 24 h
    #[arg(long, value_name = "TIME", requires = "window_start", value_parser = window_length)]
    window_length: Option<Duration>,
    /// Send the request even if changes are already pending; the restart applies both
    #[arg(long)]
    with_pending: bool,
    /// Save the current settings in this new file before sending [default: lowlat-bios-before.json, or the next free
    /// number]
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

fn window_start(text: &str) -> Result<String, String> {
    let expected = || format!("\"{text}\" is not a time of RFC 3339, such as 2030-01-31T02:00:00Z");
    // The parser also accepts a space for the T, and a time zone's name in brackets.
    let is_strict = text.as_bytes().get(10) == Some(&b'T') && !text.contains('[');
    let time: Timestamp = text.parse().ok().filter(|_| is_strict).ok_or_else(expected)?;
    if time > Timestamp::now() { Ok(text.to_owned()) } else { Err(format!("\"{text}\" is in the past")) }
}

fn window_length(text: &str) -> Result<Duration, String> {
    duration_within(text, Duration::from_secs(60)..=Duration::from_secs(86_400), "1 min to 24 h")
}

/// Result of the command as JSON.
#[derive(Serialize)]
struct Outcome<'a> {
    #[serde(flatten)]
    change: &'a BiosChange,
    sent: Option<&'a Sent>,
    before: Option<PathBuf>,
}

/// Highest number tried for a file with the previous settings.
const NUMBER_MAX: u32 = 999;

impl Apply {
    /// Defers a request to the maintenance window of the options, if there is one.
    fn defer(&self, facts: &BiosFacts, request: Option<&mut Request>) -> anyhow::Result<()> {
        let Some((start, length)) = self.window_start.clone().zip(self.window_length) else { return Ok(()) };
        let window = MaintenanceWindow { start, seconds: length.as_secs() };
        Ok(request.map_or(Ok(()), |request| request.defer(facts, &window))?)
    }
}

pub fn run(arguments: &Apply) -> anyhow::Result<Exit> {
    let profile = arguments.source.profile;
    check_risks(&arguments.accept_risk)?;
    if arguments.dry_run {
        return dry_run(arguments);
    }
    arguments.source.refuse_files()?;
    let before = before(arguments.before.as_deref())?;
    let restore = arguments.restore.as_deref().map(saved_export).transpose()?;
    let mut service = arguments.connection.open()?;
    let saved = service.read()?;
    let facts = saved.facts()?;
    let export = BiosExport::of(&facts, profile, &arguments.accept_risk);
    let mut change = match &restore {
        Some((file, bytes)) => BiosChange::restoring(&facts, file, bytes)?,
        None => BiosChange::of(&facts, &export),
    };
    arguments.defer(&facts, change.request.as_mut())?;
    let sent = match &change.request {
        Some(request) if arguments.yes => {
            refuse_waiting(arguments, &facts, &change)?;
            write_before(&before, &export)?;
            output::talk(&format!("wrote {}: the current settings, for --restore", before.display()));
            let is_in_parts = restore.is_some();
            Some(
                lowlat_redfish::send(&mut service.client, &saved, &facts, request, is_in_parts)
                    .map_err(in_words)?,
            )
        }
        _ => None,
    };
    service.close();
    let is_done = sent.is_some() || change.request.is_none();
    let is_whole = sent.as_ref().is_none_or(|sent| sent.refused.is_empty());
    let is_all = change.later_requests == 0 && change.left_out.is_empty() && is_whole;
    show(arguments, &change, sent.as_ref().map(|sent| (sent, before)))?;
    Ok(match (&change.request, &restore) {
        _ if !(is_done && is_all) => Exit::Findings,
        // Nothing is to be sent: that says little if little was checked.
        (None, None) => checked(&facts, profile),
        _ => Exit::Clean,
    })
}

/// The exit code of a server on which nothing differs.
fn checked(facts: &BiosFacts, profile: Profile) -> Exit {
    BiosAudit::of(facts, profile).counts.checked().claim(false).into()
}

/// Writes every request, and sends none.
fn dry_run(arguments: &Apply) -> anyhow::Result<Exit> {
    let out = results::PreparedFile::prepare_if(arguments.out.as_deref(), "--out")?;
    let facts = arguments.source.read(&arguments.connection)?;
    let mut export = BiosExport::of(&facts, arguments.source.profile, &arguments.accept_risk);
    arguments.defer(&facts, export.steps.first_mut())?;
    match &out {
        Some(file) => file.write_json_lines(&export)?,
        None => output::print_json(&export)?,
    }
    let left = export.left_out.iter().map(|of| format!("left out: {} ({}): {}", of.id, of.attribute, of.why));
    let warnings = export.warnings.iter().map(|warning| format!("warning: {warning}"));
    left.chain(warnings).for_each(|line| output::talk(&line));
    if let Some(file) = &out {
        let (path, steps) = (file.path().display(), plural(export.steps.len(), "request"));
        output::talk(&format!(
            "wrote {path}: {steps} to send in order, and a snapshot of the current settings"
        ));
    }
    let is_clean = export.steps.is_empty() && export.left_out.is_empty();
    Ok(if is_clean { checked(&facts, arguments.source.profile) } else { Exit::Findings })
}

fn saved_export(path: &Path) -> anyhow::Result<(String, Vec<u8>)> {
    Ok((path.display().to_string(), bounded(path, "name a file that an earlier apply wrote")?))
}

/// Returns the path for the current settings. An existing file is never replaced: it may be the only copy of older settings.
fn before(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let is_free = |path: &Path| path.symlink_metadata().is_err();
    if let Some(path) = given {
        if !is_free(path) {
            bail!(
                "{} already exists and may be the only copy of earlier settings\nhint: name another file with --before",
                path.display()
            );
        }
        return Ok(path.to_owned());
    }
    let numbered = (2..=NUMBER_MAX).map(|number| PathBuf::from(format!("lowlat-bios-before-{number}.json")));
    std::iter::once(PathBuf::from("lowlat-bios-before.json"))
        .chain(numbered)
        .find(|path| is_free(path))
        .context("every name lowlat-bios-before-N.json is taken\nhint: name a file with --before")
}

fn refuse_waiting(arguments: &Apply, facts: &BiosFacts, change: &BiosChange) -> anyhow::Result<()> {
    // Some services take changes at the Bios resource and show nothing as pending.
    let is_unknown = facts.pending.is_none() && facts.settings_uri != facts.uri;
    if arguments.with_pending || (change.waiting.is_empty() && !is_unknown) {
        return Ok(());
    }
    if change.waiting.is_empty() {
        bail!(
            "cannot send the request: the pending settings could not be read\nhint: accept whatever is pending with \
             --with-pending"
        );
    }
    let names: Vec<&str> = change.waiting.iter().map(|row| row.attribute.as_str()).take(12).collect();
    bail!(
        "cannot send the request: changes are already pending ({}{})\nhint: restart the server or revert them first, \
         or accept them with --with-pending",
        names.join(", "),
        if change.waiting.len() > names.len() { ", ..." } else { "" },
    );
}

/// Writes the current settings completely and durably before anything is sent.
fn write_before(path: &Path, export: &BiosExport) -> anyhow::Result<()> {
    let text = output::json_lines(export)? + "\n";
    OutputFile::new(path, FileAccess::Private)
        .and_then(|file| file.write_new(text.as_bytes()))
        .map_err(|error| results::in_words(&error, "name another file with --before; nothing was sent"))
}

fn show(arguments: &Apply, change: &BiosChange, sent: Option<(&Sent, PathBuf)>) -> anyhow::Result<()> {
    if arguments.json {
        let (sent, before) = sent.unzip();
        let outcome = Outcome { change, sent, before };
        return output::print_json(&output::Document::of("lowlat bios apply", outcome));
    }
    output::print(&lowlat_tune_report::bios_change_text(change, output::width()))?;
    match (sent, &change.request) {
        (Some((sent, _)), _) => output::print_plain(&after_sending(change, sent)),
        (None, Some(_)) => output::print("\nNothing was sent. Add --yes to send the request."),
        (None, None) => Ok(()),
    }
}

fn after_sending(change: &BiosChange, sent: &Sent) -> String {
    let mut lines =
        vec![format!("\nSent (status {}). The pending settings now contain the change.", sent.status)];
    lines.extend(
        sent.refused
            .iter()
            .map(|row| format!("Not sent, because the service refuses it: {}: {}", row.attribute, row.why)),
    );
    lines.extend(sent.messages.iter().map(|message| format!("The service reports: {message}")));
    if let Some(task) = &sent.waiting_task {
        lines.push(format!("Task {task} is still running; some services finish it during the restart."));
    }
    let is_deferred = change.request.as_ref().is_some_and(|request| request.window.is_some());
    lines.push(match &sent.window {
        Some(window) => format!(
            "Pending until the maintenance window of {window}: the service applies the change in it and may restart \
             the server for that."
        ),
        None if is_deferred => "The service does not confirm the maintenance window: look for the change among its \
                                tasks or jobs before you rely on it."
            .into(),
        None => "Restart the server to apply the change; lowlat does not restart it.".into(),
    });
    lines.push(match change.later_requests {
        0 => "Then check with `lowlat bios audit` that the BIOS accepted it.".into(),
        _ => "Then run this command again: the next request must follow the restart.".into(),
    });
    lines.join("\n")
}
