//! Measurements that reports show, in order.

use lowlat_cores_report::{
    c2c_view, clock_article, clusters_view, false_sharing_article, memory_article, workload_view,
};
use lowlat_jitter::JitterMeasurement;
use lowlat_jitter_report::{JitterRun, JitterTextOptions, jitter_view};
use lowlat_net_report::{choice_view, comparison_view, pingpong_view, stream_view};
use lowlat_results::ResultDocument;
use lowlat_text::view::View;

/// Constructor of the view of one kind of measurement; `None` if a document has none.
type MakeView = for<'a> fn(&'a ResultDocument) -> Option<View<'a>>;

/// Constructors of all views but that of jitter. A new kind of measurement adds its line here.
const VIEWS: &[MakeView] = &[
    |of| Some(pingpong_view(&of.pingpong()?.record, of.is_interrupted)),
    |of| Some(stream_view(&of.stream()?.record, of.is_interrupted)),
    |of| Some(comparison_view(&of.net_compare()?.record)),
    |of| Some(choice_view(&of.net_choice()?.record)),
    |of| Some(c2c_view(&of.c2c()?.record, &of.snapshot)),
    |of| Some(clusters_view(&of.clusters()?.record, &of.snapshot)),
    |of| Some(clock_article(&of.clock()?.record).into_view()),
    |of| Some(memory_article(&of.memory()?.record).into_view()),
    |of| Some(false_sharing_article(&of.false_sharing()?.record).into_view()),
    |of| Some(workload_view(&of.workload()?.record, &of.snapshot)),
];

/// Returns the views of a document: that of jitter, which may say that it was not measured, and of what was measured.
pub fn views(document: &ResultDocument) -> Vec<View<'_>> {
    std::iter::once(jitter_view(jitter_run(document)))
        .chain(VIEWS.iter().filter_map(|view| view(document)))
        .collect()
}

/// Returns the jitter measurement of a document with what it needs of the rest.
pub fn jitter_run(document: &ResultDocument) -> JitterRun<'_> {
    JitterRun {
        measurement: document.jitter(),
        context: document.remedy_context(),
        audit: &document.audit,
        readiness: &document.readiness,
        is_interrupted: document.is_interrupted,
        is_own: is_own_run(document, JitterMeasurement::KIND),
    }
}

/// Formats the jitter run of a document: headline, CPUs, lengths, causes with remedies, warnings.
pub fn jitter_text(document: &ResultDocument, options: JitterTextOptions) -> String {
    lowlat_jitter_report::jitter_text(&jitter_run(document), &all_warnings(document), options)
}

/// Returns whether the subcommand of this kind wrote the document. Kinds of `lowlat net` are its second word.
pub fn is_own_run(document: &ResultDocument, kind: &str) -> bool {
    document.command.split_whitespace().take(2).any(|word| word == kind)
        && document.measurements.iter().any(|measurement| measurement.kind() == kind)
}

/// Returns every warning of a document once, in reading order.
pub fn all_warnings(document: &ResultDocument) -> Vec<String> {
    let is_asked_for = document.measurements.iter().any(|of| is_own_run(document, of.kind()));
    let measured: Vec<String> = views(document).into_iter().flat_map(|view| view.doubts).collect();
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
