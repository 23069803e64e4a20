//! Measurements that reports show, in order.

use crate::jitter;
use lowlat_results::ResultDocument;
use lowlat_text::view::View;

/// Constructor of the view of one kind of measurement; `None` if a document has none.
type MakeView = for<'a> fn(&'a ResultDocument) -> Option<Box<dyn View + 'a>>;

/// Constructors of all views but that of jitter. A new kind of measurement adds its line here.
const VIEWS: &[MakeView] = &[
    lowlat_net_report::pingpong_view,
    lowlat_net_report::stream_view,
    lowlat_net_report::comparison_view,
    lowlat_net_report::choice_view,
    lowlat_cores_report::c2c_view,
    lowlat_cores_report::clusters_view,
    lowlat_workload_report::workload_view,
];

/// Returns the views of a document: that of jitter, which may say that it was not measured, and of what was measured.
pub fn views(document: &ResultDocument) -> Vec<Box<dyn View + '_>> {
    std::iter::once(jitter::view::view(document))
        .chain(VIEWS.iter().filter_map(|view| view(document)))
        .collect()
}

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
