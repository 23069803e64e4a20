//! Measurements of workloads as terminal text and HTML. Pure: no I/O, no clock.
//!
//! Terminal texts contain ANSI colours; the caller prints them through a stream that strips colours if the output is
//! not a terminal. Every text from a host is first cleaned of control characters.
mod article;
mod between;
mod compare;
mod html;
mod list;
mod run;
mod view;
mod words;

pub use between::{changes_headline, changes_html, changes_table};
pub use list::{Listed, list_text};
pub use view::view as workload_view;

use lowlat_workload::{Purpose, Verdict, WorkloadRecord, verdict};

/// Formats a record: figures, a comparison, or the article's tables. `has_clusters`: whether cores of the host share
/// second-level caches.
pub fn workload_text(record: &WorkloadRecord, has_clusters: bool, width: usize) -> String {
    match record.purpose {
        Purpose::Run => run::text(record, width),
        Purpose::Compare => compare::text(record, width),
        Purpose::Article => article::text(record, has_clusters, width),
    }
}

/// True if a record has anything to show: a figure, a ratio of what was counted, or a row of the article's tables.
pub fn has_result(record: &WorkloadRecord) -> bool {
    match record.purpose {
        Purpose::Run => !run::measured(record).is_empty(),
        Purpose::Compare => {
            compare::pairs(record).iter().any(|pair| verdict(&pair.ratio) != Verdict::NothingCounted)
        }
        Purpose::Article => article::gains(record).iter().any(|(_, explained)| !explained.is_empty()),
    }
}

/// The result in one sentence, without a full stop.
fn headline(record: &WorkloadRecord) -> String {
    match record.purpose {
        Purpose::Run => run::headline(record),
        Purpose::Compare => compare::headline(record),
        Purpose::Article => article::headline(record),
    }
}
