//! Tables of all rows, with the report's figures beside them.

use crate::pipeline::MeasuredRow;
use crate::pipeline::terminal::{range, trimmed};
use crate::shared::page::{micro, section as page_section};
use crate::shared::units::{clean, count, duration, rate};
use lowlat_pipeline::StageRange;
use maud::{Markup, html};

const NONE: &str = "–";
/// Columns of the table, for the row that explains why one did not run.
const COLUMNS: &str = "13";

/// One table per group.
pub fn section(groups: &[Vec<&MeasuredRow<'_>>]) -> Markup {
    let lead = html! { "Every row. Means: the lowest and the highest of a run. Percentiles: tick to order over all runs." };
    let body = html! { @for group in groups { (table(group)) } };
    page_section("tables", "Tables", &lead, &body)
}

fn table(group: &[&MeasuredRow<'_>]) -> Markup {
    let Some(first) = group.first() else { return html! {} };
    let name = format!("{}: {}", first.row.group, clean(&first.row.group_name));
    let has_reference = group.iter().any(|row| row.reference.is_some());
    html! {
        div class="card flush" {
            div class="table-head" { h3 { span class={ "swatch g-" (first.row.group.to_ascii_lowercase()) } {} " " (name) } }
            div class="scroll" tabindex="0" role="region" aria-label=(name) {
                table class="numbers" {
                    thead { tr {
                        th scope="col" class="left" { "Row" } th scope="col" { "Ticks/s" } th scope="col" { "Ticks" }
                        th scope="col" { "Market data" } th scope="col" { "Order" } th scope="col" { "Tick to order" }
                        @if has_reference { th scope="col" class="reference" { "In the report" } }
                        th scope="col" { "p50" } th scope="col" { "p99" } th scope="col" { "p99.9" } th scope="col" { "Max" }
                        th scope="col" { "CPUs" } th scope="col" { "Switches" } th scope="col" { "Wakes" } th scope="col" { "Faults" }
                    } }
                    tbody { @for row in group { (table_row(row, has_reference)) } }
                }
            }
        }
    }
}

fn table_row(row: &MeasuredRow<'_>, has_reference: bool) -> Markup {
    let figures = &row.figures;
    let ns = |ns: Option<u64>| ns.map_or_else(|| NONE.to_owned(), |ns| micro(&duration(ns)));
    let per = |of: Option<f64>| of.map_or_else(|| NONE.to_owned(), rate);
    let mean = |of: &StageRange| {
        of.means_ns.map_or_else(|| NONE.to_owned(), |of| micro(&range(Some(of))).replace('-', "–"))
    };
    let reference = row.reference.map_or_else(
        || NONE.to_owned(),
        |of| micro(&range(Some((of.low_ns as f64, of.high_ns as f64)))).replace('-', "–"),
    );
    let pooled = &figures.t2o.pooled;
    html! {
        tr {
            th scope="row" class="left" { (row.row.id) }
            td { (trimmed(row.row.parameters.rate_per_s)) }
            @if figures.runs == 0 {
                td class="left muted not-run" colspan=(if has_reference { COLUMNS } else { "12" }) {
                    "not run: " (micro(&clean(row.row.not_run.as_deref().unwrap_or("the matrix ended before it"))))
                    @if has_reference { "; in the report " (reference) }
                }
            } @else {
                td { (count(figures.ticks)) }
                td { (mean(&figures.md)) }
                td { (mean(&figures.order)) }
                td class="strong" { (mean(&figures.t2o)) }
                @if has_reference { td class="reference" { (reference) } }
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
