//! Workloads of two documents, before and after a change.

use crate::workload::{
    compare::grouped,
    html::table,
    words::{judged, named, per_second},
};
use lowlat_text::columns::{self, Column};
use lowlat_text::units::clean;
use lowlat_workload::WorkloadChange;
use maud::Markup;

const HEADS: [&str; 6] =
    ["workload", "copies", "setting", "before per second", "after per second", "after / before"];

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
    let rows: Vec<[String; 6]> = changes.iter().map(row).collect();
    let column = |at: usize| rows.iter().filter_map(|row| row.get(at).cloned()).collect();
    let columns = HEADS.iter().enumerate().map(|(at, head)| match at {
        1 | 3 | 4 => Column::figures(head, 0, column(at)),
        _ => Column::words(head, 0, column(at)),
    });
    columns::table(columns.collect(), width)
}

/// The same on a page.
pub fn changes_html(changes: &[WorkloadChange]) -> Markup {
    let rows: Vec<Vec<String>> = changes.iter().map(|of| row(of).into()).collect();
    table("Workloads before and after", &HEADS, &rows)
}

fn row(of: &WorkloadChange) -> [String; 6] {
    [
        clean(&of.workload),
        of.copies.to_string(),
        of.setting.to_string(),
        format!("{} {}", per_second(of.before_per_s), clean(&of.unit)),
        per_second(of.after_per_s),
        judged(&of.ratio),
    ]
}
