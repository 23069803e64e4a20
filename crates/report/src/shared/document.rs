//! Questions that more than one capability asks of a result document.

use lowlat_result::{Measurement, ResultDocument};

/// Whether the document is that of the kind's own subcommand.
pub fn is_own_run(document: &ResultDocument, kind: &str) -> bool {
    document.command.split_whitespace().next() == Some(kind)
        && document.measurements.iter().any(|measurement| measurement.kind() == kind)
}

/// Every warning of a document once, in the order in which readers should meet them.
pub fn all_warnings(document: &ResultDocument) -> Vec<&str> {
    let is_asked_for = document.measurements.iter().any(|of| is_own_run(document, of.kind()));
    let measured = document.measurements.iter().flat_map(Measurement::warnings);
    let all = document
        .warnings
        .iter()
        .chain(measured)
        // Of the CPUs that should be isolated: irrelevant to a run on the CPUs that were asked for.
        .chain(document.allocation.warnings.iter().filter(|_| !is_asked_for))
        .chain(&document.snapshot.topology.oddities);
    let mut warnings: Vec<&str> = Vec::new();
    for warning in all {
        if !warnings.contains(&warning.as_str()) {
            warnings.push(warning);
        }
    }
    warnings
}
