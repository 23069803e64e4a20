//! Workloads of two documents, before and after a change.

use crate::workload::{
    compare::grouped,
    words::{judged, named, per_second},
};
use lowlat_text::columns::{self, Column, Table};
use lowlat_text::page::columns_table;
use lowlat_text::units::clean;
use lowlat_workload::WorkloadChange;
use maud::Markup;

/// "Slower after: pipe, 1 copy with place=kernel 0.95 [0.93, 0.98]".
pub fn changes_headline(changes: &[WorkloadChange]) -> String {
    if changes.is_empty() {
        return "No workload was counted on both sides with the same copies and setting".to_owned();
    }
    let name =
        |of: &WorkloadChange| clean(&format!("{} with {}", named(&of.workload, of.copies), of.setting));
    let ratios: Vec<_> = changes.iter().map(|of| (name(of), of.ratio)).collect();
    grouped(&ratios, ["Faster after", "Slower after"])
}

/// A row for each workload, copies and setting.
pub fn changes_table(changes: &[WorkloadChange], width: usize) -> String {
    columns::table(table(changes), width)
}

/// The same on a page.
pub fn changes_html(changes: &[WorkloadChange]) -> Markup {
    columns_table("Workloads before and after", &table(changes))
}

fn table(changes: &[WorkloadChange]) -> Vec<Column> {
    Table::of(changes)
        .words("workload", 0, |of| clean(&of.workload))
        .figures("copies", 0, |of| of.copies.to_string())
        .words("setting", 0, |of| of.setting.to_string())
        .figures("before per second", 0, |of| format!("{} {}", per_second(of.before_per_s), clean(&of.unit)))
        .figures("after per second", 0, |of| per_second(of.after_per_s))
        .words("after / before", 0, |of| judged(&of.ratio))
        .into_columns()
}
