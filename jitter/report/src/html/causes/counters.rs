//! Kernel counters of what ran on each CPU, for runs in which no single interruption could be attributed.

use crate::causes::words::cpu_list;
use crate::causes::{CounterSum, counters};
use crate::figures::Jitter;
use crate::html::causes::cause;
use lowlat_jitter::JitterCauses;
use lowlat_text::page::data_table;
use lowlat_text::units::{count, rate};
use maud::{Markup, html};

/// Highest number of rows in the table.
const ROWS_MAX: usize = 40;

/// Builds the card with the counters over all CPUs.
pub fn card(jitter: &Jitter<'_>, causes: &JitterCauses) -> Markup {
    let all = counters(causes);
    let core_seconds = jitter.study.all.core_seconds;
    html! {
        div class="card flush" {
            div class="table-head" {
                h3 { "Activity on the measured CPUs" }
                p { "Counts only: individual interruptions have no cause. A counter may also have increased in gaps below the threshold." }
            }
            @if all.is_empty() {
                p class="empty" { "No counter increased during the run." }
            } @else {
                (data_table("Kernel counters", "numbers", &["<Counter", "<CPUs", "Count", "Per second and CPU", "Most, on CPU"], &html! {
                    @for of in all.iter().take(ROWS_MAX) { (row(of, core_seconds)) }
                }))
                @if all.len() > ROWS_MAX { p class="empty" { (count((all.len() - ROWS_MAX) as u64)) " counters with smaller counts are in the result document." } }
            }
        }
    }
}

fn row(of: &CounterSum, core_seconds: f64) -> Markup {
    html! {
        tr {
            th scope="row" class="left" { (cause(&of.cause)) }
            td class="left" title=(cpu_list(&of.cpus, 400)) { (cpu_list(&of.cpus, 40)) }
            td { (count(of.count)) }
            td { @if core_seconds > 0.0 { (rate(of.count as f64 / core_seconds)) } @else { "–" } }
            td { (count(of.most.1)) ", " (of.most.0) }
        }
    }
}
