//! Jitter: the charts and the figures per CPU.

mod distribution;
mod heat;
pub mod per_cpu;

use super::{micro, section as page_section};
use crate::causes;
use crate::figures::{CpuFigures, CpuParts, Jitter};
use crate::units::{duration, plural, span};
use lowlat_result::ResultDocument;
use maud::{Markup, html};

/// Everything that was measured, or that nothing was.
pub fn section(document: &ResultDocument, jitter: Option<&Jitter<'_>>) -> Markup {
    let Some(jitter) = jitter.filter(|jitter| !jitter.record.cpus.is_empty()) else {
        let lead = html! { "Time taken from user threads." };
        let body = html! { p class="empty" { "Jitter was not measured in this run." } };
        return page_section("jitter", "Jitter", &lead, &body);
    };
    let record = jitter.record;
    let mut all = jitter.cpus(&CpuParts::of(document));
    all.sort_by_key(|cpu| (cpu.part, cpu.record.cpu));
    let threshold = micro(&duration(record.threshold_ns));
    let lead = html! {
        "Time taken from a user thread that never sleeps, in gaps of " (threshold) " or longer, on "
        (plural(all.len(), "CPU")) " for " (micro(&span(record.ran_ns()))) "."
        @if let Some(policy) = &record.real_time { " The samplers ran as " (crate::units::clean(policy)) "." }
    };
    let body = html! {
        figure class="card" {
            figcaption { h3 { "How often, how long" } p { (distribution::caption(all.len())) } }
            (distribution::draw(record, &all))
        }
        figure class="card" {
            figcaption { h3 { "When" } p { (heat::caption(record)) } }
            (heat::draw(record, &all))
        }
        (per_cpu::table(jitter, &all))
        @if causes::traced(record.causes.as_ref()).is_none() { (per_cpu::worst(jitter, &document.allocation)) }
    };
    page_section("jitter", "Jitter", &lead, &body)
}

/// At most so many CPUs, in their own order, and how many are left out: those whose longest interruptions are
/// shortest.
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
