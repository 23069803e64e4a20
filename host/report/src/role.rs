//! The role that a host is judged by, in words.

use lowlat_host::{Allocation, Role, RoleSource};
use lowlat_text::text::{add_wrapped, usable};
use lowlat_text::units::clean;

/// Returns where a role comes from; `None` if the user named it or lowlat chose everything.
pub fn source_words(source: RoleSource) -> Option<&'static str> {
    match source {
        RoleSource::Named | RoleSource::Own => None,
        RoleSource::InForce => Some("role in force"),
        RoleSource::Installed => Some("role in /etc/lowlat/role.toml"),
        RoleSource::Isolation => Some("isolation that this host has"),
    }
}

/// Returns "Judged by the role in force: housekeeping 0-1,8, isolated 2-7,9-15.", and the warnings.
pub fn role_notes(role: &Role, allocation: &Allocation, warnings: &[String]) -> Vec<String> {
    let Allocation { housekeeping, isolated, .. } = allocation;
    let line = source_words(role.source)
        .map(|words| format!("Judged by the {words}: housekeeping {housekeeping}, isolated {isolated}."));
    line.into_iter().chain(warnings.iter().map(|warning| format!("warning: {warning}"))).collect()
}

/// Formats the same as lines of this width.
pub fn role_text(role: &Role, allocation: &Allocation, warnings: &[String], width: usize) -> String {
    let mut out = String::new();
    for note in role_notes(role, allocation, warnings) {
        add_wrapped(&mut out, &clean(&note), 0, usable(width));
    }
    out
}
