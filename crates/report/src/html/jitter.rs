//! Jitter: figures per CPU, the charts, the longest interruptions.

use super::{distribution, heat, micro, section as page_section};
use crate::figures::{self, CpuFigures, CpuPart, ROUGH_BELOW};
use crate::units::{clean, count, duration, duration_fine, percent, plural, rate, span};
use lowlat_model::CpuId;
use lowlat_model::jitter::{Interruption, JitterRecord};
use lowlat_model::result::ResultDocument;
use maud::{Markup, html};

/// Interruptions listed for each side.
const WORST_MAX: usize = 10;
/// CPUs up to which the table stands in full; a longer one scrolls on screen.
const ROWS_FREE: usize = 32;

/// Everything that was measured, or that nothing was.
pub fn section(document: &ResultDocument) -> Markup {
    let Some(jitter) = document.jitter.as_ref().filter(|jitter| !jitter.cpus.is_empty()) else {
        let lead = html! { "Time taken from user threads." };
        return page_section(
            "jitter",
            "Jitter",
            &lead,
            &html! { p class="empty" { "Jitter was not measured in this run." } },
        );
    };
    let mut all = figures::of_record(jitter, &document.allocation);
    all.sort_by_key(|cpu| (cpu.part, cpu.record.cpu));
    let threshold = micro(&duration(jitter.threshold_ns));
    let lead = html! {
        "Time taken from a user thread that never sleeps, in gaps of " (threshold) " or longer, on "
        (plural(all.len(), "CPU")) " for " (span(jitter.duration_ns)) "."
    };
    let body = html! {
        figure class="card" {
            figcaption { h3 { "How often, how long" } p { "Interruptions of at least this length, one line per CPU. Further left and lower is quieter." } }
            (distribution::draw(jitter, &all))
        }
        figure class="card" {
            figcaption { h3 { "When" } p { (heat::caption(jitter)) } }
            (heat::draw(jitter, &all))
        }
        (table(jitter, &all))
        (worst(&all))
    };
    page_section("jitter", "Jitter", &lead, &body)
}

fn table(jitter: &JitterRecord, all: &[CpuFigures<'_>]) -> Markup {
    html! {
        div class="card flush" {
            div class="table-head" {
                h3 { "Per CPU" }
                p {
                    "Percentiles are of the lengths of interruptions, and printed only where the count carries them. "
                    "Rates of fewer than " (ROUGH_BELOW) " interruptions have their 95 % interval beside them."
                }
            }
            div class={ "scroll" @if all.len() > ROWS_FREE { " tall" } } tabindex="0" role="region" aria-label="Jitter per CPU" {
                table class="numbers" {
                    thead {
                        tr {
                            th scope="col" { "CPU" } th scope="col" class="left" { "Part" }
                            th scope="col" { "Count" } th scope="col" { "Per second" } th scope="col" { "Time lost" }
                            th scope="col" { "p50" } th scope="col" { "p99" } th scope="col" { "p99.9" } th scope="col" { "Max" }
                            th scope="col" { "Loop floor" } th scope="col" { "Loop period" } th scope="col" { "Steal" }
                        }
                    }
                    tbody { @for cpu in all { (row(jitter, cpu)) } }
                }
            }
        }
        @for cpu in all.iter().filter(|cpu| cpu.lengths.is_err() && cpu.record.interruption_count > 0) {
            p class="note" { "CPU " (cpu.record.cpu) ": " (cpu.lengths.as_ref().err().map_or("", String::as_str)) "." }
        }
    }
}

fn row(jitter: &JitterRecord, cpu: &CpuFigures<'_>) -> Markup {
    let record = cpu.record;
    let length = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), |ns| micro(&duration(ns)));
    let is_long = record.interruption_ns_max >= jitter.threshold_ns.saturating_mul(1_000)
        && cpu.part == CpuPart::Isolated;
    html! {
        tr class={ "p-row-" (cpu.part.class()) } {
            th scope="row" { (record.cpu) @if record.has_moved { " " abbr title="The thread was seen on another CPU: its figures are mixed." { "moved" } } }
            td class="left" { span class={ "swatch p-" (cpu.part.class()) } {} (cpu.part.word()) }
            td { (count(record.interruption_count)) }
            td { (rate_cell(cpu)) }
            td { (cpu.lost_percent.map_or_else(|| "–".to_owned(), percent)) }
            td { (length(cpu.percentile(0.5))) }
            td { (length(cpu.percentile(0.99))) }
            td { (length(cpu.percentile(0.999))) }
            td class={ "strong" @if is_long { " long" } } { (length(cpu.longest())) }
            td { (micro(&duration_fine(record.loop_floor_ns))) }
            td { (micro(&duration_fine(record.loop_period_ns))) }
            td { @match record.steal_ns.known() { Some(ns) => (micro(&duration(*ns))), None => "–" } }
        }
    }
}

fn rate_cell(cpu: &CpuFigures<'_>) -> Markup {
    html! {
        @match cpu.rate {
            None => "–",
            Some(of) => {
                @if cpu.record.interruption_count < ROUGH_BELOW {
                    span class="interval" { (rate(of.per_s_low)) " to " (rate(of.per_s_high)) }
                }
                (rate(of.per_s))
            }
        }
    }
}

/// The longest interruptions, those of CPUs meant for trading apart from the others.
fn worst(all: &[CpuFigures<'_>]) -> Markup {
    let of = |is_isolated: bool| {
        let cpus = all.iter().filter(|cpu| (cpu.part == CpuPart::Isolated) == is_isolated);
        figures::worst_of(cpus.map(|cpu| cpu.record), WORST_MAX)
    };
    let (isolated, others) = (of(true), of(false));
    let has_isolated = all.iter().any(|cpu| cpu.part == CpuPart::Isolated);
    html! {
        div class="cards two" {
            @if has_isolated { (worst_card("Longest on CPUs chosen for isolation", &isolated)) }
            @if all.iter().any(|cpu| cpu.part != CpuPart::Isolated) {
                (worst_card(if has_isolated { "Longest on the other CPUs" } else { "Longest interruptions" }, &others))
            }
        }
    }
}

fn worst_card(title: &str, worst: &[(CpuId, Interruption)]) -> Markup {
    html! {
        div class="card flush" {
            div class="table-head" { h3 { (title) } }
            @if worst.is_empty() {
                p class="empty" { "None was recorded." }
            } @else {
                table class="numbers" {
                    thead { tr { th scope="col" { "Length" } th scope="col" { "CPU" } th scope="col" { "At, seconds into the run" } } }
                    tbody {
                        @for (cpu, hit) in worst {
                            tr {
                                td class="strong" { (micro(&duration(hit.length_ns))) }
                                td { (cpu) }
                                td { (clean(&seconds(hit.at_ns))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// "31.402 118 s" without rounding below a microsecond's worth: six decimals.
fn seconds(ns: u64) -> String {
    format!("{}.{:06}", count(ns / 1_000_000_000), ns % 1_000_000_000 / 1_000)
}
