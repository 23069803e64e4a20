//! Result documents of lowlat as terminal text and as one HTML page. Pure: no I/O, no clock.
//!
//! Terminal texts carry ANSI colours; the caller prints them through a stream that strips colours when nobody
//! sees them. Every text that comes from a host is cleaned of control characters first.
#![forbid(unsafe_code)]
#![allow(
    clippy::format_push_string,
    clippy::format_collect,
    reason = "texts are short and built once; a formatted piece reads better than a write that cannot fail"
)]

mod causes;
mod comparison;
mod figures;
mod grouping;
mod host_line;
mod html;
mod pipeline;
mod shape;
mod terminal;
mod units;

pub use html::{comparison_html, html, matrix_html};
pub use terminal::audit::{AuditTableOptions, audit_table, catalogue_table};
pub use terminal::bios::{BiosTextOptions, bios_text};
pub use terminal::bios_change::bios_change_text;
pub use terminal::choice::choice_text;
pub use terminal::diff::host_diff_text;
pub use terminal::explain::explain;
pub use terminal::host::host_text;
pub use terminal::jitter::{
    JitterTextOptions, LiveCpu, LiveView, comparison_text, explain_text, gate_text, jitter_text, live_lines,
};
pub use terminal::journal::{
    JournalDifference, JournalLine, JournalStream, JournalTimes, JournalView, journal_diff_text,
    journal_line, journal_notice, journal_text,
};
pub use terminal::journal_recorded::{JournalRecorded, journal_recorded_text};
pub use terminal::next_steps::next_steps;
pub use terminal::pipeline::{
    PipelineLive, load_words, matrix_not_run_text, matrix_plan_text, matrix_text, pipeline_live_lines,
    pipeline_text, size_text,
};
pub use terminal::plan::plan_text;
pub use terminal::summary::summary;
pub use terminal::tune::{apply_text, not_here_text, rollback_text, status_text};
pub use terminal::verification::{VerificationTextOptions, verification_lines, verification_text};

use lowlat_result::ResultDocument;

/// The host in two short lines: what it is, and its processors.
pub fn host_line(host: &lowlat_host::HostSnapshot) -> (String, String) {
    host_line::title_and_cpus(host)
}

/// Whether the document is that of `lowlat jitter`.
fn is_of_jitter(document: &ResultDocument) -> bool {
    document.command.split_whitespace().next() == Some("jitter") && document.jitter.is_some()
}

/// Every warning of a document once, in the order in which readers should meet them.
fn all_warnings(document: &ResultDocument) -> Vec<&str> {
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
