//! Latency and bandwidth of memory, as text.

use lowlat_cache::memory::{MemoryPath, MemoryRecord, Pages, Spread};
use lowlat_host::{Reading, memory::MemoryKind};
use lowlat_text::columns::{self, Column};
use lowlat_text::text::{BOLD, add_detail, add_result, add_sentences, usable};
use lowlat_text::units::{duration_fine, plural, size};

/// Formats a measurement of memory.
pub fn memory_text(record: &MemoryRecord, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_result(&mut out, &headline(record), width);
    add_detail(&mut out, &set_up(record), width);
    if !record.paths.is_empty() {
        out.push('\n');
        out.push_str(&columns::table(table(record), width));
    }
    add_sentences(&mut out, (BOLD, "Memory of this host"), &facts(record), width);
    add_sentences(&mut out, (BOLD, "Not measured"), &record.left_out, width);
    out
}

/// "Memory takes 92.1 ns; node 1's takes 1.7 times as long from node 0".
fn headline(record: &MemoryRecord) -> String {
    let own = record.paths.iter().find(|path| path.from == path.to).or(record.paths.first());
    let Some(idle) = own.and_then(MemoryPath::idle_ns) else { return "Nothing was measured.".to_owned() };
    let mut text = format!("A load from memory takes {}", duration_fine(idle.median));
    if let Some((path, ratio)) = record.farthest() {
        text += &if ratio.differs_from_one() {
            format!(", and {:.2} times as long from node {} to node {}", ratio.median, path.from, path.to)
        } else {
            "; no difference between nodes shown".to_owned()
        };
    }
    text += &match record.huge_against_small() {
        Some(ratio) if ratio.differs_from_one() => {
            format!(". With huge pages it takes {:.2} times as long", ratio.median)
        }
        Some(_) => ". No difference between huge and small pages shown".to_owned(),
        None => String::new(),
    };
    text + "."
}

fn set_up(record: &MemoryRecord) -> String {
    let rounds = record.paths.iter().map(|path| path.rounds.len()).max().unwrap_or(0);
    let cache = if record.llc_bytes == 0 {
        "the size of the caches is not known".to_owned()
    } else {
        format!("the largest cache has {}", size(record.llc_bytes))
    };
    // Half a buffer is chased.
    let doubt = if record.buffer_bytes / 2 < record.llc_bytes {
        " Half a buffer fits in that cache, so these are not the times of memory alone."
    } else {
        ""
    };
    format!(
        "Buffers of {}; {cache}.{doubt} Medians of {} over all paths in turn. Loaded: while the other CPUs of the node read.",
        size(record.buffer_bytes),
        plural(rounds, "round")
    )
}

fn table(record: &MemoryRecord) -> Vec<Column> {
    let of =
        |cell: &dyn Fn(&MemoryPath) -> String| -> Vec<String> { record.paths.iter().map(cell).collect() };
    let time = |spread: Option<Spread>| spread.map_or_else(|| "-".to_owned(), |of| duration_fine(of.median));
    let quartiles = |path: &MemoryPath| {
        path.idle_ns().map_or_else(|| "-".to_owned(), |of| format!("{:.1}-{:.1}", of.low, of.high))
    };
    let bandwidth = |path: &MemoryPath| {
        path.bytes_per_s().map_or_else(|| "-".to_owned(), |of| format!("{:.1} GB/s", of.median / 1e9))
    };
    vec![
        Column::words("CPUs of", 0, of(&|path| format!("node {}", path.from))),
        Column::words("memory of", 0, of(&|path| format!("node {}{}", path.to, kind(record, path.to)))),
        Column::words(
            "pages",
            0,
            of(&|path| if path.pages == Pages::Huge { "huge" } else { "small" }.to_owned()),
        ),
        Column::figures("idle", 0, of(&|path| time(path.idle_ns()))),
        Column::figures("quartiles", 1, of(&quartiles)),
        Column::figures("loaded", 0, of(&|path| time(path.loaded_ns()))),
        Column::figures("bandwidth", 0, of(&bandwidth)),
    ]
}

/// ", CXL"; nothing for the memory of a node with CPUs.
fn kind(record: &MemoryRecord, node: u32) -> String {
    let kind = record.memory.nodes.iter().find(|of| of.node == node).map(|of| of.kind);
    kind.filter(|kind| *kind != MemoryKind::Main).map(|kind| format!(", {kind}")).unwrap_or_default()
}

/// What the kernel says, sentence by sentence.
fn facts(record: &MemoryRecord) -> Vec<String> {
    let node = |of: &lowlat_host::memory::NodeMemory| {
        let total = of.total_bytes.as_ref().map(|bytes| size(*bytes));
        let tier = of.tier.known().map_or_else(String::new, |tier| format!(", memory tier {tier}"));
        format!("Node {}: {total} of {} memory{tier}.", of.node, of.kind)
    };
    let device = |of: &lowlat_host::memory::CxlDevice| {
        let bytes = of.volatile_bytes.as_ref().map(|bytes| size(*bytes));
        format!(
            "CXL memory device {}: {bytes}. It is memory of a node once its region was made and added.",
            of.name
        )
    };
    let demotion = match &record.memory.is_demotion_enabled {
        Reading::Known(true) => Some("The kernel moves cold pages to slower tiers (demotion is on)."),
        Reading::Known(false) if record.memory.nodes.iter().any(|of| of.kind != MemoryKind::Main) => {
            Some("The kernel does not move cold pages to slower tiers (demotion is off).")
        }
        _ => None,
    };
    let nodes = record.memory.nodes.iter().map(node);
    nodes.chain(record.memory.cxl_devices.iter().map(device)).chain(demotion.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_cache::memory::MemoryRound;
    use lowlat_host::{
        CpuSet,
        memory::{CxlDevice, MemoryNodes, NodeMemory},
    };

    fn path(to: u32, pages: Pages, idle_ns: f64) -> MemoryPath {
        let round = |factor: f64| MemoryRound {
            idle_ns: idle_ns * factor,
            loaded_ns: (to == 0).then_some(idle_ns * 2.0),
            bytes_per_s: 2.5e10,
        };
        let rounds = [1.0, 1.1, 0.95, 1.0].map(round).to_vec();
        MemoryPath { from: 0, cpus: CpuSet::first(4), to, pages, huge_share: 0.0, rounds }
    }

    #[test]
    fn far_memory_is_named_with_its_factor() {
        let node = |node, kind| NodeMemory {
            node,
            kind,
            total_bytes: Reading::Known(8 << 30),
            tier: Reading::Known(if node == 0 { 4 } else { 22 }),
            ..NodeMemory::default()
        };
        let record = MemoryRecord {
            memory: MemoryNodes {
                nodes: vec![node(0, MemoryKind::Main), node(1, MemoryKind::Cxl)],
                cxl_devices: vec![CxlDevice { name: "mem0".into(), volatile_bytes: Reading::Known(8 << 30) }],
                is_demotion_enabled: Reading::Known(false),
            },
            buffer_bytes: 64 << 20,
            llc_bytes: 16 << 20,
            paths: vec![
                path(0, Pages::Small, 90.0),
                path(0, Pages::Huge, 72.0),
                path(1, Pages::Small, 270.0),
            ],
            left_out: vec!["Node 1, huge pages: not measured: no room.".into()],
        };
        let text = anstream::adapter::strip_str(&memory_text(&record, 80)).to_string();
        for wanted in [
            "3.00 times as long from node 0 to node 1",
            "With huge pages it takes 0.80 times as long",
            "node 1, CXL",
            "25.0 GB/s",
            "Node 1: 8 GiB of CXL memory, memory tier 22.",
            "demotion is off",
            "no room",
        ] {
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(wanted), "{wanted}: {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(memory_text(&MemoryRecord::default(), 80).contains("Nothing was measured"));
        let small = MemoryRecord { buffer_bytes: 16 << 20, ..record };
        assert!(memory_text(&small, 200).contains("Half a buffer fits"));
    }
}
