//! Measurements that reports show, in order.

use crate::jitter;
use lowlat_result::ResultDocument;
use lowlat_text::view::View;

/// Constructor of the view of one kind of measurement; `None` if a document has none.
type MakeView = for<'a> fn(&'a ResultDocument) -> Option<Box<dyn View + 'a>>;

/// Constructors of all views but that of jitter. A new kind of measurement adds its line here.
const VIEWS: &[MakeView] = &[
    lowlat_net_report::pingpong_view,
    lowlat_net_report::stream_view,
    lowlat_net_report::comparison_view,
    lowlat_net_report::choice_view,
    lowlat_cache_report::c2c_view,
    lowlat_cache_report::clusters_view,
    lowlat_workload_report::workload_view,
];

/// Returns the views of a document: that of jitter, which may say that it was not measured, and of what was measured.
pub fn views(document: &ResultDocument) -> Vec<Box<dyn View + '_>> {
    std::iter::once(jitter::view::view(document))
        .chain(VIEWS.iter().filter_map(|view| view(document)))
        .collect()
}
