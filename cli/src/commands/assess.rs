//! `lowlat assess`: reads, judges and measures the host, and writes a report; changes nothing.

use super::{Subcommand, help};
use crate::{
    arguments::{PageArgs, cpus, duration},
    choose,
    documents::Run,
    exit::Exit,
    host::{Host, HostArgs},
    output,
    progress::Progress,
    results::{NumberedFile, PreparedFile},
    signals,
};
use clap::{ArgMatches, Args, FromArgMatches};
use lowlat_host::{CpuSet, shell};
use lowlat_jitter::{JitterMeasurement, JitterRecord, RemedyContext};
use lowlat_jitter_run::jitter::{self, JitterError, JitterOptions, Observation};
use lowlat_results::{Measurement, ResultDocument};
use lowlat_results_report::Outcome;
use std::{
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::Duration,
};

pub const COMMAND: Subcommand = Subcommand { name: "assess", declare: AssessArgs::augment_args, run };

/// Judge and measure this host in about a minute and write a report; change nothing
#[derive(Debug, Args)]
#[command(after_help = help("Exit codes: 0 done, even if settings are at fault; 2 error; 130 interrupted. To fail on faults, use `lowlat audit`.", &[
    ("lowlat assess", "Judge and measure this host."),
    ("sudo lowlat assess --duration 10m", "Include facts that only root may read, and measure longer."),
    ("lowlat assess --root desk7.tar.gz", "Judge a captured host, without a measurement."),
]))]
struct AssessArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Measure interruptions for this long
    #[arg(long, value_name = "TIME", default_value = "50s", value_parser = duration)]
    duration: Duration,
    /// Measure these CPUs [default: every CPU this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Measure without tracing causes
    #[arg(long)]
    no_causes: bool,
    /// Judge only; do not measure
    #[arg(long)]
    no_measure: bool,
    /// Write the HTML report to this file [default: lowlat-report.html, or the next free number]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    language: PageArgs,
    /// Write the JSON document to this file [default: lowlat-result.json, or the next free number]
    #[arg(long, value_name = "FILE")]
    result: Option<PathBuf>,
    /// Print the result document on stdout instead of the summary
    #[arg(long)]
    json: bool,
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = AssessArgs::from_arg_matches(matches)?;
    let report = Target::prepare(arguments.report.as_deref(), "--report", ("lowlat-report", "html"))?;
    let result = Target::prepare(arguments.result.as_deref(), "--result", ("lowlat-result", "json"))?;
    let stop = signals::stop_flag()?;
    let labels = &arguments.language.labels;
    let mut run = Run::begin("assess", labels, || Ok(arguments.host.read_silently()?.with_boot_entry()))?;
    let measurements;
    (measurements, run.warnings) = measure(&arguments, &run.host, &stop, &run.progress)?;
    let document = run.document(measurements, &stop);
    if arguments.json {
        // Print first: if the disk is full, only this output keeps the measurement.
        output::print_json(&document)?;
        let (page, result) = write(&report, &result, &arguments.language, &document)?;
        output::talk(&format!("wrote {page}\nwrote {result}"));
    } else {
        let written = write(&report, &result, &arguments.language, &document);
        let (page, result) = written.inspect_err(|_| {
            // Nothing else keeps the measurement now.
            let _ = output::print(&lowlat_results_report::summary(&document, output::width()));
        })?;
        let plan_command = next_command(&arguments.host);
        let outcome = Outcome { page: &page, result: &result, plan_command: &plan_command };
        output::print(&lowlat_results_report::brief(&document, &outcome, output::width()))?;
    }
    Ok(if document.is_interrupted { Exit::Interrupted } else { Exit::Clean })
}

/// Returns the command that shows the changes to this host.
fn next_command(host: &HostArgs) -> String {
    let mut command = "lowlat tune plan".to_owned();
    let root = (host.root != Path::new("/")).then(|| host.root.display().to_string());
    let role = host.judge.role.as_ref().map(|role| role.display().to_string());
    let profile = host.judge.profile.map(|profile| profile.to_string());
    for (option, value) in [("--root", root), ("--role", role), ("--profile", profile)] {
        if let Some(value) = value {
            command.extend([" ", option, " ", &shell::word(&value)]);
        }
    }
    command
}

/// File named by the user, which replaces an earlier one, or named by lowlat, which never does.
enum Target {
    Named(PreparedFile),
    Numbered(NumberedFile),
}

impl Target {
    fn prepare(
        named: Option<&Path>,
        option: &str,
        (stem, ending): (&'static str, &'static str),
    ) -> anyhow::Result<Self> {
        Ok(match named {
            Some(path) => Self::Named(PreparedFile::prepare(path, option)?),
            None => Self::Numbered(NumberedFile::prepare(stem, ending, option)?),
        })
    }

    /// Returns the first free number, starting at `number`, or `number` itself if the user chose the name.
    fn free_from(&self, number: u32) -> u32 {
        match self {
            Self::Named(_) => number,
            Self::Numbered(file) => file.free_from(number),
        }
    }

    /// Writes the file. Returns its path as it is to be shown.
    fn write(&self, text: &str, number: u32) -> anyhow::Result<String> {
        match self {
            Self::Named(file) => {
                let shown = file.shown();
                file.write(text.as_bytes())?;
                Ok(shown)
            }
            Self::Numbered(file) => Ok(file.write(text, number)?.display().to_string()),
        }
    }
}

/// Writes page and document under the same number, and returns their paths as they are to be shown. If one fails, the
/// other is still written.
fn write(
    report: &Target,
    result: &Target,
    language: &PageArgs,
    document: &ResultDocument,
) -> anyhow::Result<(String, String)> {
    let number = report.free_from(result.free_from(1));
    let result = output::json_line(document).and_then(|text| result.write(&text, number));
    let page = language.page(lowlat_results_report::html(document), &document.labels);
    match (result, report.write(&page, number)) {
        (Ok(result), Ok(page)) => Ok((page, result)),
        (Ok(written), Err(error)) | (Err(error), Ok(written)) => {
            output::talk(&format!("wrote {written}"));
            Err(error)
        }
        (Err(error), Err(other)) => {
            output::talk(&format!("lowlat assess: {other:#}"));
            Err(error)
        }
    }
}

/// Measures interruptions, on every CPU unless the user named some; otherwise returns a warning with the reason.
fn measure(
    arguments: &AssessArgs,
    host: &Host,
    stop: &AtomicBool,
    progress: &Progress,
) -> anyhow::Result<(Vec<Measurement>, Vec<String>)> {
    let nothing = |why: String| Ok((Vec::new(), vec![format!("Nothing was measured: {why}.")]));
    if arguments.no_measure {
        return nothing("--no-measure was given".into());
    }
    if !host.root.is_live() {
        return nothing(format!("{} is not the running host", host.root.label()));
    }
    let chosen = choose::all(arguments.cpus.as_ref(), &host.snapshot);
    let mut warnings = Vec::from_iter(chosen.note);
    let options = JitterOptions::new(chosen.cpus, arguments.duration);
    progress.start(arguments.duration);
    let observation = Observation { causes: !arguments.no_causes, ..Observation::default() };
    let run = jitter::run_observed(&host.root, &options, &observation, stop, &|now| progress.show(now));
    let Some(record) = kept(run, arguments.cpus.is_some(), &mut warnings)? else {
        return Ok((Vec::new(), warnings));
    };
    let mut measured = JitterMeasurement::from(record);
    let context = RemedyContext { host: &host.snapshot, allocation: &host.allocation, role: &host.role };
    if let Err(error) = measured.study_again(&context) {
        warnings.push(error.to_string());
    }
    Ok((vec![measured.into()], warnings))
}

/// Returns the record of the measurement. A run on named CPUs must succeed. Otherwise a failure is a warning, because
/// the audit is reported even without a measurement.
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
            let cause = error.to_string().replace("\nhint: ", "; ");
            warnings.push(format!("Nothing was measured: {cause}."));
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_cannot_be_measured_still_has_a_report() {
        let offline =
            || Err(JitterError::Offline { cpus: CpuSet::of(9), online: CpuSet::parse_list("0-7").unwrap() });
        let mut warnings = Vec::new();
        assert!(kept(offline(), true, &mut warnings).is_err());
        assert!(kept(Err(JitterError::ZeroDuration), false, &mut warnings).is_err());
        assert_eq!(warnings, [""; 0]);
        assert_eq!(kept(offline(), false, &mut warnings).unwrap(), None);
        assert!(
            warnings[0].starts_with("Nothing was measured: cannot measure CPU 9: not online"),
            "{warnings:?}"
        );
    }
}
