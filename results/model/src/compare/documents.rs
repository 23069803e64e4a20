//! Comparison of whole documents: the records, and what changed on the host between them.

use super::{
    Comparison, ComparisonError, DIFFERENCES_MAX, RunSummary, SideName, compare_runs, doubts, explain,
};
use crate::ResultDocument;
use lowlat_host::{
    CpuSet,
    diff::{self, DiffScope},
};
use lowlat_jitter::{JitterRecord, origins, remedy};
use lowlat_settings::{Finding, Layer, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Differences of a snapshot that the findings describe better.
const TOLD_BY_FINDINGS: &[&str] = &["files", "readiness", "schema_version", "origin"];

/// A setting with a different verdict or value in the last document before and the last after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingChange {
    pub id: String,
    pub name: String,
    pub verdict_before: Verdict,
    pub verdict_after: Verdict,
    pub observed_before: String,
    pub observed_after: String,
}

/// Compares documents of two sides. Those of each side are pooled, in the order in which they were measured.
///
/// # Errors
/// [`ComparisonError`] if a side has no document, a document has no measurement, or a record is damaged.
pub fn compare_documents(
    before: &[&ResultDocument],
    after: &[&ResultDocument],
) -> Result<Comparison, ComparisonError> {
    let (a, b) = (records(before, SideName::Before)?, records(after, SideName::After)?);
    let mut comparison = compare_runs(&a, &b)?;
    for (summaries, documents) in [(&mut comparison.before, before), (&mut comparison.after, after)] {
        for (summary, document) in summaries.iter_mut().zip(documents) {
            summary.started_at.clone_from(&document.started_at);
            document.snapshot.kernel.release.text().clone_into(&mut summary.kernel);
        }
    }
    add_documents(&mut comparison, [before, after], [&a, &b]);
    Ok(comparison)
}

/// Adds what changed between the last documents of the sides, the workloads of all, and what makes them doubtful.
fn add_documents(
    comparison: &mut Comparison,
    [before, after]: [&[&ResultDocument]; 2],
    runs: [&[&JitterRecord]; 2],
) {
    let (Some(last_before), Some(last_after)) = (before.last(), after.last()) else { return };
    comparison.setting_changes = setting_changes(last_before, last_after);
    differences(comparison, last_before, last_after);
    link(comparison, last_before, last_after);
    comparison.explanations = explain::ranked(comparison, [last_before, last_after], runs);
    comparison.add_workloads(before, after);
    comparison.doubts.splice(0..0, doubts_of(before, after));
}

/// Compares the settings and facts of the last document of each side, and the workloads of all, for documents without
/// jitter measurements.
pub fn compare_settings(before: &[&ResultDocument], after: &[&ResultDocument]) -> Comparison {
    let summary = |of: &&ResultDocument| RunSummary {
        started_at: of.started_at.clone(),
        kernel: of.snapshot.kernel.release.text().to_owned(),
        is_measured: of.jitter().is_some(),
        ..RunSummary::default()
    };
    let mut comparison = Comparison {
        before: before.iter().map(summary).collect(),
        after: after.iter().map(summary).collect(),
        ..Comparison::default()
    };
    add_documents(&mut comparison, [before, after], [&[], &[]]);
    let (Some(last_before), Some(last_after)) = (before.last(), after.last()) else { return comparison };
    let unmeasured = [(last_before, SideName::Before), (last_after, SideName::After)]
        .into_iter()
        .filter(|(document, _)| document.jitter().is_none() && comparison.workloads.is_none());
    let texts: Vec<String> = unmeasured
        .map(|(_, side)| {
            format!("the document from {side} the change contains no jitter measurement: only settings are compared")
        })
        .collect();
    comparison.doubts.splice(0..0, texts);
    comparison
}

fn records<'d>(
    documents: &[&'d ResultDocument],
    side: SideName,
) -> Result<Vec<&'d JitterRecord>, ComparisonError> {
    let record = |document: &&'d ResultDocument| {
        document.jitter().map(|jitter| &jitter.record).ok_or_else(|| ComparisonError::NoMeasurement {
            side,
            started_at: document.started_at.clone(),
            command: document.command.clone(),
        })
    };
    documents.iter().map(record).collect()
}

fn setting_changes(before: &ResultDocument, after: &ResultDocument) -> Vec<SettingChange> {
    let by_id: BTreeMap<&str, &Finding> = before.audit.findings.iter().map(|f| (f.id.as_str(), f)).collect();
    let change = |after: &Finding| {
        let before = by_id.get(after.id.as_str())?;
        let is_same = before.verdict == after.verdict && before.observed == after.observed;
        // Rows about the current state (load, steal) change between any two runs.
        (!is_same && after.layer != Layer::Readiness).then(|| SettingChange {
            id: after.id.clone(),
            name: after.name.clone(),
            verdict_before: before.verdict,
            verdict_after: after.verdict,
            observed_before: before.observed.clone(),
            observed_after: after.observed.clone(),
        })
    };
    after.audit.findings.iter().filter_map(change).collect()
}

fn differences(comparison: &mut Comparison, before: &ResultDocument, after: &ResultDocument) {
    let is_told = |path: &str| {
        let root = path.split(['.', '[']).next().unwrap_or(path);
        TOLD_BY_FINDINGS.contains(&root)
    };
    let mut found = diff::diff(&before.snapshot, &after.snapshot, DiffScope::Lasting);
    found.retain(|difference| !is_told(&difference.path));
    comparison.differences_cut_count = found.len().saturating_sub(DIFFERENCES_MAX) as u64;
    found.truncate(DIFFERENCES_MAX);
    comparison.differences = found;
}

/// Names the changed settings that remove a cause, on the host before or after.
fn link(comparison: &mut Comparison, before: &ResultDocument, after: &ResultDocument) {
    let changed: BTreeSet<&str> =
        comparison.setting_changes.iter().map(|change| change.id.as_str()).collect();
    for cause in &mut comparison.causes {
        let removes = |document: &ResultDocument, cpus: &CpuSet| {
            remedy(&cause.cause, cpus, &document.remedy_context(), &super::study_of(document))
                .map(|remedy| remedy.setting)
        };
        let removing = [before, after].into_iter().filter_map(|document| removes(document, &comparison.cpus));
        let ids = removing.flat_map(|id| {
            let origins = origins(&id).iter().map(|origin| (*origin).to_owned());
            origins.chain([id]).collect::<Vec<_>>()
        });
        let ids: BTreeSet<String> = ids.filter(|id| changed.contains(id.as_str())).collect();
        cause.changed_settings = ids.into_iter().collect();
    }
}

/// The host of a document: "PowerEdge R6525 with AMD EPYC 7F32"; empty if unknown.
pub(super) fn host_of(document: &ResultDocument) -> String {
    let facts = &document.snapshot;
    let texts = [facts.firmware.system_product.text(), facts.cpu.model_name.text()];
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" with ")
}

fn doubts_of(before: &[&ResultDocument], after: &[&ResultDocument]) -> Vec<String> {
    let documents = || before.iter().chain(after).copied();
    let mut found = Vec::new();
    doubts::differ(documents().map(host_of), "the documents come from different hosts", &mut found);
    let kernel = |document: &ResultDocument| document.snapshot.kernel.release.text().to_owned();
    doubts::differ(documents().map(kernel), "the kernels differ", &mut found);
    if before.iter().any(|one| after.iter().any(|other| std::ptr::eq(*one, *other) || one == other)) {
        found.push("a document is on both sides of the comparison".into());
    }
    let cut = documents().filter(|document| document.is_interrupted).count();
    if cut > 0 {
        found.push(format!(
            "{cut} of the runs {} stopped early by the user",
            if cut == 1 { "was" } else { "were" }
        ));
    }
    // RFC 3339 in UTC sorts as text.
    if let (Some(first), Some(last)) = (before.first(), after.last())
        && !first.started_at.is_empty()
        && !last.started_at.is_empty()
        && last.started_at < first.started_at
    {
        found.push(
            "the first document after the change was measured before the last one from before it: check \
             their order"
                .into(),
        );
    }
    found
}
