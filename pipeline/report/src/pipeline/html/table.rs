//! Tables of all rows, with the report's figures beside them.

use crate::pipeline::terminal::{range, trimmed};
use crate::pipeline::{MeasuredRow, bounds};
use lowlat_pipeline::{
    StageRange,
    reference::{MeanRange, ReferenceRow, note},
};
use lowlat_text::page::{data_table, micro, section as page_section};
use lowlat_text::units::{clean, count, duration, rate};
use maud::{Markup, html};

const NONE: &str = "–";
/// Columns of the table, for the row that explains why one did not run.
const COLUMNS: &str = "12";

/// Builds one table per group.
pub fn section(groups: &[Vec<&MeasuredRow<'_>>]) -> Markup {
    let lead = html! {
        "Every row. Means: the lowest and the highest of a run; below, in gray, the same in the Kungfu report, on another machine. "
        "Percentiles: tick to order over all runs."
    };
    let name = |group: &[&MeasuredRow<'_>]| {
        group
            .first()
            .map_or_else(String::new, |row| format!("{}: {}", row.row.group, clean(&row.row.group_name)))
    };
    let body = html! { @for group in groups { (table(group, &name(group))) } };
    page_section("tables", "Tables", &lead, &body)
}

/// A table of rows, with the swatch of the first one's group, and what the report says of that group.
pub fn table(group: &[&MeasuredRow<'_>], name: &str) -> Markup {
    let Some(first) = group.first() else { return html! {} };
    html! {
        div class="card flush" {
            div class="table-head" { h3 { span class={ "swatch g-" (first.row.group.to_ascii_lowercase()) } {} " " (name) }
                @if let Some(note) = note(first.row.group) { p class="small" { (note) } }
            }
            (data_table(name, "numbers", &["<Row", "Ticks/s", "Ticks", "Market data", "Order", "Tick to order", "p50", "p99", "p99.9", "Max", "CPUs", "Switches", "Wakes", "Page faults"], &html! {
                @for row in group { (table_row(row)) }
            }))
        }
    }
}

fn table_row(row: &MeasuredRow<'_>) -> Markup {
    let figures = &row.figures;
    let ns = |ns: Option<u64>| ns.map_or_else(|| NONE.to_owned(), |ns| micro(&duration(ns)));
    let per = |of: Option<f64>| of.map_or_else(|| NONE.to_owned(), rate);
    let of_range = |of| micro(&range(Some(of))).replace('-', "–");
    let report = |of: fn(&ReferenceRow) -> MeanRange| row.reference.map(|row| of_range(bounds(of(row))));
    let mean = |of: &StageRange, report: Option<String>| {
        html! {
            (of.means_ns.map_or_else(|| NONE.to_owned(), of_range))
            @if let Some(report) = report { span class="in-report" { (report) } }
        }
    };
    let pooled = &figures.t2o.pooled;
    html! {
        tr {
            th scope="row" class="left" { (row.row.id) }
            td { (trimmed(row.row.parameters.rate_per_s)) }
            @if figures.runs == 0 {
                td class="left muted not-run" colspan=(COLUMNS) {
                    "not run: " (micro(&clean(row.row.not_run.as_deref().unwrap_or("the matrix ended before it"))))
                    @if let Some(t2o) = report(|row| row.t2o) { "; tick to order in the report " (t2o) }
                }
            } @else {
                td { (count(figures.ticks)) }
                td { (mean(&figures.md, report(|row| row.md))) }
                td { (mean(&figures.order, report(|row| row.order))) }
                td class="strong" { (mean(&figures.t2o, report(|row| row.t2o))) }
                td { (ns(pooled.p50_ns)) }
                td { (ns(pooled.p99_ns)) }
                td { (ns(pooled.p99_9_ns)) }
                td { (ns(pooled.max_ns)) }
                td { (figures.cpus_busy.map_or_else(|| NONE.to_owned(), |of| format!("{of:.2}"))) }
                td { (per(figures.switches_per_tick)) }
                td { (per(figures.wakes_per_tick)) }
                td { (count(figures.faults)) }
            }
        }
    }
}
