//! Page sections of jitter: the charts and the figures per CPU.

pub mod causes;
mod distribution;
pub mod head;
mod heat;
mod per_cpu;

use crate::causes::{traced, words};
use crate::figures::JitterRun;
use crate::figures::{CpuFigures, Jitter};
use lowlat_host_report::cpu_parts::CpuParts;
use lowlat_jitter::JitterRecord;
use lowlat_text::page::{Section, micro, section as page_section};
use lowlat_text::units::{clean, count, duration, plural, span};
use maud::{Markup, html};

/// Style sheet of these sections and of the comparison.
pub const STYLE: &str = include_str!("jitter.css");

/// Returns the sections of a jitter run: its gate, its figures, its causes.
pub fn sections(run: &JitterRun<'_>, jitter: Option<&Jitter<'_>>) -> Vec<Section> {
    let gate = head::section(run).map(|gate| Section::new("gate", "Gate", gate));
    let mut sections: Vec<Section> = gate.into_iter().collect();
    sections.push(Section::new("jitter", "Jitter", section(run, jitter)).with_style(STYLE));
    if causes::is_shown(jitter) {
        sections.push(Section::new("causes", "Causes", causes::section(run, jitter)));
    }
    sections
}

/// Describes how the run was measured.
pub fn parameters(record: &JitterRecord) -> Markup {
    html! {
        "Jitter: " (span(record.ran_ns())) ", " (micro(&words::what(record))) ", counter " code { (clean(&record.counter)) } " at " (count(record.counter_hz / 1_000_000))
        " MHz (" (clean(&record.counter_hz_source)) ")."
    }
}

/// Builds the figures, or a note that jitter was not measured.
fn section(run: &JitterRun<'_>, jitter: Option<&Jitter<'_>>) -> Markup {
    let Some(jitter) = jitter.filter(|jitter| !jitter.record.cpus.is_empty()) else {
        let lead = html! { "Time taken from user threads." };
        let body = html! { p class="empty" { "Jitter was not measured in this run." } };
        return page_section("jitter", "Jitter", &lead, &body);
    };
    let record = jitter.record;
    let mut all = jitter.cpus(&CpuParts::of(run.context.host, run.context.allocation));
    all.sort_by_key(|cpu| (cpu.part, cpu.record.cpu));
    let threshold = micro(&duration(record.threshold_ns));
    let lead = html! {
        @match record.wake_every_ns {
            None => { "Time taken from a user thread that never sleeps, in gaps of " (threshold) " or more, on " }
            Some(every_ns) => { "How late a sleeping thread runs whose timer expires every " (micro(&duration(every_ns))) ", on " }
        }
        (plural(all.len(), "CPU")) " for " (micro(&span(record.ran_ns()))) "."
        @if let Some(policy) = &record.real_time { " The samplers ran as " (clean(policy)) "." }
    };
    let body = html! {
        figure tabindex="0" class="card" {
            figcaption { h3 { "Number and length" } p { (distribution::caption(all.len())) } }
            (distribution::draw(record, &all))
        }
        figure tabindex="0" class="card" {
            figcaption { h3 { "When" } p { (heat::caption(record)) } }
            (heat::draw(record, &all))
        }
        (per_cpu::table(jitter, &all))
        @if let Some(sentence) = words::beside_the_guide(&jitter.study) { p class="note" { (micro(&sentence)) } }
        @if traced(record.causes.as_ref()).is_none() { (per_cpu::worst(jitter, run.context.allocation)) }
    };
    page_section("jitter", "Jitter", &lead, &body)
}

/// Returns a limited number of CPUs in order, and the number left out: those with the lowest maxima.
fn longest_of<'a, 'b>(all: &'a [CpuFigures<'b>], count_max: usize) -> (Vec<&'a CpuFigures<'b>>, usize) {
    if all.len() <= count_max {
        return (all.iter().collect(), 0);
    }
    let mut places: Vec<usize> = (0..all.len()).collect();
    places.sort_by_key(|at| std::cmp::Reverse(all.get(*at).map_or(0, |cpu| cpu.record.interruption_ns_max)));
    places.truncate(count_max);
    places.sort_unstable();
    let shown: Vec<&CpuFigures<'_>> = places.into_iter().filter_map(|at| all.get(at)).collect();
    let left = all.len() - shown.len();
    (shown, left)
}
