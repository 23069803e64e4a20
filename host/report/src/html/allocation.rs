//! CPUs chosen for housekeeping and for isolation, with the reasons.

use lowlat_host::{Allocation, CpuSet, Reading, Topology};
use lowlat_text::page::section as page_section;
use lowlat_text::units::{clean, plural};
use maud::{Markup, html};

/// Builds the choice, the kernel's current state, and the steps of the choice.
pub fn section(allocation: &Allocation, topology: &Topology) -> Markup {
    let near = &allocation.isolated_near_nics;
    let lead =
        html! { "The CPUs for the kernel, services and interrupts, and the CPUs for trading threads." };
    let body = html! {
        div class="cards two" {
            (side("hk", "Housekeeping", &allocation.housekeeping, "kernel threads, services, interrupts"))
            (side("chosen", "Chosen for isolation", &allocation.isolated, "trading threads only"))
        }
        (lowlat_text::page::facts([
            ("Currently isolated by the kernel", in_force(&topology.isolated)),
            ("Currently tickless (nohz_full)", in_force(&topology.nohz_full)),
            ("Chosen for isolation, near the trading NICs", if near.is_empty() { "none".to_owned() } else { near.to_string() }),
            ("Offline", if topology.offline.is_empty() { "none".to_owned() } else { topology.offline.to_string() }),
        ]))
        @if !allocation.steps.is_empty() {
            h3 { "How the CPUs were chosen" }
            ol class="steps" { @for step in &allocation.steps { li { (clean(step)) } } }
        }
        @for warning in &allocation.warnings { p class="note" { (clean(warning)) } }
    };
    page_section("allocation", "Allocation", &lead, &body)
}

fn side(class: &str, title: &str, cpus: &CpuSet, what: &str) -> Markup {
    html! {
        div class={ "card side side-" (class) } {
            h3 { span class={ "swatch p-" (class) } {} (title) span class="count" { (plural(cpus.len(), "CPU")) } }
            p class="cpus" { @if cpus.is_empty() { "none" } @else { code { (cpus.to_string()) } } }
            p class="small" { (what) }
        }
    }
}

fn in_force(reading: &Reading<CpuSet>) -> String {
    match reading.known() {
        Some(cpus) if cpus.is_empty() => "none".to_owned(),
        None if reading.is_absent() => "not exposed by the kernel".to_owned(),
        _ => reading.to_string(),
    }
}
