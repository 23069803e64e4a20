//! Caches, distances between nodes, and memory modules as short texts, for terminal and page.

use crate::fields::{fact, or_unknown, yes_no};
use lowlat_host::{
    CpuSet, HostSnapshot, Reading, Topology,
    snapshot::{FirmwareFacts, KNOWN_BEFORE_BOOT, MemoryModule},
    topology::CacheKind,
};
use lowlat_text::text::joined;
use lowlat_text::units::{count, plural, size};
use std::collections::BTreeMap;

/// Describes the caches of each level and kind: "L1 data" and "16 x 32 KiB, each for 1 CPU".
pub fn cache_lines(topology: &Topology) -> Vec<(String, String)> {
    let mut alike: BTreeMap<(u8, CacheKind), BTreeMap<(usize, String), u64>> = BTreeMap::new();
    for cache in &topology.caches {
        let bytes = cache.size_bytes.known().map_or_else(|| "unknown size".to_owned(), |bytes| size(*bytes));
        let kinds = alike.entry((cache.level, cache.kind)).or_default();
        *kinds.entry((cache.cpus.len(), bytes)).or_default() += 1;
    }
    let of_cpus =
        alike.into_iter().map(|((level, kind), sizes)| (cache_name(level, kind), sizes_text(sizes)));
    of_cpus.chain(side_caches(topology).map(|text| ("Memory-side".to_owned(), text))).collect()
}

/// Describes the caches in front of the nodes' memory: "16 GiB each for nodes 0-1".
fn side_caches(topology: &Topology) -> impl Iterator<Item = String> {
    let mut nodes: BTreeMap<String, CpuSet> = BTreeMap::new();
    for node in topology.nodes.iter().filter(|node| !node.side_cache_bytes.is_absent()) {
        let bytes = node.side_cache_bytes.as_ref().map(|bytes| size(*bytes)).to_string();
        nodes.entry(bytes).or_default().insert(node.id);
    }
    nodes.into_iter().map(|(bytes, nodes)| match nodes.len() {
        1 => format!("{bytes} for the memory of node {nodes}"),
        _ => format!("{bytes} each for the memory of nodes {nodes}"),
    })
}

fn cache_name(level: u8, kind: CacheKind) -> String {
    let kind = match kind {
        CacheKind::Data => " data",
        CacheKind::Instruction => " instructions",
        CacheKind::Unified => "",
    };
    format!("L{level}{kind}")
}

fn sizes_text(sizes: BTreeMap<(usize, String), u64>) -> String {
    let text = |((cpus, bytes), number): ((usize, String), u64)| {
        format!("{} x {bytes}, each for {}", count(number), plural(cpus, "CPU"))
    };
    sizes.into_iter().map(text).collect::<Vec<_>>().join("; ")
}

/// Describes the distances of each node to the nodes, nearest first: "node 0" and "10 to node 0, 32 to nodes 1-3".
/// A host with one node has none.
pub fn distance_lines(topology: &Topology) -> Vec<(String, String)> {
    if topology.nodes.len() < 2 {
        return Vec::new();
    }
    let text = |distances: &Vec<u32>| {
        let mut by_distance: BTreeMap<u32, CpuSet> = BTreeMap::new();
        for (distance, node) in distances.iter().zip(&topology.nodes) {
            by_distance.entry(*distance).or_default().insert(node.id);
        }
        let to = |(distance, nodes): (u32, CpuSet)| {
            format!("{distance} to {} {nodes}", if nodes.len() == 1 { "node" } else { "nodes" })
        };
        by_distance.into_iter().map(to).collect::<Vec<_>>().join(", ")
    };
    let line = |node: &lowlat_host::topology::Node| {
        (format!("node {}", node.id), or_unknown(&node.distances.as_ref().map(text)))
    };
    topology.nodes.iter().map(line).collect()
}

/// Returns "HPE A42 04/29/2020, revision 1.24"; empty if nothing is known.
pub fn bios_text(firmware: &FirmwareFacts) -> String {
    let parts = [firmware.bios_vendor.text(), firmware.bios_version.text(), firmware.bios_date.text()];
    let named = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let revision = firmware.bios_revision.known().map(|revision| format!("revision {revision}"));
    joined([Some(named).filter(|named| !named.is_empty()), revision], ", ")
}

/// Returns "72 bits, 64 of data"; empty if unknown.
pub fn width_text(module: &MemoryModule) -> String {
    match (module.total_width_bits, module.data_width_bits) {
        (Some(total), Some(data)) if total != data => format!("{total} bits, {data} of data"),
        (Some(bits), _) | (None, Some(bits)) => format!("{bits} bits"),
        (None, None) => String::new(),
    }
}

/// Returns "1.2 V", or "1.2 V of 1.1 to 1.25 V" if the module supports others; empty if unknown.
pub fn voltage_text(module: &MemoryModule) -> String {
    let volts = |mv: u32| (f64::from(mv) / 1_000.0).to_string();
    let range = match (module.voltage_mv_min, module.voltage_mv_max) {
        (Some(low), Some(high)) if low != high => Some(format!("{} to {} V", volts(low), volts(high))),
        (Some(only), _) | (None, Some(only)) if module.voltage_mv != Some(only) => {
            Some(format!("{} V", volts(only)))
        }
        _ => None,
    };
    match (module.voltage_mv, range) {
        (Some(mv), Some(range)) => format!("{} V of {range}", volts(mv)),
        (Some(mv), None) => format!("{} V", volts(mv)),
        (None, Some(range)) => range,
        (None, None) => String::new(),
    }
}

/// Returns the line of the default boot entry, or what that entry depends on.
fn boot_line_text(host: &HostSnapshot) -> Reading<String> {
    match &host.kernel.default_boot_line {
        Reading::Unparsable(why) if why.expected == KNOWN_BEFORE_BOOT => {
            Reading::Known(format!("not known before the boot: it depends on {}", why.raw))
        }
        line => line.clone(),
    }
}

/// Returns the facts of the kernel, as label and text; the texts of absent ones are empty.
pub fn kernel_facts(host: &HostSnapshot) -> Vec<(&'static str, String)> {
    let kernel = &host.kernel;
    let tainted = kernel.tainted.as_ref().map(|taint| match taint {
        0 => "no".to_owned(),
        flags => format!("yes (flags {flags})"),
    });
    let load = kernel.load_average.as_ref().map(|load| load.map(|value| format!("{value:.2}")).join(" "));
    vec![
        ("Release", fact(&kernel.release)),
        ("Build", fact(&kernel.build)),
        ("Machine", fact(&kernel.machine)),
        ("Distribution", fact(&kernel.distribution)),
        ("Command line", fact(&kernel.command_line.as_ref().map(|line| line.raw().to_owned()))),
        ("Default entry", fact(&boot_line_text(host))),
        ("Default target", fact(&host.services.default_target)),
        ("SELinux", selinux_text(host)),
        ("Real-time kernel", fact(&yes_no(&kernel.is_realtime))),
        ("Tainted", fact(&tainted)),
        ("Lockdown", fact(&kernel.lockdown)),
        ("Load average", fact(&load)),
    ]
}

/// Returns SELinux's mode, and that of the configuration if it differs: "disabled, configured as enforcing".
fn selinux_text(host: &HostSnapshot) -> String {
    let kernel = &host.kernel;
    let later = kernel.selinux_configured.known().filter(|later| kernel.selinux.known() != Some(*later));
    match (kernel.selinux.known(), later) {
        (Some(mode), Some(later)) => format!("{mode}, configured as {later}"),
        (Some(mode), None) => mode.clone(),
        (None, Some(later)) => format!("configured as {later}"),
        (None, None) => {
            kernel.selinux.missing_in_words().filter(|_| !kernel.selinux.is_absent()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::{
        Reading,
        topology::{Cache, Node},
    };

    fn cpus(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    #[test]
    fn caches_of_one_kind_share_a_line() {
        let cache = |level, kind, kib: u64, list| Cache {
            level,
            kind,
            size_bytes: Reading::Known(kib << 10),
            cpus: cpus(list),
            ..Cache::default()
        };
        let caches = vec![
            cache(1, CacheKind::Data, 48, "0-1"),
            cache(1, CacheKind::Data, 32, "2"),
            cache(1, CacheKind::Data, 32, "3"),
            cache(3, CacheKind::Unified, 16 << 10, "0-3"),
        ];
        let lines = cache_lines(&Topology { caches, ..Topology::default() });
        assert_eq!(
            lines,
            [
                ("L1 data".into(), "2 x 32 KiB, each for 1 CPU; 1 x 48 KiB, each for 2 CPUs".into()),
                ("L3".into(), "1 x 16 MiB, each for 4 CPUs".to_owned()),
            ]
        );
    }

    #[test]
    fn distances_name_the_nodes_with_their_numbers() {
        let node = |id, distances: &[u32]| Node {
            id,
            distances: Reading::Known(distances.to_vec()),
            ..Node::default()
        };
        let nodes = vec![node(0, &[10, 32, 32]), node(2, &[32, 10, 12]), node(3, &[32, 12, 10])];
        let mut topology = Topology { nodes, ..Topology::default() };
        assert_eq!(
            distance_lines(&topology)[..2],
            [
                ("node 0".into(), "10 to node 0, 32 to nodes 2-3".into()),
                ("node 2".into(), "10 to node 2, 12 to node 3, 32 to node 0".to_owned()),
            ]
        );
        topology.nodes.truncate(1);
        assert!(distance_lines(&topology).is_empty());
    }

    #[test]
    fn modules_show_the_voltage_at_which_they_run() {
        let module = |voltage_mv, voltage_mv_min, voltage_mv_max| {
            voltage_text(&MemoryModule {
                voltage_mv,
                voltage_mv_min,
                voltage_mv_max,
                ..MemoryModule::default()
            })
        };
        assert_eq!(module(Some(1_200), Some(1_200), Some(1_200)), "1.2 V");
        assert_eq!(module(Some(1_200), Some(1_100), Some(1_250)), "1.2 V of 1.1 to 1.25 V");
        assert_eq!(module(Some(1_350), Some(1_200), None), "1.35 V of 1.2 V");
        assert_eq!(module(None, None, None), "");
    }
}
