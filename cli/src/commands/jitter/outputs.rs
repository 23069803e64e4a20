//! Outputs of a run: text, files, or lines for scripts.

use super::arguments::OutputArgs;
use crate::{
    commands::outputs::{Form, RunFiles},
    output,
    results::PreparedFile,
};
use anyhow::{Context, ensure};
use lowlat_host::statistics::carries_quantile;
use lowlat_jitter::{JitterRecord, gate::GateOutcome, sysjitter};
use lowlat_jitter_report::{JitterTextOptions, explain_text, gate_text, stop_text};
use lowlat_results::ResultDocument;
use lowlat_results_report::{jitter_run, jitter_text};

/// Highest percentile of sysjitter's summary.
const SYSJITTER_QUANTILE_MAX: f64 = 0.999_99;

/// Requested outputs, with their files checked.
pub struct Outputs<'a> {
    arguments: &'a OutputArgs,
    files: RunFiles,
    trace: Option<PreparedFile>,
}

impl<'a> Outputs<'a> {
    /// Checks the files before the run.
    pub fn prepare(arguments: &'a OutputArgs) -> anyhow::Result<Self> {
        ensure!(
            arguments.longest.is_none() || arguments.format.or_json(arguments.json) == Form::Text,
            "--longest prints a timeline as text only\nhint: leave out --format"
        );
        let trace = PreparedFile::prepare_if(arguments.save_trace.as_deref(), "--save-trace")?;
        Ok(Self { arguments, files: arguments.files.prepare(arguments.hlog.as_deref())?, trace })
    }

    /// Prints, then writes the files, so that a file that can no longer be written does not lose the results.
    pub fn write(&self, document: &ResultDocument) -> anyhow::Result<()> {
        let record = &document.jitter().context("the document has no jitter measurement")?.record;
        let Self { arguments, .. } = self;
        let form = arguments.format.or_json(arguments.json);
        let printed = print(document, form, arguments.longest, arguments.verbose);
        printed.and(self.files.write(document)).and(self.write_trace(record))
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
}

/// Prints a jitter run; as text, all of it or one of its longest interruptions.
pub fn print(
    document: &ResultDocument,
    form: Form,
    longest: Option<usize>,
    show_all: bool,
) -> anyhow::Result<()> {
    let record = &document.jitter().context("the document has no jitter measurement")?.record;
    match form {
        Form::Json => {
            talk_of_gate(document);
            output::print_json(document)
        }
        Form::Sysjitter => {
            talk_of_gate(document);
            talk_of_percentiles(record);
            for warning in &document.warnings {
                output::talk(&format!("lowlat jitter: {warning}"));
            }
            output::print_plain(&sysjitter::summary(record, show_all)?)
        }
        _ => print_text(document, longest, show_all),
    }
}

fn print_text(document: &ResultDocument, longest: Option<usize>, show_all: bool) -> anyhow::Result<()> {
    let width = output::width();
    let text = match longest {
        Some(rank) => explain_text(&jitter_run(document), rank, width).map_err(anyhow::Error::msg)?,
        None => jitter_text(document, JitterTextOptions { show_all, width }),
    };
    output::print(&text)?;
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
