//! HTML page of a matrix of the trading pipeline.

mod charts;
mod findings;
mod latency;
mod run;
mod series;
mod table;

pub use run::run_html;

use crate::pipeline::terminal::seconds;
use crate::pipeline::{MeasuredRow, findings::MeasuredFinding, groups, matrix_warnings, not_run};
use lowlat_pipeline::{MatrixDocument, reference::REFERENCE_MACHINE};
use lowlat_text::page::{Section, facts, micro, page, section as page_section, tile, written_by};
use lowlat_text::units::{clean, count, duration};
use maud::{Markup, html};

const STYLE: &str = include_str!("pipeline.css");

/// The page of a matrix: latency over rate by group, CPU use, and tables with the report's figures.
pub fn matrix_html(document: &MatrixDocument) -> String {
    let rows = MeasuredRow::all(document);
    let groups = groups(&rows);
    let found = MeasuredFinding::all(&rows);
    let mut sections: Vec<Section> = vec![
        Section::new("summary", "Summary", summary(document, &rows)).with_style(STYLE),
        Section::new("latency", "Latency", latency::section(&groups)),
        Section::new("cost", "Cost", charts::cost(&groups)),
    ];
    if !found.is_empty() {
        sections.push(Section::new("findings", "Findings", findings::section(&found)));
    }
    sections.push(Section::new("tables", "Tables", table::section(&groups)));
    sections.push(Section::new("doubts", "Doubts", doubts(document, &rows)));
    page("the pipeline's matrix", &sections, &footer(document))
}

fn summary(document: &MatrixDocument, rows: &[MeasuredRow<'_>]) -> Markup {
    let run = rows.iter().filter(|row| row.figures.runs > 0).count();
    let ticks: u64 = rows.iter().map(|row| row.figures.ticks).sum();
    let failures: u64 = rows.iter().map(|row| row.figures.failures).sum();
    let carried = |row: &&MeasuredRow<'_>| row.figures.t2o.pooled.p99_ns.is_some();
    let by_p50 = |row: &&MeasuredRow<'_>| row.figures.t2o.pooled.p50_ns;
    let shown = |row: &MeasuredRow<'_>| {
        let pooled = &row.figures.t2o.pooled;
        let note = format!("{}, p99 {}", row.row.id, duration(pooled.p99_ns?));
        Some((micro(&duration(pooled.p50_ns?)), note))
    };
    let none = || ("–".to_owned(), "no row has percentiles".to_owned());
    let best = rows.iter().filter(carried).min_by_key(by_p50).and_then(shown).unwrap_or_else(none);
    let worst = rows.iter().filter(carried).max_by_key(by_p50).and_then(shown).unwrap_or_else(none);
    html! {
        section id="summary" class="hero" aria-labelledby="summary-title" {
            p class="eyebrow" { "Tick to order through the trading pipeline: 12 rates, in the Kungfu report's groups and others" }
            h1 id="summary-title" { (clean(&document.host)) }
            p class="sub" { (clean(&document.kernel)) }
            @if !document.pinning.is_empty() { p class="small pinning" { (clean(&document.pinning)) } }
            @if !document.platform.is_empty() { p class="small pinning" { (clean(&document.platform)) } }
            (facts([
                ("Started", document.started_at.clone()),
                ("Took", format!("{} of a budget of {}", seconds(document.elapsed_s), seconds(document.budget_s))),
                ("Runs of each row", format!("{} planned, rows take turns", document.repeats)),
            ]))
            @if document.is_interrupted { p class="note" { "The matrix was interrupted; the results so far are shown." } }
            div class="tiles" {
                (tile("Rows measured", &run.to_string(), &format!("of {}", rows.len())))
                (tile("Ticks", &count(ticks), "in all runs"))
                (tile("Lowest p50", &best.0, &best.1))
                (tile("Highest p50", &worst.0, &worst.1))
                (tile("Lost or missed", &count(failures), "must be 0"))
            }
        }
    }
}

fn doubts(document: &MatrixDocument, rows: &[MeasuredRow<'_>]) -> Markup {
    let lead = html! { "Rows that did not run, and what makes figures doubtful." };
    let not_run = not_run(rows);
    let warnings = matrix_warnings(document);
    let body = html! {
        @if !not_run.is_empty() {
            div class="card" {
                h3 { "Not run" }
                dl class="notes" { @for (ids, why) in &not_run { dt { (ids) } dd { (micro(&clean(why))) "." } } }
            }
        }
        @if warnings.is_empty() {
            @if not_run.is_empty() { p class="empty" { "None." } }
        } @else {
            div class="card" {
                h3 { "Caveats" }
                ul class="warnings" { @for warning in &warnings { li { (micro(&clean(warning))) } } }
            }
        }
    };
    page_section("doubts", "Doubts", &lead, &body)
}

fn footer(document: &MatrixDocument) -> Markup {
    html! {
        footer {
            h2 { "How to read it" }
            p {
                "md writes a tick, the strategy of its instrument reads it and answers with an order, and td reads the order: tick to order ends there. "
                "The range of means is the lowest and the highest mean of a run, the report's own figure; percentiles cover all runs together, and are left out "
                "where the latencies are too few for them."
            }
            p {
                "The report's figures come from another machine (" (REFERENCE_MACHINE) "). They show where to look, not what to reach."
            }
            (written_by(&document.lowlat_version, "pipeline matrix", &document.started_at))
        }
    }
}
