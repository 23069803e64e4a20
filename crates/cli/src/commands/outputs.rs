//! Outputs of measurements: a text or JSON on stdout, a report and a document.

use crate::{arguments::PageArgs, documents, output, results::RunFiles};
use clap::Args;
use lowlat_result::ResultDocument;
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
        RunFiles::prepare(hlog, self.report.as_deref(), self.language.clone(), self.result.as_deref())
    }

    /// Returns whether one is written.
    pub fn are_asked_for(&self) -> bool {
        self.report.is_some() || self.result.is_some()
    }

    /// Reads a document, with the labels asked for.
    pub fn read(&self, file: &Path) -> anyhow::Result<ResultDocument> {
        Ok(self.language.labels.label(documents::read(file)?))
    }
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

/// The outputs that are wanted, their files checked.
pub struct Outputs {
    is_json: bool,
    files: RunFiles,
}

impl OutputArgs {
    /// Checks the files before the run.
    pub fn prepare(&self) -> anyhow::Result<Outputs> {
        Ok(Outputs { is_json: self.json, files: self.files.prepare(None)? })
    }

    /// Returns whether a document is shown instead of measured.
    pub fn is_from(&self) -> bool {
        self.from.is_some()
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
