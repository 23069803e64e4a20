//! Which CPUs are chosen for housekeeping and for isolation, and why.

use crate::shared::page::section as page_section;
use crate::shared::units::{clean, plural};
use lowlat_host::{CpuSet, Reading};
use lowlat_result::ResultDocument;
use maud::{Markup, html};

/// The choice, what the kernel does now, and the steps that led to the choice.
pub fn section(document: &ResultDocument) -> Markup {
    let allocation = &document.allocation;
    let topology = &document.snapshot.topology;
    let near = &allocation.isolated_near_nics;
    let lead = html! { "Which CPUs the kernel, services and interrupts keep, and which are left to trading threads." };
    let body = html! {
        div class="cards two" {
            (side("hk", "Housekeeping", &allocation.housekeeping, "kernel threads, services, interrupts"))
            (side("chosen", "Chosen for isolation", &allocation.isolated, "trading threads only"))
        }
        (crate::shared::page::facts([
            ("Isolated by the kernel now", in_force(&topology.isolated)),
            ("Without tick now (nohz_full)", in_force(&topology.nohz_full)),
            ("Chosen for isolation, near the trading NICs", if near.is_empty() { "none".to_owned() } else { near.to_string() }),
            ("Offline", if topology.offline.is_empty() { "none".to_owned() } else { topology.offline.to_string() }),
        ]))
        @if !allocation.steps.is_empty() {
            h3 { "How it was chosen" }
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
        None if reading.is_absent() => "the kernel does not tell".to_owned(),
        _ => reading.to_string(),
    }
}
