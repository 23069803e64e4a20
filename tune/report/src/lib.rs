//! Audits, plans and firmware settings as terminal text and HTML. Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod audit;
mod bios;
mod plan;

pub use audit::{
    explain,
    terminal::{AuditTableOptions, audit_table, catalogue_table},
};
pub use bios::{
    change::bios_change_text,
    fleet_page::bios_fleet_html,
    servers::{bios_diff_text, bios_fleet_text},
    settings::{BiosTextOptions, bios_text},
    sheet::{bios_sheet_html, bios_sheet_text},
};
pub use plan::{
    apply::{apply_text, not_here_text, rollback_text, status_text},
    import::import_text,
    proof::{proof_html, proof_text},
    standing::{Assessed, PlanState, ProfileLine, Standing, profiles_text, standing_text},
    text::plan_text,
    verification::{VerificationTextOptions, verification_lines, verification_text},
};
