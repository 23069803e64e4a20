//! Reads NUMA nodes and memory tiers.

use super::cpu_number;
use crate::{Root, snapshot::memory::read_meminfo_bytes};
use lowlat_host::{CpuSet, Reading, topology::RawNode};
use std::collections::BTreeMap;

const NODE: &str = "/sys/devices/system/node";
const TIERS: &str = "/sys/devices/virtual/memory_tiering";

pub(super) fn read(root: &Root, notes: &mut Vec<String>) -> BTreeMap<u32, RawNode> {
    let names = match root.list(NODE) {
        // A kernel without NUMA.
        Reading::Absent => Vec::new(),
        names => {
            if !names.is_known() {
                notes.push(format!("{NODE} cannot be read; all CPUs and memory are taken for one node."));
            }
            root.or_unread(NODE, names)
        }
    };
    names
        .iter()
        .filter_map(|name| cpu_number(name, "node"))
        .map(|id| {
            let folder = format!("{NODE}/node{id}");
            let (cpulist, distance) = (format!("{folder}/cpulist"), format!("{folder}/distance"));
            let node = RawNode {
                cpus: root.read_cpu_mask(&format!("{folder}/cpumap")).or(|| root.read_cpu_list(&cpulist)),
                memory_bytes: read_meminfo_bytes(root, &format!("{folder}/meminfo"), "MemTotal"),
                distances: root.read(&distance).parse(&distance, "numbers", numbers),
                side_cache_bytes: side_cache(root, &folder),
            };
            if !node.cpus.is_known() {
                notes.push(format!("node {id}: its CPUs cannot be read; its memory is shown without them."));
            }
            (id, node)
        })
        .collect()
}

/// The largest cache in front of a node's memory, in bytes (mm/node.c of Linux).
fn side_cache(root: &Root, folder: &str) -> Reading<u64> {
    let sizes = root.glob(&format!("{folder}/memory_side_cache/index*/size"));
    let size = |path: &String| root.read_as(path, "a number of bytes");
    let larger = |a: Reading<u64>, b: Reading<u64>| if b.known() > a.known() { b } else { a };
    sizes.iter().map(size).reduce(larger).unwrap_or_default()
}

fn numbers(text: &str) -> Option<Vec<u32>> {
    text.split_ascii_whitespace().map(|word| word.parse().ok()).collect()
}

pub(super) fn read_memory_tiers(root: &Root) -> BTreeMap<u32, Reading<CpuSet>> {
    let names = root.list(TIERS).into_known().unwrap_or_default();
    names
        .iter()
        .filter_map(|name| cpu_number(name, "memory_tier"))
        .map(|tier| (tier, root.read_cpu_list(&format!("{TIERS}/memory_tier{tier}/nodelist"))))
        .collect()
}
