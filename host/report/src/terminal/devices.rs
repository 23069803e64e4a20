//! Text of the interrupts, network interfaces and disks of a host.

use crate::fields::{Page, or_unknown};
use crate::terminal::tree;
use lowlat_host::{
    Allocation, Count, HostSnapshot, Reading,
    snapshot::{Channels, Coalescing, Counter, Irq, Nic, Rings, Timestamping},
};
use lowlat_text::text::{BOLD, columns, joined, paint};
use lowlat_text::units::{clean, count, plural, size};

/// Highest number of interrupts listed.
const IRQS_MAX: usize = 8;
/// Highest number of disks listed.
const DISKS_MAX: usize = 32;

/// Returns the kernel's short name, or its description on aarch64, where the name is a number (IPI0).
fn vector_name(vector: &Counter) -> &str {
    let described = vector.description.trim_end_matches(" interrupts");
    if vector.name.starts_with("IPI") && !described.is_empty() { described } else { &vector.name }
}

/// Adds a summary of interrupts: their number, those that reach isolated CPUs, the busiest.
pub fn add_interrupts(page: &mut Page, snapshot: &HostSnapshot, allocation: Option<&Allocation>) {
    let interrupts = &snapshot.interrupts;
    page.heading("Interrupts");
    let managed: Count = interrupts.irqs.iter().map(|irq| irq.is_managed.clone()).collect();
    let managed =
        if managed.holds > 0 { format!(", {managed} managed by the kernel") } else { String::new() };
    let number = interrupts.irqs.len().to_string();
    let in_use = || snapshot.listed("/proc/interrupts", format!("at least {number}"));
    let numbered = snapshot.listed("/proc/irq", number.clone()).or(in_use);
    page.field("Numbered", &or_unknown(&numbered.as_ref().map(|number| format!("{number}{managed}"))));
    page.fact("Default affinity", &interrupts.default_affinity.as_ref().map(|cpus| format!("{cpus:#}")));
    let isolated = allocation.map(|a| &a.isolated).filter(|isolated| !isolated.is_empty());
    if let Some(isolated) = isolated.filter(|_| numbered.is_known()) {
        let reaches = |irq: &Irq| irq.goes_to().map(|cpus| !cpus.is_disjoint(isolated));
        let count: Count = interrupts.irqs.iter().map(reaches).collect();
        page.field("On chosen CPUs", &format!("{count} of them can fire there"));
    }
    let vectors: Vec<String> = interrupts
        .vectors
        .iter()
        .map(|vector| (sum(vector.count_by_cpu.values()), vector_name(vector)))
        .filter(|(total, _)| *total > 0)
        .map(|(total, name)| format!("{name} {}", count(total)))
        .collect();
    page.field("Since boot", &vectors.join(", "));
    let mut busiest: Vec<(u64, &Irq)> =
        interrupts.irqs.iter().map(|irq| (sum(irq.count_by_cpu.values()), irq)).collect();
    busiest.sort_by_key(|(total, irq)| (std::cmp::Reverse(*total), irq.number));
    let mut rows = vec![["busiest", "since boot", "goes to"].map(str::to_owned).to_vec()];
    for (total, irq) in busiest.iter().take(IRQS_MAX).filter(|(total, _)| *total > 0) {
        rows.push(vec![clean(&irq.label()), count(*total), irq.goes_to().to_string()]);
    }
    if rows.len() > 1 {
        page.out.push_str(&columns(&rows, &[1], 4));
    }
}

fn sum<'a>(counts: impl Iterator<Item = &'a u64>) -> u64 {
    counts.fold(0, |sum, count| sum.saturating_add(*count))
}

/// Returns the sentence for an empty list of devices, or why the devices are unknown.
pub fn none_found(snapshot: &HostSnapshot, place: &str, none: &str) -> String {
    match snapshot.listed(place, ()).missing_in_words() {
        None => none.to_owned(),
        Some(missing) => format!("Unknown: {place} was not read ({missing})."),
    }
}

/// Adds a paragraph per physical interface.
pub fn add_nics(page: &mut Page, snapshot: &HostSnapshot) {
    page.heading("Network interfaces");
    let physical: Vec<&Nic> = snapshot.nics.iter().filter(|nic| nic.is_physical).collect();
    if physical.is_empty() {
        page.note(&none_found(snapshot, "/sys/class/net", "No physical interface was found."));
    }
    for nic in &physical {
        page.out.push_str(&format!("  {}\n", paint(BOLD, &clean(&nic.name))));
        for (label, text) in nic_facts(nic) {
            page.field(label, &text);
        }
    }
    let others: Vec<&str> =
        snapshot.nics.iter().filter(|nic| !nic.is_physical).map(|nic| nic.name.as_str()).collect();
    if !others.is_empty() {
        page.field("Virtual", &others.join(" "));
    }
}

/// Returns the known facts of an interface, as label and text.
pub fn nic_facts(nic: &Nic) -> Vec<(&'static str, String)> {
    let known = |reading: &Reading<String>| reading.known().cloned();
    let node = tree::node_number(&nic.node).map(|node| format!("node {node}"));
    let mtu = nic.mtu_bytes.known().map(|mtu| format!("MTU {mtu}"));
    vec![
        ("Link", joined([known(&nic.operstate), tree::speed(nic), mtu], ", ")),
        ("Address", joined([known(&nic.mac), known(&nic.oui_vendor)], ", ")),
        ("Driver", joined([known(&nic.driver), known(&nic.driver_version)], " ")),
        ("Firmware", nic.firmware.text().to_owned()),
        ("Place", joined([known(&nic.bus), node, pcie_text(nic)], ", ")),
        ("Queues", missing_or(&nic.channels, channels_text)),
        ("Rings", missing_or(&nic.rings, rings_text)),
        ("Coalescing", missing_or(&nic.coalescing, coalescing_text)),
        ("Time stamps", missing_or(&nic.timestamping, timestamping_text)),
        ("Interrupts", if nic.irqs.is_empty() { String::new() } else { plural(nic.irqs.len(), "interrupt") }),
    ]
}

/// Returns the text of a known reading, an empty text for an absent one, the reason for others.
pub fn missing_or<T>(reading: &Reading<T>, text: impl FnOnce(&T) -> String) -> String {
    match reading {
        Reading::Known(value) => text(value),
        Reading::Absent => String::new(),
        other => other.missing_in_words().unwrap_or_default(),
    }
}

fn pcie_text(nic: &Nic) -> Option<String> {
    let link = nic.link.known()?;
    let lanes = match (link.width.known(), link.width_max.known()) {
        (Some(now), Some(max)) if now != max => format!("x{now} of x{max}"),
        (Some(now), _) => format!("x{now}"),
        _ => return None,
    };
    // The kernel writes "8.0 GT/s PCIe".
    let plain = |speed: &Reading<String>| speed.known().map(|text| text.trim_end_matches(" PCIe").to_owned());
    let speed = match (plain(&link.speed), plain(&link.speed_max)) {
        (Some(now), Some(max)) if now != max => format!(" at {now} of {max}"),
        (Some(now), _) => format!(" at {now}"),
        _ => String::new(),
    };
    let aspm = if link.aspm.known() == Some(&true) { ", ASPM on" } else { "" };
    Some(format!("PCIe {lanes}{speed}{aspm}"))
}

/// Formats queue counts: "8 of 74 combined".
pub fn channels_text(channels: &Channels) -> String {
    let queues =
        |now: u32, max: u32, word: &str| (now > 0 || max > 0).then(|| format!("{now} of {max} {word}"));
    let parts = [
        queues(channels.combined, channels.combined_max, "combined"),
        queues(channels.rx, channels.rx_max, "rx"),
        queues(channels.tx, channels.tx_max, "tx"),
    ];
    joined(parts, ", ")
}

/// Formats ring sizes: "rx 511 of 2047, tx 511 of 2047".
pub fn rings_text(rings: &Rings) -> String {
    format!("rx {} of {}, tx {} of {}", rings.rx, rings.rx_max, rings.tx, rings.tx_max)
}

/// Formats coalescing: "rx 10 us, tx 10 us, adaptive rx off".
pub fn coalescing_text(coalescing: &Coalescing) -> String {
    let number = |value: Option<u32>, before: &str, after: &str| value.map(|v| format!("{before}{v}{after}"));
    let switch = |value: Option<bool>, word: &str| {
        value.map(|on| format!("adaptive {word} {}", if on { "on" } else { "off" }))
    };
    let parts = [
        number(coalescing.rx_usecs, "rx ", " us"),
        number(coalescing.rx_usecs_irq, "rx in interrupts ", " us"),
        number(coalescing.rx_frames, "rx ", " frames"),
        number(coalescing.tx_usecs, "tx ", " us"),
        number(coalescing.tx_frames, "tx ", " frames"),
        switch(coalescing.adaptive_rx, "rx"),
        switch(coalescing.adaptive_tx, "tx"),
    ];
    joined(parts, ", ")
}

/// Formats time stamping: "hardware rx and tx, clock /dev/ptp0".
pub fn timestamping_text(stamps: &Timestamping) -> String {
    let kind = match (stamps.hardware_rx, stamps.hardware_tx) {
        (true, true) => "hardware rx and tx",
        (true, false) => "hardware rx",
        (false, true) => "hardware tx",
        (false, false) => "software only",
    };
    let clock = stamps.phc_index.map_or_else(String::new, |index| format!(", clock /dev/ptp{index}"));
    format!("{kind}{clock}")
}

/// Adds a line per disk.
pub fn add_disks(page: &mut Page, snapshot: &HostSnapshot) {
    page.heading("Disks");
    if snapshot.disks.is_empty() {
        return page.note(&none_found(snapshot, "/sys/block", "No disk was found."));
    }
    let mut rows = vec![["name", "size", "scheduler", "node", "model"].map(str::to_owned).to_vec()];
    for disk in snapshot.disks.iter().take(DISKS_MAX) {
        let dash = |text: String| if text.is_empty() { "-".to_owned() } else { clean(&text) };
        let node = tree::node_number(&disk.node).map_or_else(String::new, |node| node.to_string());
        rows.push(vec![
            clean(&disk.name),
            dash(missing_or(&disk.size_bytes, |bytes| size(*bytes))),
            dash(disk.scheduler.text().to_owned()),
            dash(node),
            dash(disk.model.text().trim().to_owned()),
        ]);
    }
    page.out.push_str(&columns(&rows, &[1, 3], 2));
    if snapshot.disks.len() > DISKS_MAX {
        page.note(&format!("and {} more", snapshot.disks.len() - DISKS_MAX));
    }
}
