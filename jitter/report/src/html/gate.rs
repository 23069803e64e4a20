//! Limits of a run and their outcome.

use crate::figures::JitterRun;
use lowlat_jitter::gate::{GateOutcome, GateRow, Verdict};
use lowlat_text::page::{data_table, micro, section as page_section};
use lowlat_text::units::{clean, plural};
use maud::{Markup, html};

/// Highest number of rows on the page; exceeded limits come first.
const ROWS_MAX: usize = 200;

/// Builds the outcome of the gate, or returns `None` if none was given.
pub fn section(run: &JitterRun<'_>) -> Option<Markup> {
    let outcome = run.measurement?.gate.as_ref()?;
    let failed = outcome.failed().count();
    let lead = html! {
        code { (clean(&outcome.gate)) } ": "
        @if outcome.is_held() { b { "held" } } @else { b class="long" { "not held" } }
        ", " (plural(outcome.rows.len(), "row")) ", " (failed) " not met."
    };
    Some(page_section("gate", "Gate", &lead, &table(outcome)))
}

fn table(outcome: &GateOutcome) -> Markup {
    let held = outcome.rows.iter().filter(|row| row.verdict == Verdict::Held);
    let rows: Vec<&GateRow> = outcome.failed().chain(held).collect();
    html! {
        div class="card flush" {
            (data_table("", "numbers", &["CPU", "<Limit", "Value", "<Verdict", "<Note"], &html! {
                @for row in rows.iter().take(ROWS_MAX) {
                    tr {
                        th scope="row" { (row.cpu.map_or_else(|| "all".to_owned(), |cpu| cpu.to_string())) }
                        td class="left" { (clean(&row.key)) " " (micro(&clean(&row.limit_text))) }
                        td { (micro(&clean(&row.value_text))) }
                        td class={ "left strong" @if row.verdict != Verdict::Held { " long" } } { (row.verdict.word()) }
                        td class="left" { (micro(&clean(&row.note))) }
                    }
                }
            }))
            @if rows.len() > ROWS_MAX {
                p class="note" { (rows.len() - ROWS_MAX) " more rows are in the result document." }
            }
        }
    }
}
