//! Environment of the run: kernel, processors, power, memory, virtualisation, network interfaces.

use crate::fields::booted_by;
use crate::fields::{fact, yes_no};
use crate::hardware;
use crate::terminal::devices::{
    channels_text, coalescing_text, missing_or, none_found, rings_text, timestamping_text,
};
use crate::terminal::kernel::frequency_lines;
use crate::terminal::tree::{node_number, speed};
use lowlat_host::{
    HostSnapshot,
    snapshot::{HugePages, Nic},
};
use lowlat_text::page::{data_table, facts, micro, section as page_section};
use lowlat_text::units::{clean, count, duration, size};
use maud::{Markup, html};
use std::collections::BTreeSet;

const NIC_HEADS: [&str; 8] =
    ["Name", "Link", "Driver and firmware", "Node and bus", "Queues", "Rings", "Coalescing", "Time stamps"];

/// Builds cards of facts and the table of interfaces. `stolen_ns` is the time that the hypervisor took during the run, if it
/// is known.
pub fn section(host: &HostSnapshot, stolen_ns: Option<u64>) -> Markup {
    let lead = html! { "The host state behind the figures on this page." };
    // The command line has a card of its own.
    let is_shown = |label: &str| !matches!(label, "Machine" | "Command line");
    let kernel: Vec<_> =
        hardware::kernel_facts(host).into_iter().filter(|(label, _)| is_shown(label)).collect();
    let command_line = host.kernel.command_line.as_ref().map(|line| line.raw().to_owned());
    let body = html! {
        div class="card" {
            h3 { "Kernel command line" }
            @if let Some(line) = command_line.known() { pre class="wrap" { (clean(line)) } }
            @else { p class="empty" { (command_line.to_string()) } }
        }
        div class="cards three" {
            (card("Kernel", kernel))
            (card("Processor and clock", processor(host)))
            (card("Power", power(host)))
            (card("Memory", memory(host)))
            (card("System and firmware", system(host)))
            (card("Virtualisation", virtualization(host, stolen_ns)))
        }
        (nics(host))
    };
    page_section("environment", "Environment", &lead, &body)
}

fn card(title: &str, rows: Vec<(&str, String)>) -> Markup {
    let is_empty = rows.iter().all(|(_, text)| text.is_empty());
    html! {
        div class="card" {
            h3 { (title) }
            @if is_empty { p class="empty" { "Unknown." } } @else { (facts(rows)) }
        }
    }
}

fn processor(host: &HostSnapshot) -> Vec<(&'static str, String)> {
    let cpu = &host.cpu;
    let is_invariant = |flags: &BTreeSet<String>| {
        ["nonstop_tsc", "constant_tsc"].into_iter().all(|flag| flags.contains(flag))
    };
    vec![
        ("Model", fact(&cpu.model_name)),
        ("Microcode", fact(&cpu.microcode)),
        ("SMT", fact(&cpu.smt_control)),
        ("Clock source", fact(&cpu.clocksource)),
        ("Invariant TSC", fact(&yes_no(&cpu.flags.as_ref().map(is_invariant)))),
    ]
}

fn power(host: &HostSnapshot) -> Vec<(&'static str, String)> {
    let cpu = &host.cpu;
    let mut rows = Vec::new();
    if cpu.frequency.is_empty() && cpu.model_name.is_known() {
        rows.push(("Frequency", "no scaling driver".to_owned()));
    }
    for (text, cpus) in frequency_lines(&cpu.frequency).into_iter().take(8) {
        rows.push(("Frequency", format!("{cpus:#}: {text}")));
    }
    rows.push(("Boost", fact(&yes_no(&cpu.boost))));
    rows.push(("Idle driver", fact(&cpu.idle_driver)));
    let states: Vec<String> = cpu
        .idle_states
        .iter()
        .filter(|state| !state.cpus_enabled.is_empty())
        .map(|state| match state.exit_latency_us.known() {
            Some(us) => format!("{} ({us} µs)", state.name),
            None => state.name.clone(),
        })
        .collect();
    rows.push(("Idle states on", states.join(", ")));
    rows
}

fn memory(host: &HostSnapshot) -> Vec<(&'static str, String)> {
    let memory = &host.memory;
    let pool = |pool: &HugePages| {
        let place = pool.node.map_or_else(String::new, |node| format!(" on node {node}"));
        format!("{} of {}{place}", pool.total, size(pool.size_bytes))
    };
    let pools: Vec<String> = memory
        .huge_pages
        .iter()
        .filter(|p| p.total.known().is_none_or(|total| *total > 0))
        .map(pool)
        .collect();
    let none = if memory.huge_pages.is_empty() { "" } else { "none reserved" };
    let modules = memory.modules.as_ref().map(|modules| {
        let first = modules.first().map_or_else(String::new, |module| {
            let runs = module.configured_mts.map_or_else(String::new, |mts| format!(", runs at {mts} MT/s"));
            let more = [hardware::width_text(module), hardware::voltage_text(module)];
            let more: String =
                more.iter().filter(|text| !text.is_empty()).map(|text| format!(", {text}")).collect();
            format!(", first: {} {}{runs}{more}", size(module.size_bytes), module.kind)
        });
        format!("{}{first}", modules.len())
    });
    let swaps = memory.swaps.as_ref().map(|swaps| {
        let used = swaps.iter().fold(0u64, |sum, swap| sum.saturating_add(swap.used_bytes));
        if swaps.is_empty() { "none".to_owned() } else { format!("{} in use", size(used)) }
    });
    vec![
        ("Total", fact(&memory.total_bytes.as_ref().map(|bytes| size(*bytes)))),
        ("Modules", fact(&modules)),
        ("Most supported", fact(&memory.capacity_bytes_max.as_ref().map(|bytes| size(*bytes)))),
        ("Huge pages", if pools.is_empty() { none.to_owned() } else { pools.join(", ") }),
        ("Transparent", fact(&memory.thp_enabled)),
        ("Swap", fact(&swaps)),
    ]
}

fn system(host: &HostSnapshot) -> Vec<(&'static str, String)> {
    let firmware = &host.firmware;
    vec![
        (
            "System",
            format!("{} {}", firmware.system_vendor.text(), firmware.system_product.text()).trim().to_owned(),
        ),
        ("BIOS", hardware::bios_text(firmware)),
        ("Controller firmware", fact(&firmware.controller_revision)),
        ("Booted by", fact(&booted_by(host))),
        ("Secure Boot", fact(&yes_no(&firmware.secure_boot))),
        ("IOMMUs in use", fact(&firmware.iommu_count)),
    ]
}

fn virtualization(host: &HostSnapshot, stolen_ns: Option<u64>) -> Vec<(&'static str, String)> {
    let virtualization = &host.virtualization;
    let in_run = stolen_ns.map_or_else(String::new, |ns| format!("{} over all CPUs", micro(&duration(ns))));
    let ticks = virtualization.steal_ticks.values().fold(0u64, |sum, ticks| sum.saturating_add(*ticks));
    vec![
        ("Virtual machine", fact(&yes_no(&virtualization.is_virtual))),
        ("Hypervisor", fact(&virtualization.hypervisor)),
        ("Stolen during the run", in_run),
        (
            "Stolen since boot",
            if ticks > 0 { format!("{} clock ticks", count(ticks)) } else { String::new() },
        ),
    ]
}

fn nics(host: &HostSnapshot) -> Markup {
    let physical: Vec<&Nic> = host.nics.iter().filter(|nic| nic.is_physical).collect();
    html! {
        div class="card flush" {
            div class="table-head" { h3 { "Network interfaces" } }
            @if physical.is_empty() {
                p class="empty" { (none_found(host, "/sys/class/net", "No physical interface was found.")) }
            } @else {
                (data_table("Network interfaces", "nics", &NIC_HEADS, &html! { @for nic in physical { (nic_row(nic)) } }))
            }
        }
    }
}

fn nic_row(nic: &Nic) -> Markup {
    let dash = |text: String| if text.is_empty() { "–".to_owned() } else { clean(&text) };
    let place =
        node_number(&nic.node).map_or_else(|| "node unknown".to_owned(), |node| format!("node {node}"));
    html! {
        tr {
            th scope="row" translate="no" { (clean(&nic.name)) span class="small" { (clean(nic.oui_vendor.text())) } }
            td { (clean(&fact(&nic.operstate))) span class="small" { (speed(nic).unwrap_or_default()) } }
            td translate="no" { (dash(format!("{} {}", nic.driver.text(), nic.driver_version.text()).trim().to_owned())) span class="small" { (clean(nic.firmware.text())) } }
            td { (place) span class="small" { (clean(nic.bus.text())) } }
            td { (dash(missing_or(&nic.channels, channels_text))) }
            td { (dash(missing_or(&nic.rings, rings_text))) }
            td { (dash(micro(&missing_or(&nic.coalescing, coalescing_text)))) }
            td { (dash(missing_or(&nic.timestamping, timestamping_text))) }
        }
    }
}
