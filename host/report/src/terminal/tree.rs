//! Tree of packages, nodes, caches, clusters and cores, with devices below their node.

use crate::cpu_parts::{CpuPart, CpuParts};
use crate::fields::Page;
use crate::hardware;
use crate::shape;
use crate::shape::{CpuBlock, Kind};
use anstyle::Style;
use lowlat_host::{
    Allocation, CpuSet, HostSnapshot, Reading,
    snapshot::{Disk, Nic},
};
use lowlat_text::text::{BLUE, DIM, add_wrapped, joined, paint, wrap};
use lowlat_text::units::{clean, count, plural, size};

pub fn add(page: &mut Page, snapshot: &HostSnapshot, allocation: Option<&Allocation>) {
    page.heading("Topology");
    for line in lines(snapshot, allocation) {
        let indent = line.depth * 2 + 2;
        for text in wrap(&clean(&line.text), page.width.saturating_sub(indent)) {
            let text = line.style.map_or_else(|| text.clone(), |style| paint(style, &text));
            page.out.push_str(&format!("{:indent$}{text}\n", ""));
        }
    }
    let topology = &snapshot.topology;
    for oddity in &topology.oddities {
        add_wrapped(&mut page.out, &clean(&format!("warning: {oddity}")), 2, page.width);
    }
    for (cache, text) in hardware::cache_lines(topology) {
        page.field(&cache, &text);
    }
    for (node, text) in hardware::distance_lines(topology) {
        page.field("Distances", &format!("{node}: {text}"));
    }
    page.field("Kernel isolates", &isolated_text(&topology.isolated));
    let is_built_without = snapshot.kernel.config_option("NO_HZ_FULL") == Reading::Known(None);
    match &topology.nohz_full {
        Reading::Absent if is_built_without => page.field("Tickless", "no CPU"),
        tickless => page.field("Tickless", &isolated_text(tickless)),
    }
}

fn isolated_text(reading: &Reading<CpuSet>) -> String {
    match reading.known() {
        Some(cpus) if cpus.is_empty() => "no CPU".to_owned(),
        _ if reading.is_absent() => "unknown (not exposed by the kernel)".to_owned(),
        _ => reading.to_string(),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub depth: usize,
    pub text: String,
    /// The purposes of a block's CPUs, NICs and disks have one.
    pub style: Option<Style>,
}

/// Returns the tree as lines.
pub fn lines(snapshot: &HostSnapshot, allocation: Option<&Allocation>) -> Vec<Line> {
    let mut lines = Vec::new();
    let topology = &snapshot.topology;
    let blocks = shape::tree(topology);
    for block in &blocks {
        add_block(&mut lines, snapshot, allocation, block, 0);
    }
    for node in shape::memory_only(topology) {
        let memory = node.memory_bytes.as_ref().map(|bytes| size(*bytes));
        let tier = node.memory_tier.known().map_or_else(String::new, |tier| format!(", tier {tier}"));
        let text = format!("node {}, memory without CPUs: {memory}{tier}", node.id);
        lines.push(Line { depth: 0, text, style: None });
        add_devices(&mut lines, snapshot, Some(node.id), 1);
    }
    if !topology.offline.is_empty() {
        let text = format!("offline: CPU {}", topology.offline);
        lines.push(Line { depth: 0, text, style: None });
    }
    add_devices(&mut lines, snapshot, None, 0);
    lines
}

fn add_block(
    lines: &mut Vec<Line>,
    snapshot: &HostSnapshot,
    allocation: Option<&Allocation>,
    block: &CpuBlock,
    depth: usize,
) {
    let cpus = if block.cpus.len() == 1 { "CPU" } else { "CPUs" };
    let is_plain_core =
        |child: &CpuBlock| child.cpus.len() == 1 && child.children.is_empty() && child.shape() == "core";
    let only_plain_cores = !block.children.is_empty() && block.children.iter().all(is_plain_core);
    let cores =
        if only_plain_cores { format!(", {}", plural(block.children.len(), "core")) } else { String::new() };
    let text = format!("{}: {cpus} {}{cores}", block.label(), block.cpus);
    lines.push(Line { depth, text, style: None });
    if block.is(Kind::Package) || block.is(Kind::Node) && !block.children.iter().any(|b| b.is(Kind::Package))
    {
        lines.extend(part_line(snapshot, allocation, &block.cpus, depth + 1));
    }
    let children = if only_plain_cores { &[][..] } else { &block.children };
    let mut children = children.iter().peekable();
    while let Some(child) = children.next() {
        let mut alike = vec![child];
        while let Some(next) = children.next_if(|next| is_leaf_like(child, next)) {
            alike.push(next);
        }
        if child.children.is_empty() {
            lines.push(Line { depth: depth + 1, text: leaves(&alike), style: None });
        } else {
            add_block(lines, snapshot, allocation, child, depth + 1);
        }
    }
    for node in block.nodes() {
        add_devices(lines, snapshot, Some(node), depth + 1);
    }
}

/// Returns whether two blocks without inner blocks can share a line.
fn is_leaf_like(a: &CpuBlock, b: &CpuBlock) -> bool {
    a.children.is_empty() && b.children.is_empty() && a.shape() == b.shape()
}

/// Formats similar blocks: "8 x L3 16 MiB + core: 0 1 2 3 4 5 6 7", "8 cores: 0,8 1,9 2,10".
fn leaves(alike: &[&CpuBlock]) -> String {
    let Some(first) = alike.first() else { return String::new() };
    if alike.len() == 1 {
        return format!("{}: CPU {}", first.label(), first.cpus);
    }
    let cpus: Vec<String> = alike.iter().map(|block| block.cpus.to_string()).collect();
    let cpus = cpus.join(" ");
    match first.shape().as_str() {
        "core" => format!("{}: {cpus}", plural(alike.len(), "core")),
        shape => format!("{} x {shape}: {cpus}", count(alike.len() as u64)),
    }
}

fn part_line(
    snapshot: &HostSnapshot,
    allocation: Option<&Allocation>,
    cpus: &CpuSet,
    depth: usize,
) -> Option<Line> {
    let parts = CpuParts::of(snapshot, allocation?).each(cpus);
    let shown = |(part, cpus): &(CpuPart, CpuSet)| {
        let is_shown = part.is_for_trading() || *part == CpuPart::Housekeeping;
        is_shown.then(|| format!("{} {cpus}", part.phrase()))
    };
    // Housekeeping first, because its CPUs usually have the lowest numbers.
    let (first, rest): (Vec<_>, Vec<_>) = parts.iter().partition(|(part, _)| *part == CpuPart::Housekeeping);
    let words: Vec<String> = first.into_iter().chain(rest).filter_map(shown).collect();
    (!words.is_empty()).then(|| Line { depth, text: words.join(", "), style: Some(BLUE) })
}

fn add_devices(lines: &mut Vec<Line>, snapshot: &HostSnapshot, node: Option<u32>, depth: usize) {
    let is_here = |reading: &Reading<i32>| node_number(reading) == node;
    for nic in snapshot.nics.iter().filter(|nic| nic.is_physical && is_here(&nic.node)) {
        lines.push(Line { depth, text: nic_text(nic), style: Some(DIM) });
    }
    for disk in snapshot.disks.iter().filter(|disk| is_here(&disk.node)) {
        lines.push(Line { depth, text: disk_text(disk), style: Some(DIM) });
    }
}

/// Returns the node of a device, if known.
pub fn node_number(reading: &Reading<i32>) -> Option<u32> {
    reading.known().and_then(|node| u32::try_from(*node).ok())
}

fn nic_text(nic: &Nic) -> String {
    let (driver, bus) = (nic.driver.known().cloned(), nic.bus.known().cloned());
    joined([Some(format!("nic {}", nic.name)), driver, speed(nic), bus], ", ")
}

/// Returns the speed of a link, such as "25 Gb/s".
pub fn speed(nic: &Nic) -> Option<String> {
    let mbps = *nic.speed_mbps.known()?;
    Some(if mbps >= 1_000 && mbps.is_multiple_of(100) {
        let gbps = f64::from(mbps) / 1_000.0;
        format!("{gbps} Gb/s")
    } else {
        format!("{mbps} Mb/s")
    })
}

fn disk_text(disk: &Disk) -> String {
    let size = disk.size_bytes.known().map(|bytes| size(*bytes));
    let model = disk.model.known().map(|model| model.trim().to_owned());
    joined([Some(format!("disk {}", disk.name)), size, model, disk.bus.known().cloned()], ", ")
}

/// Returns the totals: "2 packages, 2 NUMA nodes, 16 cores, 16 CPUs".
pub fn counts_text(snapshot: &HostSnapshot) -> String {
    let counts = &snapshot.topology.counts;
    let parts = [
        (counts.packages, "package"),
        (counts.numa_nodes, "NUMA node"),
        (counts.llcs, "last-level cache"),
        (snapshot.topology.clusters.len(), "cluster"),
        (counts.cores, "core"),
        (counts.pus, "CPU"),
    ];
    joined(parts.map(|(number, noun)| (number > 0).then(|| plural(number, noun))), ", ")
}
