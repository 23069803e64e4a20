//! The matrix as text.

use crate::pipeline::terminal::{add_dim, add_headline, add_not_run, add_warnings, range, trimmed};
use crate::pipeline::{MeasuredRow, bounds, failures_text};
use columns::{Column, NONE};
use lowlat_pipeline::{MatrixDocument, reference::REFERENCE_MACHINE};
use lowlat_text::columns;
use lowlat_text::text::{YELLOW, add_heading, paint, usable};
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
        has_reference |= measured.iter().any(|row| row.reference.is_some());
        out.push_str(&columns::table(table(&measured), width));
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
    let mut warnings = document.warnings.clone();
    warnings.extend(failures_text(&rows));
    add_warnings(&mut out, &warnings, width);
    out
}

fn table(rows: &[&MeasuredRow<'_>]) -> Vec<Column> {
    let cells =
        |of: &dyn Fn(&MeasuredRow<'_>) -> String| -> Vec<String> { rows.iter().map(|row| of(row)).collect() };
    let ns = |ns: Option<u64>| ns.map_or_else(|| NONE.to_owned(), duration);
    let per = |of: Option<f64>| of.map_or_else(|| NONE.to_owned(), rate);
    vec![
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
        Column::figures("market data", 9, cells(&|row| range(row.figures.md.means_ns))),
        Column::figures("order", 9, cells(&|row| range(row.figures.order.means_ns))),
        Column::figures("report", 1, cells(&|row| range(row.reference.map(|of| bounds(of.t2o))))),
        Column::figures(
            "report: market data",
            10,
            cells(&|row| range(row.reference.map(|of| bounds(of.md)))),
        ),
        Column::figures("report: order", 10, cells(&|row| range(row.reference.map(|of| bounds(of.order))))),
    ]
}
