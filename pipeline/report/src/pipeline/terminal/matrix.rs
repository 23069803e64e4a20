//! The matrix as text.

use crate::pipeline::terminal::{add_dim, add_headline, add_not_run, add_warnings, range, trimmed};
use crate::pipeline::{
    MeasuredRow, bounds,
    findings::{MeasuredFinding, cpus},
    matrix_warnings,
};
use columns::{Column, NONE};
use lowlat_pipeline::{
    MatrixDocument, RowFigures, StageRange,
    reference::{REFERENCE_MACHINE, note},
};
use lowlat_text::columns;
use lowlat_text::text::{YELLOW, add_heading, add_wrapped, paint, usable};
use lowlat_text::units::{clean, count, duration, rate};

/// The report's table for each group, with further columns. Columns that do not fit are left out.
pub fn matrix_text(document: &MatrixDocument, width: usize) -> String {
    let width = usable(width);
    let rows = MeasuredRow::all(document);
    let mut out = String::new();
    let run = rows.iter().filter(|row| row.figures.runs > 0).count();
    add_headline(
        &mut out,
        &format!("Tick to order in {run} of {} rows, {} runs planned for each", rows.len(), document.repeats),
        width,
    );
    add_dim(
        &mut out,
        &format!(
            "{}; {}; {} of a budget of {}",
            document.host,
            document.kernel,
            crate::pipeline::terminal::seconds(document.elapsed_s),
            crate::pipeline::terminal::seconds(document.budget_s)
        ),
        width,
    );
    add_dim(&mut out, &document.pinning, width);
    add_dim(&mut out, &document.platform, width);
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
        add_dim(&mut out, note(first.row.group).unwrap_or_default(), width);
        let is_in_report = measured.iter().any(|row| row.reference.is_some());
        has_reference |= is_in_report;
        out.push_str(&columns::table(table(&measured, (!is_in_report).then_some(9)), width));
        if is_in_report {
            add_heading(&mut out, &format!("{}: market data and order", first.row.group));
            out.push_str(&columns::table(stages(&measured), width));
        }
    }
    for finding in MeasuredFinding::all(&rows).iter().filter(|of| !of.measured().is_empty()) {
        add_finding(&mut out, finding, width);
    }
    if has_reference {
        out.push('\n');
        add_dim(
            &mut out,
            &format!(
                "mean: lowest and highest mean of a run. report: the same from the Kungfu report, on another machine \
                 ({REFERENCE_MACHINE}): it shows where to look, not what to reach."
            ),
            width,
        );
    }
    add_not_run(&mut out, &rows, width);
    add_warnings(&mut out, &matrix_warnings(document), width);
    out
}

/// A finding: what the report says, its groups and rows, and what they show.
fn add_finding(out: &mut String, of: &MeasuredFinding<'_, '_>, width: usize) {
    add_heading(out, &of.title());
    add_dim(out, &format!("The report: {}.", of.finding.says), width);
    for group in of.groups() {
        let text =
            format!("{}: {}{}", group.row.group, clean(&group.row.group_name), cpus(&group.row.parameters));
        add_wrapped(out, &text, 2, width);
    }
    out.push_str(&columns::table(table(&of.measured(), Some(1)), width));
    for sentence in of.sentences() {
        add_wrapped(out, &sentence, 2, width);
    }
}

/// The stages with the report's ranges beside them.
fn stages(rows: &[&MeasuredRow<'_>]) -> Vec<Column> {
    let cells = |of: &dyn Fn(&MeasuredRow<'_>) -> Option<(f64, f64)>| -> Vec<String> {
        rows.iter().map(|row| range(of(row))).collect()
    };
    vec![
        Column::words("row", 0, rows.iter().map(|row| row.row.id.clone()).collect()),
        Column::figures("market data", 0, cells(&|row| row.figures.md.means_ns)),
        Column::figures("report", 0, cells(&|row| row.reference.map(|of| bounds(of.md)))),
        Column::figures("order", 0, cells(&|row| row.figures.order.means_ns)),
        Column::figures("report", 0, cells(&|row| row.reference.map(|of| bounds(of.order)))),
    ]
}

/// Tick to order and what it costs, and the stages with their rank if they have no table beside.
fn table(rows: &[&MeasuredRow<'_>], stage_rank: Option<u8>) -> Vec<Column> {
    let cells =
        |of: &dyn Fn(&MeasuredRow<'_>) -> String| -> Vec<String> { rows.iter().map(|row| of(row)).collect() };
    let stage = |head: &str, of: fn(&RowFigures) -> &StageRange| {
        stage_rank.map(|rank| Column::figures(head, rank, cells(&|row| range(of(&row.figures).means_ns))))
    };
    let ns = |ns: Option<u64>| ns.map_or_else(|| NONE.to_owned(), duration);
    let per = |of: Option<f64>| of.map_or_else(|| NONE.to_owned(), rate);
    let all = vec![
        Column::words("row", 0, cells(&|row| row.row.id.clone())),
        Column::figures("rate/s", 1, cells(&|row| trimmed(row.row.parameters.rate_per_s))),
        Column::figures("runs", 8, cells(&|row| row.figures.runs.to_string())),
        Column::figures("ticks", 3, cells(&|row| count(row.figures.ticks))),
        Column::figures("mean", 0, cells(&|row| range(row.figures.t2o.means_ns))),
        Column::figures("p50", 1, cells(&|row| ns(row.figures.t2o.pooled.p50_ns))),
        Column::figures("p99", 0, cells(&|row| ns(row.figures.t2o.pooled.p99_ns))),
        Column::figures("p99.9", 4, cells(&|row| ns(row.figures.t2o.pooled.p99_9_ns))),
        Column::figures("max", 2, cells(&|row| ns(row.figures.t2o.pooled.max_ns))),
        Column::figures(
            "CPUs",
            5,
            cells(&|row| row.figures.cpus_busy.map_or_else(|| NONE.to_owned(), |of| format!("{of:.2}"))),
        ),
        Column::figures("switches", 6, cells(&|row| per(row.figures.switches_per_tick))),
        Column::figures("wakes", 6, cells(&|row| per(row.figures.wakes_per_tick))),
        Column::figures("faults", 7, cells(&|row| count(row.figures.faults))),
        Column::figures("report", 1, cells(&|row| range(row.reference.map(|of| bounds(of.t2o))))),
    ];
    let beside = [stage("market data", |of| &of.md), stage("order", |of| &of.order)];
    all.into_iter().chain(beside.into_iter().flatten()).collect()
}
