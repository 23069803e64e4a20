//! Plan of a matrix, as text.

use crate::pipeline::terminal::{add_headline, add_not_run, add_warnings, seconds, trimmed};
use crate::pipeline::{MeasuredRow, groups};
use lowlat_pipeline::{MatrixDocument, matrix::FINDINGS};
use lowlat_text::columns::Table;
use lowlat_text::text::{add_detail, add_heading, usable};
use lowlat_text::units::{clean, count, plural};

/// The rows to run with their durations, group by group, and the rows left out with reasons. `expected_s`
/// covers all runs together.
pub fn matrix_plan_text(document: &MatrixDocument, expected_s: f64, width: usize) -> String {
    let width = usable(width);
    let mut rows = MeasuredRow::all(document);
    let mut out = String::new();
    let run = rows.iter().filter(|row| row.row.not_run.is_none()).count();
    let headline = format!(
        "{} of {} rows, {} each, in about {} of a budget of {}; rows take turns",
        count(run as u64),
        rows.len(),
        plural(document.repeats, "run"),
        seconds(expected_s),
        seconds(document.budget_s)
    );
    add_headline(&mut out, &headline, width);
    add_detail(&mut out, &document.pinning, width);
    add_detail(&mut out, &document.platform, width);
    for group in groups(&rows) {
        let planned: Vec<&MeasuredRow<'_>> =
            group.iter().copied().filter(|row| row.row.not_run.is_none()).collect();
        let Some(first) = planned.first() else { continue };
        add_heading(&mut out, &format!("{}: {}", first.row.group, clean(&first.row.group_name)));
        out.push_str(&table(&planned, width));
    }
    for finding in FINDINGS {
        let is_planned =
            |row: &&MeasuredRow<'_>| row.row.not_run.is_none() && finding.groups.contains(&row.row.group);
        let planned: Vec<&MeasuredRow<'_>> = rows.iter().filter(is_planned).collect();
        if !planned.is_empty() {
            add_heading(&mut out, &format!("Finding {} of the report: {}", finding.number, finding.title));
            out.push_str(&table(&planned, width));
        }
    }
    rows.retain(|row| row.row.not_run.is_some());
    add_not_run(&mut out, &rows, width);
    add_warnings(&mut out, &document.warnings, width);
    out
}

/// Only the rows that do not run, with reasons.
pub fn matrix_not_run_text(document: &MatrixDocument, width: usize) -> String {
    let (mut out, mut rows) = (String::new(), MeasuredRow::all(document));
    rows.retain(|row| row.row.not_run.is_some());
    add_not_run(&mut out, &rows, usable(width));
    out.trim().to_owned()
}

fn table(rows: &[&MeasuredRow<'_>], width: usize) -> String {
    Table::of(rows)
        .words("row", 0, |row| row.row.id.clone())
        .figures("rate/s", 0, |row| trimmed(row.row.parameters.rate_per_s))
        .figures("per run", 0, |row| format!("{:.1} s", row.row.parameters.duration_s))
        .figures("ticks", 0, |row| count(row.row.ticks_per_run))
        .text(width)
}
