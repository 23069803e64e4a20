//! `lowlat assess`: the main job. Reads, judges, measures and reports; changes nothing.

use super::{Subcommand, examples};
use crate::{
    arguments::{cpus, duration},
    choose,
    host::{Host, HostArgs},
    output::{self, Exit},
    progress::Progress,
    results::{NumberedFile, OutputFile},
    signals,
};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use jiff::Timestamp;
use lowlat_host::CpuSet;
use lowlat_jitter::{JitterRecord, JitterStudy, RemedyContext};
use lowlat_measure::jitter::{self, JitterError, JitterOptions, Observation};
use lowlat_result::ResultDocument;
use lowlat_settings::audit::Audit;
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

pub const COMMAND: Subcommand = Subcommand { name: "assess", declare, run };

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag that users type")]
struct Arguments {
    #[command(flatten)]
    host: HostArgs,
    /// How long to measure interruptions
    #[arg(long, value_name = "TIME", default_value = "50s", value_parser = duration)]
    duration: Duration,
    /// CPUs to measure [default: every CPU this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Measure without looking for causes: no tracing on this host
    #[arg(long)]
    no_causes: bool,
    /// Judge only, measure nothing
    #[arg(long)]
    no_measure: bool,
    /// Write the page for people here [default: lowlat-report.html, or with the next free number]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write the document for programs here [default: lowlat-result.json, or with the next free number]
    #[arg(long, value_name = "FILE")]
    result: Option<PathBuf>,
    /// Print the result document on stdout instead of the summary
    #[arg(long)]
    json: bool,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about("Read, judge and measure this host for about a minute; write a report. Changes nothing")
        .after_help(examples(&[
            ("lowlat assess", "the whole picture of this host"),
            (
                "sudo lowlat assess --duration 10m",
                "with the facts that only root may read, and a longer measurement",
            ),
            ("lowlat assess --root desk7.tar.gz", "the report of a captured host, without a measurement"),
        ]))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    let started_at = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let clock = Instant::now();
    let files = Files::prepare(&arguments)?;
    let stop = signals::stop_flag()?;
    let progress = Progress::new();

    progress.say("reading the host");
    let host = arguments.host.read()?;
    progress.say("judging settings");
    let audit = Audit::of(&host.context());
    let mut warnings = Vec::new();
    let jitter = measure(&arguments, &host, &stop, &progress, &mut warnings)?;
    progress.finish();

    let jitter_study = jitter.as_ref().and_then(|record| study(record, &host, &mut warnings));
    let document = ResultDocument {
        document: ResultDocument::DOCUMENT.into(),
        schema_version: ResultDocument::SCHEMA_VERSION,
        lowlat_version: env!("CARGO_PKG_VERSION").into(),
        command: "assess".into(),
        started_at,
        elapsed_s: clock.elapsed().as_secs_f64(),
        // Relaxed: set by the signal handler, read once all samplers have been joined.
        is_interrupted: stop.load(Ordering::Relaxed),
        role: host.role,
        snapshot: host.snapshot,
        allocation: host.allocation,
        audit,
        jitter_study,
        jitter,
        gate: None,
        readiness: Vec::new(),
        warnings,
    };
    // Printed first: on a full disk this is all that remains of the measurement.
    if arguments.json {
        output::print_json(&document)?;
    } else {
        output::print(&lowlat_report::summary(&document, output::width()))?;
    }
    let (page, written) = files.write(&document)?;
    if arguments.json {
        output::talk(written.trim_start());
    } else {
        output::print_plain(&written)?;
        let plan = next_command(&arguments.host);
        output::print(&lowlat_report::next_steps(
            &document,
            &page.display().to_string(),
            &plan,
            output::width(),
        ))?;
    }
    Ok(if document.is_interrupted { Exit::Interrupted } else { Exit::Clean })
}

/// The command that shows the changes to this host.
fn next_command(host: &HostArgs) -> String {
    let mut command = "lowlat tune plan".to_owned();
    let root = (host.root != Path::new("/")).then(|| host.root.display().to_string());
    let role = host.role.as_ref().map(|role| role.display().to_string());
    let profile = host.profile.map(|profile| profile.to_string());
    for (option, value) in [("--root", root), ("--role", role), ("--profile", profile)] {
        if let Some(value) = value {
            command.extend([" ", option, " ", &quoted(&value)]);
        }
    }
    command
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '=' | ':');
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Where the page and the document go.
struct Files {
    report: Target,
    result: Target,
}

/// A file that the user named, which replaces an earlier one; or one that lowlat names, which never does.
enum Target {
    Named(OutputFile),
    Numbered(NumberedFile),
}

impl Target {
    fn prepare(
        named: Option<&Path>,
        option: &'static str,
        (stem, ending): (&'static str, &'static str),
    ) -> anyhow::Result<Self> {
        Ok(match named {
            Some(path) => Self::Named(OutputFile::prepare(path, option)?),
            None => Self::Numbered(NumberedFile::prepare(stem, ending, option)?),
        })
    }

    /// The first free number from this one on; this one where the user chose the name.
    fn free_from(&self, number: u32) -> u32 {
        match self {
            Self::Named(_) => number,
            Self::Numbered(file) => file.free_from(number),
        }
    }

    /// Writes it. Returns where, and what to print.
    fn write(&self, text: &str, number: u32, option: &str) -> anyhow::Result<(PathBuf, String)> {
        match self {
            Self::Named(file) => {
                let note = file.note();
                file.write(text.as_bytes())?;
                Ok((file.path().to_owned(), note))
            }
            Self::Numbered(file) => {
                let path = file.write(text, number, option)?;
                let note = format!("written: {}", path.display());
                Ok((path, note))
            }
        }
    }
}

impl Files {
    fn prepare(arguments: &Arguments) -> anyhow::Result<Self> {
        Ok(Self {
            report: Target::prepare(arguments.report.as_deref(), "--report", ("lowlat-report", "html"))?,
            result: Target::prepare(arguments.result.as_deref(), "--result", ("lowlat-result", "json"))?,
        })
    }

    /// Writes both under the same number. Returns where the page is, and what to print. What fails for one is tried for
    /// the other.
    fn write(&self, document: &ResultDocument) -> anyhow::Result<(PathBuf, String)> {
        let number = self.report.free_from(self.result.free_from(1));
        let result =
            output::json_line(document).and_then(|text| self.result.write(&text, number, "--result"));
        let report = self.report.write(&lowlat_report::html(document), number, "--report");
        match (result, report) {
            (Ok((_, result)), Ok((page, report))) => Ok((page, format!("\n{report}\n{result}"))),
            (Ok((_, written)), Err(error)) | (Err(error), Ok((_, written))) => {
                output::talk(&written);
                Err(error)
            }
            (Err(error), Err(other)) => {
                output::talk(&format!("lowlat assess: {other:#}"));
                Err(error)
            }
        }
    }
}

/// Measures interruptions where that is possible; what keeps it from being possible becomes a warning.
fn measure(
    arguments: &Arguments,
    host: &Host,
    stop: &AtomicBool,
    progress: &Progress,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Option<JitterRecord>> {
    if arguments.no_measure {
        warnings.push("Nothing was measured: --no-measure was given.".into());
        return Ok(None);
    }
    if !host.root.is_live() {
        warnings.push(format!("Nothing was measured: {} is not the running host.", host.root.label()));
        return Ok(None);
    }
    let chosen = choose::all(arguments.cpus.as_ref(), &host.snapshot);
    warnings.extend(chosen.note);
    let options = JitterOptions::new(chosen.cpus, arguments.duration);
    progress.start(arguments.duration);
    let observation = Observation { causes: !arguments.no_causes, raw: None };
    let run = jitter::run_observed(&host.root, &options, &observation, stop, &|now| progress.show(now));
    kept(run, arguments.cpus.is_some(), warnings)
}

/// What there is of a run. Who names CPUs wants these measured; else what was judged is worth a report without them.
fn kept(
    run: Result<JitterRecord, JitterError>,
    are_named: bool,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Option<JitterRecord>> {
    match run {
        Ok(record) => Ok(Some(record)),
        Err(error @ (JitterError::ZeroDuration | JitterError::TooLong { .. })) => Err(error.into()),
        Err(error) if are_named => Err(error.into()),
        Err(error) => {
            warnings.push(format!("Nothing was measured: {error}."));
            Ok(None)
        }
    }
}

/// The study of the record; that it can't be made becomes a warning.
fn study(record: &JitterRecord, host: &Host, warnings: &mut Vec<String>) -> Option<JitterStudy> {
    let context = RemedyContext { host: &host.snapshot, allocation: &host.allocation, role: &host.role };
    lowlat_jitter::study_with(record, Some(&context)).map_err(|error| warnings.push(error.to_string())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_cannot_be_measured_has_its_report() {
        let offline =
            || Err(JitterError::Offline { cpus: CpuSet::of(9), online: CpuSet::parse_list("0-7").unwrap() });
        let mut warnings = Vec::new();
        assert!(kept(offline(), true, &mut warnings).is_err());
        assert!(kept(Err(JitterError::ZeroDuration), false, &mut warnings).is_err());
        assert_eq!(warnings, [""; 0]);
        assert_eq!(kept(offline(), false, &mut warnings).unwrap(), None);
        assert!(warnings[0].starts_with("Nothing was measured: CPU 9: not online"), "{warnings:?}");
    }
}
