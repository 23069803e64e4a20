//! Table of every CPU, and the longest interruptions of runs without causes.

use crate::causes::ranked::{Ranked, ranked};
use crate::causes::words::moment;
use crate::figures::{CpuFigures, Jitter, ROUGH_BELOW};
use lowlat_host::{Allocation, statistics::RateInterval};
use lowlat_text::page::{data_table, heads, micro, table_below};
use lowlat_text::units::{count, duration, duration_fine, percent, rate};
use maud::{Markup, html};

/// Highest number of interruptions listed for each side.
const WORST_MAX: usize = 10;
/// Number of CPUs up to which the table is shown in full; a longer one scrolls on screen.
const ROWS_FREE: usize = 32;
/// Highest number of rows; CPUs with the longest interruptions are kept.
const ROWS_MAX: usize = 1_024;
/// Shares of time with a column.
const TIME_QUANTILES: [(f64, &str); 3] = [(0.999, "p99.9"), (0.999_9, "p99.99"), (0.999_99, "p99.999")];

pub fn table(jitter: &Jitter<'_>, all: &[CpuFigures<'_>]) -> Markup {
    let (shown, left) = crate::html::longest_of(all, ROWS_MAX);
    let has_time = all.iter().any(|cpu| !cpu.study.time_percentiles.is_empty());
    let heads = html! {
        (heads(&["CPU", "<Part", "Count", "Per second", "Time lost", "p50", "p99", "p99.9", "Max"]))
        @if has_time { @for (_, name) in TIME_QUANTILES { th scope="col" class="of-time" { (name) br; "of time" } } }
        (heads(&["Loop", "Steal"]))
    };
    let class = if shown.len() > ROWS_FREE { "numbers dense tall" } else { "numbers dense" };
    html! {
        div class="card flush" {
            div class="table-head" {
                h3 { "Per CPU" }
                p {
                    "Percentiles of lengths are shown only if there are enough interruptions. "
                    @if has_time {
                        "Percentiles of time show the longest wait of a thread that needs the CPU at a random moment; "
                        "0 means no interruption at that share of moments. "
                    }
                    "Rates based on fewer than " (ROUGH_BELOW) " interruptions have a 95 % interval beside them."
                    @if left > 0 { " " (count(left as u64)) " CPUs with shorter interruptions are in the result document only." }
                }
            }
            (table_below("Jitter per CPU", class, &heads, &html! { @for cpu in &shown { (row(jitter, cpu, has_time)) } }))
        }
        @for cpu in shown.iter().filter(|cpu| cpu.lengths.is_err() && cpu.record.interruption_count > 0) {
            p class="note" { "CPU " (cpu.record.cpu) ": " (cpu.lengths.as_ref().err().map_or("", String::as_str)) "." }
        }
    }
}

fn row(jitter: &Jitter<'_>, cpu: &CpuFigures<'_>, has_time: bool) -> Markup {
    let record = cpu.record;
    let length = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), |ns| micro(&duration(ns)));
    let wait = |ns: Option<u64>| if ns == Some(0) { "0".to_owned() } else { length(ns) };
    let is_long = record.interruption_ns_max >= jitter.record.threshold_ns.saturating_mul(1_000)
        && cpu.part.is_for_trading();
    let floor = format!("Shortest loop iteration: {}", micro(&duration_fine(record.loop_floor_ns)));
    html! {
        tr class={ "p-row-" (cpu.part.class()) } {
            th scope="row" { (record.cpu) @if record.has_moved { " " abbr title="The thread moved to another CPU; its figures end before the move." { "moved" } } }
            td class="left" { span class={ "swatch p-" (cpu.part.class()) } {} (cpu.part.phrase()) }
            td { (count(record.interruption_count)) }
            td { (rate_cell(cpu.study.rate, record.interruption_count)) }
            td { (cpu.lost_percent().map_or_else(|| "–".to_owned(), percent)) }
            td { (length(cpu.percentile(0.5))) }
            td { (length(cpu.percentile(0.99))) }
            td { (length(cpu.percentile(0.999))) }
            td class={ "strong" @if is_long { " long" } } { (length(cpu.study.length_ns_max)) }
            @if has_time {
                @for (quantile, _) in TIME_QUANTILES { td class="of-time" { (wait(cpu.time_percentile(quantile))) } }
            }
            td title=(floor) { (micro(&duration_fine(record.loop_period_ns))) }
            td { @match record.steal_ns.known() { Some(ns) => (micro(&duration(*ns))), None => "–" } }
        }
    }
}

/// Formats a rate; a rate based on few events has its interval before it.
pub fn rate_cell(of: Option<RateInterval>, events: u64) -> Markup {
    html! {
        @match of {
            None => "–",
            Some(of) => span class="rate" {
                @if events < ROUGH_BELOW {
                    span class="interval" { (rate(of.per_s_low)) " to " (rate(of.per_s_high)) }
                }
                span { (rate(of.per_s)) }
            }
        }
    }
}

/// Builds the longest interruptions, with those of CPUs for trading in a separate list.
pub fn worst(jitter: &Jitter<'_>, allocation: &Allocation) -> Markup {
    let sides = sides(jitter, allocation, WORST_MAX);
    html! {
        div class="cards two" { @for (title, worst) in &sides { (worst_card(title, worst)) } }
    }
}

/// The longest interruptions of each side that was measured, with a title.
pub fn sides<'a>(
    jitter: &Jitter<'a>,
    allocation: &Allocation,
    count_max: usize,
) -> Vec<(&'static str, Vec<Ranked<'a>>)> {
    let is_isolated = |cpu| allocation.isolated.contains(cpu);
    let has = |wanted: bool| jitter.record.cpus.iter().any(|cpu| is_isolated(cpu.cpu) == wanted);
    let of = |wanted: bool| ranked(jitter.record, |cpu| is_isolated(cpu) == wanted, count_max);
    let chosen = has(true).then(|| ("Longest on CPUs chosen for isolation", of(true)));
    let title = if has(true) { "Longest on the other CPUs" } else { "Longest interruptions" };
    let others = (has(false) || !has(true)).then(|| (title, of(false)));
    chosen.into_iter().chain(others).collect()
}

fn worst_card(title: &str, worst: &[Ranked<'_>]) -> Markup {
    html! {
        div class="card flush" {
            div class="table-head" { h3 { (title) } }
            @if worst.is_empty() {
                p class="empty" { "None was recorded." }
            } @else {
                (data_table("", "numbers", &["Length", "CPU", "At, into the run"], &html! {
                    @for of in worst {
                        tr {
                            td class="strong" { (micro(&duration(of.interruption.length_ns))) }
                            td { (of.cpu) }
                            td { (micro(&moment(of.interruption.at_ns))) }
                        }
                    }
                }))
            }
        }
    }
}
