//! Topology picture, its legend, and the same as text.

use crate::cpu_parts::CpuParts;
use crate::hardware;
use crate::html::picture;
use crate::shape;
use crate::terminal::tree;
use lowlat_host::{Allocation, HostSnapshot};
use lowlat_text::page::{facts, section as page_section};
use lowlat_text::units::clean;
use maud::{Markup, html};

/// Highest number of CPUs in a picture; a larger host is shown as text only.
const CPUS_MAX: usize = 4_096;

/// Builds the picture and the text.
pub fn section(host: &HostSnapshot, allocation: &Allocation) -> Markup {
    let topology = &host.topology;
    let sums = tree::counts_text(host);
    let lead =
        html! { @if sums.is_empty() { "Nothing is known about the processors." } @else { (sums) "." } };
    let lines = tree::lines(host, Some(allocation));
    let caches = hardware::cache_lines(topology);
    let distances = hardware::distance_lines(topology);
    let cpu_count = topology.online.len() + topology.offline.len();
    let body = html! {
        @if (1..=CPUS_MAX).contains(&cpu_count) {
            figure class="card picture" {
                (legend(host, allocation))
                div class="scroll" tabindex="0" role="group" aria-label="Picture of the host" { (picture::draw(host, allocation)) }
            }
        } @else if cpu_count > CPUS_MAX {
            p class="note" { "A host with more than " (CPUS_MAX) " CPUs is shown as text only." }
        }
        div class="cards two" {
            @for (title, lines) in [("Caches", &caches), ("Distances between nodes", &distances)] {
                @if !lines.is_empty() {
                    div class="card" {
                        h3 { (title) }
                        (facts(lines.iter().map(|(label, text)| (label.as_str(), text.clone()))))
                    }
                }
            }
        }
        @if !lines.is_empty() {
            details class="as-text" open[cpu_count > CPUS_MAX] {
                summary { "Show as text" }
                pre { @for line in &lines { (format!("{:1$}", "", line.depth * 2)) (clean(&line.text)) "\n" } }
            }
        }
    };
    page_section("topology", "Topology", &lead, &body)
}

/// Explains the colours of CPUs, with their counts.
fn legend(host: &HostSnapshot, allocation: &Allocation) -> Markup {
    let topology = &host.topology;
    let parts = CpuParts::of(host, allocation).each(&topology.online.union(&topology.offline));
    let own_cache = shape::own_cache(topology);
    html! {
        ul class="legend" {
            @for (part, cpus) in &parts {
                li { span class={ "swatch p-" (part.class()) } {} (part.phrase()) " " b { (cpus.len()) } }
            }
            @if let Some(cache) = own_cache { li class="muted" { "each core has its own " (cache) } }
            li class="muted hint" { "hover over a CPU for its place" }
        }
    }
}
