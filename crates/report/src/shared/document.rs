//! Questions that more than one capability asks of a result document.

use lowlat_result::ResultDocument;

/// Whether the document is that of `lowlat jitter`.
pub fn is_of_jitter(document: &ResultDocument) -> bool {
    document.command.split_whitespace().next() == Some("jitter") && document.jitter.is_some()
}

/// Every warning of a document once, in the order in which readers should meet them.
pub fn all_warnings(document: &ResultDocument) -> Vec<&str> {
    let jitter = document.jitter.iter().flat_map(|jitter| &jitter.warnings);
    let all = document
        .warnings
        .iter()
        .chain(jitter)
        // Of the CPUs that should be isolated: of no matter to a run on those that were asked for.
        .chain(document.allocation.warnings.iter().filter(|_| !is_of_jitter(document)))
        .chain(&document.snapshot.topology.oddities);
    let mut warnings: Vec<&str> = Vec::new();
    for warning in all {
        if !warnings.contains(&warning.as_str()) {
            warnings.push(warning);
        }
    }
    warnings
}
