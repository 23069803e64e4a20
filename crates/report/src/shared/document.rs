//! Queries on a result document that several capabilities share.

use crate::assess::measurements::views;
use lowlat_result::ResultDocument;

/// Returns whether the subcommand of this kind wrote the document. Kinds of `lowlat net` are its second word.
pub fn is_own_run(document: &ResultDocument, kind: &str) -> bool {
    document.command.split_whitespace().take(2).any(|word| word == kind)
        && document.measurements.iter().any(|measurement| measurement.kind() == kind)
}

/// Returns every warning of a document once, in reading order.
pub fn all_warnings(document: &ResultDocument) -> Vec<String> {
    let is_asked_for = document.measurements.iter().any(|of| is_own_run(document, of.kind()));
    let measured: Vec<String> = views(document).iter().flat_map(|view| view.doubts()).collect();
    let all = document
        .warnings
        .iter()
        .chain(&measured)
        // These concern the CPUs to isolate, which are irrelevant to a run on named CPUs.
        .chain(document.allocation.warnings.iter().filter(|_| !is_asked_for))
        .chain(&document.snapshot.topology.oddities);
    let mut warnings: Vec<String> = Vec::new();
    for warning in all {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    warnings
}
