//! `lowlat assess`: the main job. Reads, judges, measures and reports; changes nothing.

use super::{Subcommand, examples};
use crate::{
    arguments::{cpus, duration},
    choose,
    host::{Host, HostArgs},
    output::{self, Exit},
    progress::Progress,
    results::OutputFile,
    signals,
};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use jiff::Timestamp;
use lowlat_measure::jitter::{self, JitterError, JitterOptions, Observation};
use lowlat_model::{
    CpuSet,
    audit::Audit,
    jitter::{JitterRecord, JitterStudy, RemedyContext},
    result::ResultDocument,
};
use std::{
    path::PathBuf,
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
    /// Where to write the page for people
    #[arg(long, value_name = "FILE", default_value = "lowlat-report.html")]
    report: PathBuf,
    /// Where to write the document for programs
    #[arg(long, value_name = "FILE", default_value = "lowlat-result.json")]
    result: PathBuf,
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
    let report = OutputFile::prepare(&arguments.report, "--report")?;
    let result = OutputFile::prepare(&arguments.result, "--result")?;
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
    result.write_json(&document)?;
    report.write(lowlat_report::html(&document).as_bytes())?;
    if arguments.json {
        output::print_json(&document)?;
    } else {
        output::print(&lowlat_report::summary(&document, output::width()))?;
        output::print(&format!(
            "report  {}\nresult  {}",
            arguments.report.display(),
            arguments.result.display()
        ))?;
    }
    Ok(if document.is_interrupted { Exit::Interrupted } else { Exit::Clean })
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
    lowlat_model::jitter::study_with(record, Some(&context))
        .map_err(|error| warnings.push(error.to_string()))
        .ok()
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
