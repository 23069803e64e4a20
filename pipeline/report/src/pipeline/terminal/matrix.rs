//! The matrix as text.

use crate::pipeline::terminal::{add_headline, add_not_run, add_warnings, range, seconds, trimmed};
use crate::pipeline::{
    MeasuredRow, bounds,
    findings::{MeasuredFinding, cpus},
    matrix_warnings,
};
use lowlat_pipeline::{
    MatrixDocument,
    reference::{REFERENCE_MACHINE, note},
};
use lowlat_text::columns::Table;
use lowlat_text::text::{YELLOW, add_detail, add_heading, add_wrapped, paint, usable};
use lowlat_text::units::{clean, count, duration, rate};

/// The report's table for each group, with further columns. Columns that do not fit are left out.
pub fn matrix_text(document: &MatrixDocument, width: usize) -> String {
    let width = usable(width);
    let rows = MeasuredRow::all(document);
    let mut out = String::new();
    let run = rows.iter().filter(|row| row.figures.runs > 0).count();
    let MatrixDocument { repeats, host, kernel, .. } = document;
    let headline = format!("Tick to order in {run} of {} rows, {repeats} runs planned for each", rows.len());
    add_headline(&mut out, &headline, width);
    let (elapsed, budget) = (seconds(document.elapsed_s), seconds(document.budget_s));
    add_detail(&mut out, &format!("{host}; {kernel}; {elapsed} of a budget of {budget}"), width);
    add_detail(&mut out, &document.pinning, width);
    add_detail(&mut out, &document.platform, width);
    if document.is_interrupted {
        out.push_str(&paint(YELLOW, "The matrix was interrupted; the results so far are shown."));
        out.push('\n');
    }
    let mut has_reference = false;
    for group in crate::pipeline::groups(&rows) {
        let measured: Vec<&MeasuredRow<'_>> =
            group.iter().copied().filter(|row| row.figures.runs > 0).collect();
        let Some(first) = measured.first() else { continue };
        add_heading(&mut out, &format!("{}: {}", first.row.group, clean(&first.row.group_name)));
        add_detail(&mut out, note(first.row.group).unwrap_or_default(), width);
        let is_in_report = measured.iter().any(|row| row.reference.is_some());
        has_reference |= is_in_report;
        out.push_str(&table(&measured, (!is_in_report).then_some(9)).text(width));
        if is_in_report {
            add_heading(&mut out, &format!("{}: market data and order", first.row.group));
            out.push_str(&stages(&measured).text(width));
        }
    }
    for finding in MeasuredFinding::all(&rows).iter().filter(|of| !of.measured().is_empty()) {
        add_finding(&mut out, finding, width);
    }
    if has_reference {
        out.push('\n');
        let legend = format!(
            "mean: lowest and highest mean of a run. report: the same from the Kungfu report, on another machine \
             ({REFERENCE_MACHINE}): it shows where to look, not what to reach."
        );
        add_detail(&mut out, &legend, width);
    }
    add_not_run(&mut out, &rows, width);
    add_warnings(&mut out, &matrix_warnings(document), width);
    out
}

/// A finding: what the report says, its groups and rows, and what they show.
fn add_finding(out: &mut String, of: &MeasuredFinding<'_, '_>, width: usize) {
    add_heading(out, &of.title());
    add_detail(out, &format!("The report: {}.", of.finding.says), width);
    for group in of.groups() {
        let text =
            format!("{}: {}{}", group.row.group, clean(&group.row.group_name), cpus(&group.row.parameters));
        add_wrapped(out, &text, 2, width);
    }
    out.push_str(&table(&of.measured(), Some(1)).text(width));
    for sentence in of.sentences() {
        add_wrapped(out, &sentence, 2, width);
    }
}

/// The stages with the report's ranges beside them.
fn stages<'r, 'a>(rows: &'r [&'r MeasuredRow<'a>]) -> Table<'r, &'r MeasuredRow<'a>> {
    Table::of(rows)
        .words("row", 0, |row| row.row.id.clone())
        .figures("market data", 0, |row| range(row.figures.md.means_ns))
        .figures("report", 0, |row| range(row.reference.map(|of| bounds(of.md))))
        .figures("order", 0, |row| range(row.figures.order.means_ns))
        .figures("report", 0, |row| range(row.reference.map(|of| bounds(of.order))))
}

/// Tick to order and what it costs, and the stages with their rank if they have no table beside.
fn table<'r, 'a>(rows: &'r [&'r MeasuredRow<'a>], stage_rank: Option<u8>) -> Table<'r, &'r MeasuredRow<'a>> {
    let table = Table::of(rows)
        .words("row", 0, |row| row.row.id.clone())
        .figures("rate/s", 1, |row| trimmed(row.row.parameters.rate_per_s))
        .figures("runs", 8, |row| row.figures.runs.to_string())
        .figures("ticks", 3, |row| count(row.figures.ticks))
        .figures("mean", 0, |row| range(row.figures.t2o.means_ns))
        .figures("p50", 1, |row| row.figures.t2o.pooled.p50_ns.map(duration))
        .figures("p99", 0, |row| row.figures.t2o.pooled.p99_ns.map(duration))
        .figures("p99.9", 4, |row| row.figures.t2o.pooled.p99_9_ns.map(duration))
        .figures("max", 2, |row| row.figures.t2o.pooled.max_ns.map(duration))
        .figures("CPUs", 5, |row| row.figures.cpus_busy.map(|of| format!("{of:.2}")))
        .figures("switches", 6, |row| row.figures.switches_per_tick.map(rate))
        .figures("wakes", 6, |row| row.figures.wakes_per_tick.map(rate))
        .figures("faults", 7, |row| count(row.figures.faults))
        .figures("report", 1, |row| range(row.reference.map(|of| bounds(of.t2o))));
    let Some(rank) = stage_rank else { return table };
    table
        .figures("market data", rank, |row| range(row.figures.md.means_ns))
        .figures("order", rank, |row| range(row.figures.order.means_ns))
}
