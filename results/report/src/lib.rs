//! Result documents of lowlat as terminal text and as one HTML page. Pure: no I/O, no clock.
//!
//! Terminal texts contain ANSI colours; the caller prints them through a stream that strips colours if the output is not
//! a terminal. Every text from a host is first cleaned of control characters.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(
    clippy::format_push_string,
    clippy::format_collect,
    reason = "texts are short and built once; a formatted piece reads better than a write that cannot fail"
)]

mod assess;
mod audit;
mod bios;
mod fields;
mod fleet;
mod host;
mod jitter;
mod launch;
mod net;
mod plan;
mod render;
mod role;
mod side_by_side;

pub use assess::{
    brief::{Outcome, brief},
    html::html,
    measurements::all_warnings,
    summary::summary,
};
pub use audit::{
    explain::explain,
    terminal::{AuditTableOptions, audit_table, catalogue_table},
};
pub use bios::{
    change::bios_change_text,
    settings::{BiosTextOptions, bios_text},
    sheet::{bios_sheet_html, bios_sheet_text},
};
pub use fleet::{html::fleet_html, text::fleet_text};
pub use host::{
    line::title_and_cpus as host_line,
    terminal::{choice::choice_text, diff::host_diff_text, host_text},
};
pub use jitter::{
    causes::words::stop as stop_text,
    terminal::{
        JitterTextOptions, LiveCpu, LiveView, comparison_text, explain_text, gate_text, jitter_text,
        live_lines,
    },
};
pub use launch::launch_text;
pub use lowlat_text::page::labelled;
pub use net::{
    Interrupt, NicView, OnloadStatus, Solarflare, command_line, nics_text, onload_status_text, procedure_text,
};
pub use plan::{
    apply::{apply_text, not_here_text, rollback_text, status_text},
    import::import_text,
    profiles::{ProfileLine, profiles_text},
    standing::{Assessed, InForce, Standing, standing_text},
    text::plan_text,
    verification::{VerificationTextOptions, verification_lines, verification_text},
};
pub use render::{Named, documents_text, html::documents_html, markdown::documents_markdown};
pub use role::{role_notes, role_text};
pub use side_by_side::{html::side_by_side_html, text::side_by_side_text};
