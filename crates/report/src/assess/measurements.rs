//! Measurements that reports show, in order.

use crate::jitter;
use lowlat_result::ResultDocument;
use lowlat_text::view::View;

/// Constructor of the view of one kind of measurement.
type MakeView = for<'a> fn(&'a ResultDocument) -> Box<dyn View + 'a>;

/// Constructors of all views. A new kind of measurement adds its line here.
const VIEWS: &[MakeView] = &[
    jitter::view::view,
    lowlat_net_report::pingpong_view,
    lowlat_net_report::stream_view,
    lowlat_net_report::comparison_view,
    lowlat_net_report::choice_view,
    lowlat_cache_report::c2c_view,
    lowlat_cache_report::clusters_view,
    lowlat_workload_report::workload_view,
];

/// Returns the views of a document.
pub fn views(document: &ResultDocument) -> Vec<Box<dyn View + '_>> {
    VIEWS.iter().map(|view| view(document)).collect()
}
