//! Comparison of documents from before and after a change.

use super::arguments::{Format, OutputArgs};
use crate::{
    documents,
    labels::WithLabels,
    output::{self, Exit},
    results::{self, OutputFile},
};
use anyhow::ensure;
use lowlat_result::{ResultDocument, compare::compare_documents};
use std::path::PathBuf;

/// Compares documents given as before, after, before, after and so on.
pub fn run(files: &[PathBuf], outputs: &OutputArgs) -> anyhow::Result<Exit> {
    ensure!(
        files.len().is_multiple_of(2),
        "--compare takes documents in pairs, before and after: {} were given\nhint: name as many documents after as before",
        files.len()
    );
    ensure!(
        outputs.form() != Format::Sysjitter,
        "sysjitter has no format for comparisons\nhint: leave out --format"
    );
    let result = outputs.result.as_deref().map(|path| OutputFile::prepare(path, "--result")).transpose()?;
    let report = outputs.report.as_deref().map(|path| OutputFile::prepare(path, "--report")).transpose()?;
    let documents: Vec<ResultDocument> = files
        .iter()
        .map(|file| Ok(outputs.language.labels.label(documents::read(file)?)))
        .collect::<anyhow::Result<_>>()?;
    let side = |first: usize| documents.iter().skip(first).step_by(2).collect::<Vec<_>>();
    let comparison = compare_documents(&side(0), &side(1))?;
    let labels = outputs.language.labels.of_all(documents.iter().map(|document| &document.labels));
    let labelled =
        WithLabels { labels: &labels, result: &output::Document::of("lowlat-jitter-compare", &comparison) };
    if outputs.form() == Format::Json {
        output::print_json(&labelled)?;
    } else {
        output::print(&lowlat_report::comparison_text(&comparison, output::width()))?;
    }
    let result = result.iter().map(|file| (file, output::json_line(&labelled)));
    let report = report
        .iter()
        .map(|file| (file, Ok(outputs.language.page(lowlat_report::comparison_html(&comparison), &labels))));
    results::write_all(result.chain(report))?;
    Ok(Exit::Clean)
}
