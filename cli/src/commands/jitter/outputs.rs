//! Outputs of a run: text, files, or lines for scripts.

use super::arguments::{Format, OutputArgs};
use crate::{commands::outputs::RunFiles, output, results::OutputFile};
use anyhow::{Context, ensure};
use lowlat_host::statistics::carries_quantile;
use lowlat_jitter::{JitterRecord, gate::GateOutcome, sysjitter};
use lowlat_jitter_report::{JitterTextOptions, gate_text, stop_text};
use lowlat_results::{ResultDocument, hlog};
use lowlat_results_report::{explain_text, jitter_text};

/// Highest percentile of sysjitter's summary.
const SYSJITTER_QUANTILE_MAX: f64 = 0.999_99;

/// Requested outputs, with their files checked.
pub struct Outputs<'a> {
    arguments: &'a OutputArgs,
    files: RunFiles,
    trace: Option<OutputFile>,
}

impl<'a> Outputs<'a> {
    /// Checks the files before the run.
    pub fn prepare(arguments: &'a OutputArgs) -> anyhow::Result<Self> {
        ensure!(
            arguments.longest.is_none() || arguments.form() == Format::Text,
            "--longest prints a timeline as text only\nhint: leave out --format"
        );
        let trace = arguments.save_trace.as_deref();
        let trace = trace.map(|path| OutputFile::prepare(path, "--save-trace")).transpose()?;
        Ok(Self { arguments, files: arguments.files.prepare(arguments.hlog.as_deref())?, trace })
    }

    /// Prints, then writes the files, so that a file that can no longer be written does not lose the results.
    pub fn write(&self, document: &ResultDocument) -> anyhow::Result<()> {
        let record = &document.jitter().context("the document has no jitter measurement")?.record;
        let printed = self.print(document, record);
        let log = |started_ns| Ok(hlog::of_jitter(record, started_ns)?.to_string());
        let written = self.files.write(document, log);
        printed.and(written).and(self.write_trace(record))
    }

    fn write_trace(&self, record: &JitterRecord) -> anyhow::Result<()> {
        let (Some(file), Some(stop)) = (&self.trace, &record.stop) else { return Ok(()) };
        if stop.hit.is_none() {
            output::talk("no trace was written: nothing ended the run early");
            return Ok(());
        }
        ensure!(!stop.trace.is_empty(), "cannot write {}: there is no trace", file.path().display());
        file.write(&stop.trace)?;
        output::talk(&file.note());
        Ok(())
    }

    fn print(&self, document: &ResultDocument, record: &JitterRecord) -> anyhow::Result<()> {
        match self.arguments.form() {
            Format::Text => self.print_text(document),
            Format::Json => {
                Self::talk_of_gate(document);
                output::print_json(document)
            }
            Format::Sysjitter => {
                Self::talk_of_gate(document);
                talk_of_percentiles(record);
                for warning in &document.warnings {
                    output::talk(&format!("lowlat jitter: {warning}"));
                }
                output::print_plain(&sysjitter::summary(record, self.arguments.verbose)?)
            }
        }
    }

    fn print_text(&self, document: &ResultDocument) -> anyhow::Result<()> {
        let width = output::width();
        if let Some(rank) = self.arguments.longest {
            output::print(&explain_text(document, rank, None, width).map_err(anyhow::Error::msg)?)?;
        } else {
            output::print(&jitter_text(
                document,
                JitterTextOptions { show_all: self.arguments.verbose, width },
            ))?;
        }
        if let Some(gate) = gate_of(document) {
            output::print(&format!("\n{}", gate_text(gate, width)))?;
        }
        Ok(())
    }

    /// Prints what ended the run, and the outcome of the gate, on stderr, beside a result for programs.
    fn talk_of_gate(document: &ResultDocument) {
        let record = document.jitter().map(|jitter| &jitter.record);
        for sentence in record.map(stop_text).unwrap_or_default() {
            output::talk(&sentence);
        }
        if let Some(gate) = gate_of(document) {
            output::talk_painted(gate_text(gate, output::stderr_width()).trim_end());
        }
    }
}

fn gate_of(document: &ResultDocument) -> Option<&GateOutcome> {
    document.jitter()?.gate.as_ref()
}

/// Warns about percentiles with too few interruptions: scripts expect every row that sysjitter prints.
fn talk_of_percentiles(record: &JitterRecord) {
    let is_carried = |count: u64| carries_quantile(count, SYSJITTER_QUANTILE_MAX);
    if record.cpus.iter().any(|cpu| !is_carried(cpu.interruption_count)) {
        output::talk(
            "lowlat jitter: there are too few interruptions for sysjitter's highest percentiles (up to int_99999), which \
             then equal int_max",
        );
    }
}
