//! Outputs of measurements: a text or JSON on stdout, a report and a document.

use crate::{
    arguments::PageArgs,
    documents,
    output::{self, json_line},
    results::{OutputFile, write_all},
};
use clap::Args;
use jiff::Timestamp;
use lowlat_results::ResultDocument;
use std::path::{Path, PathBuf};

/// The report and the document.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// Write the HTML report to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    pub language: PageArgs,
    /// Write the JSON document to this file, for --from
    #[arg(long, value_name = "FILE")]
    result: Option<PathBuf>,
}

impl FileArgs {
    /// Checks the files before the run, with that of --hlog.
    pub fn prepare(&self, hlog: Option<&Path>) -> anyhow::Result<RunFiles> {
        let file =
            |path: Option<&Path>, option| path.map(|path| OutputFile::prepare(path, option)).transpose();
        Ok(RunFiles {
            hlog: file(hlog, "--hlog")?,
            report: file(self.report.as_deref(), "--report")?,
            language: self.language.clone(),
            result: file(self.result.as_deref(), "--result")?,
        })
    }

    /// True if any file is requested.
    pub fn are_asked_for(&self) -> bool {
        self.report.is_some() || self.result.is_some()
    }

    /// Reads a document, with the labels asked for.
    pub fn read(&self, file: &Path) -> anyhow::Result<ResultDocument> {
        Ok(self.language.labels.label(documents::read(file)?))
    }
}

/// Files that a measurement writes besides its output.
pub struct RunFiles {
    hlog: Option<OutputFile>,
    report: Option<OutputFile>,
    language: PageArgs,
    result: Option<OutputFile>,
}

impl RunFiles {
    /// Writes the files after the results were printed. `log` makes the HdrHistogram log from the start of the run, in
    /// nanoseconds since 1970.
    pub fn write(
        &self,
        document: &ResultDocument,
        log: impl Fn(u64) -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let mut files = Vec::new();
        files.extend(self.result.iter().map(|file| (file, json_line(document))));
        files.extend(self.report.iter().map(|file| {
            (file, Ok(self.language.page(lowlat_results_report::html(document), &document.labels)))
        }));
        files.extend(self.hlog.iter().map(|file| (file, log(started_ns(document)))));
        write_all(files)
    }
}

/// Returns the start of the run, in nanoseconds since 1970; 0 if unknown.
fn started_ns(document: &ResultDocument) -> u64 {
    let started: Option<Timestamp> = document.started_at.parse().ok();
    started.and_then(|started| u64::try_from(started.as_nanosecond()).ok()).unwrap_or(0)
}

/// What comes out, and where.
#[derive(Debug, Args)]
pub struct OutputArgs {
    /// Print JSON on stdout
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub files: FileArgs,
    /// Show a document that --result wrote
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
}

/// Requested outputs, with their files checked.
pub struct Outputs {
    is_json: bool,
    files: RunFiles,
}

impl OutputArgs {
    /// Checks the files before the run.
    pub fn prepare(&self) -> anyhow::Result<Outputs> {
        Ok(Outputs { is_json: self.json, files: self.files.prepare(None)? })
    }

    /// Reads the document of --from, or measures one.
    pub fn document_or(
        &self,
        measure: impl FnOnce() -> anyhow::Result<ResultDocument>,
    ) -> anyhow::Result<ResultDocument> {
        match &self.from {
            Some(file) => self.files.read(file),
            None => measure(),
        }
    }
}

impl Outputs {
    /// Prints, then writes the files. `text` is the document for people.
    pub fn write(&self, document: &ResultDocument, text: &str) -> anyhow::Result<()> {
        let printed = if self.is_json { output::print_json(document) } else { output::print(text) };
        printed.and(self.files.write(document, |_| Ok(String::new())))
    }
}
