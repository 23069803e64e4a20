//! Outputs of measurements: a text or JSON on stdout, a report and a document.

use crate::{
    arguments::PageArgs,
    labels::{Labelled, host_name},
    output::{self, json_line},
    results::{PreparedFile, write_all},
};
use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use lowlat_host::Labels;
use lowlat_host_run::Root;
use lowlat_results::{ResultDocument, hlog};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Forms of a result on stdout, of which a command takes some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tables for people.
    Text,
    Markdown,
    /// The result document.
    Json,
    /// The summary rows of sysjitter 1.4, for scripts written for it.
    Sysjitter,
    /// The format of sfnt-pingpong or sfnt-stream 1.6.0.
    Sfnt,
    /// The format of sfnt-pingpong 1.5.0.
    SfntV15,
}

impl Form {
    pub const TEXT: (&'static str, Self) = ("text", Self::Text);
    pub const MARKDOWN: (&'static str, Self) = ("markdown", Self::Markdown);
    pub const JSON: (&'static str, Self) = ("json", Self::Json);
    pub const SYSJITTER: (&'static str, Self) = ("sysjitter", Self::Sysjitter);
    pub const SFNT: (&'static str, Self) = ("sfnt", Self::Sfnt);
    pub const SFNT_V15: (&'static str, Self) = ("sfnt-1.5", Self::SfntV15);

    /// The form of --format, or that of --json.
    pub fn or_json(self, is_json: bool) -> Self {
        if is_json { Self::Json } else { self }
    }
}

/// The report and the document.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// Write the HTML report to this file
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub language: PageArgs,
    /// Write the JSON document to this file, for `lowlat report`
    #[arg(long, value_name = "FILE")]
    pub result: Option<PathBuf>,
}

impl FileArgs {
    /// Checks the files before the run, with that of --hlog.
    pub fn prepare(&self, hlog: Option<&Path>) -> anyhow::Result<RunFiles> {
        RunFiles::prepare(hlog, self.report.as_deref(), &self.language, self.result.as_deref())
    }
}

/// Files that a measurement writes besides its output.
pub struct RunFiles {
    hlog: Option<PreparedFile>,
    report: Option<PreparedFile>,
    language: PageArgs,
    result: Option<PreparedFile>,
}

impl RunFiles {
    /// Checks the files of --hlog, --report and --result before the run.
    pub fn prepare(
        hlog: Option<&Path>,
        report: Option<&Path>,
        language: &PageArgs,
        result: Option<&Path>,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            hlog: PreparedFile::prepare_if(hlog, "--hlog")?,
            report: PreparedFile::prepare_if(report, "--report")?,
            language: language.clone(),
            result: PreparedFile::prepare_if(result, "--result")?,
        })
    }

    /// Checks the file of --report alone.
    pub fn prepare_page(report: Option<&Path>, language: &PageArgs) -> anyhow::Result<Self> {
        Self::prepare(None, report, language, None)
    }

    /// Writes the document between the rounds of a run. Errors are ignored here: the final write reports them.
    pub fn keep(&self, document: &impl Serialize) {
        if let Some(file) = &self.result {
            let _ = json_line(document).and_then(|text| file.write(text.as_bytes()));
        }
    }

    /// Writes the page alone.
    pub fn write_page(&self, labels: &Labels, page: impl Fn() -> String) -> anyhow::Result<()> {
        self.write_as(&(), labels, page, || Ok(String::new()))
    }

    /// Writes the files after the results were printed.
    pub fn write(&self, document: &ResultDocument) -> anyhow::Result<()> {
        let page = || lowlat_results_report::html(document);
        self.write_as(document, &document.labels, page, || log_of(document))
    }

    /// Writes the files of any document, with its page and its log.
    pub fn write_as(
        &self,
        document: &impl Serialize,
        labels: &Labels,
        page: impl Fn() -> String,
        log: impl Fn() -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let mut files = Vec::new();
        files.extend(self.result.iter().map(|file| (file, json_line(document))));
        files.extend(self.report.iter().map(|file| (file, Ok(self.language.page(page(), labels)))));
        files.extend(self.hlog.iter().map(|file| (file, log())));
        write_all(files)
    }
}

/// Returns the histograms of a document as an HdrHistogram log, whose times count from the start of the run.
fn log_of(document: &ResultDocument) -> anyhow::Result<String> {
    let started: Option<Timestamp> = document.started_at.parse().ok();
    let started_ns = started.and_then(|started| u64::try_from(started.as_nanosecond()).ok()).unwrap_or(0);
    let log = match (document.jitter(), document.pingpong()) {
        (Some(of), _) => hlog::of_jitter(&of.record, started_ns)?,
        (None, Some(of)) => hlog::of_pingpong(&of.record, started_ns)?,
        (None, None) => bail!("cannot write --hlog: the document has no histograms\nhint: leave out --hlog"),
    };
    Ok(log.to_string())
}

/// What comes out, and where.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Print JSON on stdout
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub files: FileArgs,
}

/// Requested outputs, with their files checked.
pub struct Outputs {
    is_json: bool,
    pub files: RunFiles,
}

impl OutputArgs {
    /// Checks the files before the run.
    pub fn prepare(&self) -> anyhow::Result<Outputs> {
        self.prepare_with(None)
    }

    /// Checks the files before the run, with that of --hlog.
    pub fn prepare_with(&self, hlog: Option<&Path>) -> anyhow::Result<Outputs> {
        Ok(Outputs { is_json: self.json, files: self.files.prepare(hlog)? })
    }

    /// Labels the document of this host.
    pub fn label<D: Labelled>(&self, document: D) -> D {
        self.files.language.labels.label_new(document, host_name(&Root::live(), false))
    }
}

impl Outputs {
    /// True if JSON goes to stdout.
    pub fn is_json(&self) -> bool {
        self.is_json
    }

    /// Prints any document, then writes its files.
    pub fn write_as<D: Serialize>(
        &self,
        document: &D,
        labels: &Labels,
        text: fn(&D, usize) -> String,
        page: fn(&D) -> String,
        log: impl Fn() -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let printed = output::print_as(self.is_json, document, |width| text(document, width));
        printed.and(self.files.write_as(document, labels, || page(document), log))
    }

    /// Prints the document of a measurement, then writes its files.
    pub fn write(&self, document: &ResultDocument) -> anyhow::Result<()> {
        let text = |width| lowlat_results_report::documents_text(&[(String::new(), document)], width);
        output::print_as(self.is_json, document, text).and(self.files.write(document))
    }
}
