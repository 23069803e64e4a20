//! Plan of a matrix, as text.

use crate::pipeline::terminal::{add_dim, add_headline, add_not_run, add_warnings, seconds, trimmed};
use crate::pipeline::{MeasuredRow, groups};
use columns::Column;
use lowlat_pipeline::{MatrixDocument, matrix::FINDINGS};
use lowlat_text::columns;
use lowlat_text::text::{add_heading, usable};
use lowlat_text::units::{clean, count, plural};

/// The rows to run with their durations, group by group, and the rows left out with reasons. `expected_s`
/// covers all runs together.
pub fn matrix_plan_text(document: &MatrixDocument, expected_s: f64, width: usize) -> String {
    let width = usable(width);
    let mut rows = MeasuredRow::all(document);
    let mut out = String::new();
    let run = rows.iter().filter(|row| row.row.not_run.is_none()).count();
    let repeats = usize::try_from(document.repeats).unwrap_or(usize::MAX);
    let headline = format!(
        "{} of {} rows, {} each, in about {} of a budget of {}; rows take turns",
        count(run as u64),
        rows.len(),
        plural(repeats, "run"),
        seconds(expected_s),
        seconds(document.budget_s)
    );
    add_headline(&mut out, &headline, width);
    add_dim(&mut out, &document.pinning, width);
    add_dim(&mut out, &document.platform, width);
    for group in groups(&rows) {
        let planned: Vec<&MeasuredRow<'_>> =
            group.iter().copied().filter(|row| row.row.not_run.is_none()).collect();
        let Some(first) = planned.first() else { continue };
        add_heading(&mut out, &format!("{}: {}", first.row.group, clean(&first.row.group_name)));
        out.push_str(&columns::table(table(&planned), width));
    }
    for finding in FINDINGS {
        let is_planned =
            |row: &&MeasuredRow<'_>| row.row.not_run.is_none() && finding.groups.contains(&row.row.group);
        let planned: Vec<&MeasuredRow<'_>> = rows.iter().filter(is_planned).collect();
        if !planned.is_empty() {
            add_heading(&mut out, &format!("Finding {} of the report: {}", finding.number, finding.title));
            out.push_str(&columns::table(table(&planned), width));
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

fn table(rows: &[&MeasuredRow<'_>]) -> Vec<Column> {
    let cells =
        |of: &dyn Fn(&MeasuredRow<'_>) -> String| -> Vec<String> { rows.iter().map(|row| of(row)).collect() };
    vec![
        Column::words("row", 0, cells(&|row| row.row.id.clone())),
        Column::figures("rate/s", 0, cells(&|row| trimmed(row.row.parameters.rate_per_s))),
        Column::figures("per run", 0, cells(&|row| format!("{:.1} s", row.row.parameters.duration_s))),
        Column::figures("ticks", 0, cells(&|row| count(row.row.ticks_per_run))),
    ]
}
