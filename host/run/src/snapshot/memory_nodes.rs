//! Reads where memory is: nodes, tiers, CXL and GPUs.

use super::memory::read_meminfo_bytes;
use crate::Root;
use lowlat_host::{
    Reading,
    memory::{CxlDevice, MemoryKind, MemoryNodes, NodeMemory},
    topology::Topology,
};
use std::collections::BTreeMap;

/// Documentation/ABI/testing/sysfs-bus-dax.
const DAX: &str = "/sys/bus/dax/devices";
/// Documentation/ABI/testing/sysfs-bus-cxl.
const CXL: &str = "/sys/bus/cxl/devices";
/// NVIDIA's open kernel modules, nv-procfs.c: "Node: 2".
const NVIDIA: &str = "/proc/driver/nvidia/gpus/*/numa_status";
const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";

/// Reads the memory of every node that has some.
pub fn memory_nodes(root: &Root, topology: &Topology) -> MemoryNodes {
    let mut kinds = dax_nodes(root);
    kinds.extend(gpu_nodes(root).into_iter().map(|node| (node, MemoryKind::Gpu)));
    let has_memory = |bytes: &Reading<u64>| bytes.known().is_none_or(|bytes| *bytes > 0);
    let nodes = topology.nodes.iter().filter(|node| has_memory(&node.memory_bytes));
    let nodes = nodes.map(|node| {
        let kind = match kinds.get(&node.id) {
            _ if !node.cpus.is_empty() => MemoryKind::Main,
            Some(kind) => *kind,
            None => MemoryKind::Far,
        };
        let meminfo = format!("/sys/devices/system/node/node{}/meminfo", node.id);
        NodeMemory {
            node: node.id,
            kind,
            total_bytes: node.memory_bytes.clone(),
            // A kernel without NUMA has no node directories.
            available_bytes: match read_meminfo_bytes(root, &meminfo, "MemFree") {
                Reading::Absent => read_meminfo_bytes(root, "/proc/meminfo", "MemAvailable"),
                free => free.map(|free| {
                    let files = read_meminfo_bytes(root, &meminfo, "Inactive(file)");
                    free + files.known().copied().unwrap_or(0)
                }),
            },
            tier: node.memory_tier.clone(),
        }
    });
    MemoryNodes {
        nodes: nodes.collect(),
        cxl_devices: cxl_devices(root),
        is_demotion_enabled: root
            .read(DEMOTION)
            .parse(DEMOTION, "true or false", |text| text.trim().parse().ok()),
    }
}

/// Nodes of device-dax instances. A CXL region names its device-dax `dax_regionN/daxN.0`.
fn dax_nodes(root: &Root) -> BTreeMap<u32, MemoryKind> {
    let devices = root.list(DAX).into_known().unwrap_or_default();
    let node = |name: &String| {
        let target: i64 = root.read_as(&format!("{DAX}/{name}/target_node"), "a node").into_known()?;
        let path = root.real_path(&format!("{DAX}/{name}")).into_known().unwrap_or_default();
        let kind = if path.contains("/dax_region") { MemoryKind::Cxl } else { MemoryKind::Dax };
        Some((u32::try_from(target).ok()?, kind))
    };
    devices.iter().filter_map(node).collect()
}

fn gpu_nodes(root: &Root) -> Vec<u32> {
    let node = |path: &String| -> Option<u32> {
        let text = root.read(path).into_known()?;
        text.lines().find_map(|line| line.strip_prefix("Node:")?.trim().parse().ok())
    };
    root.glob(NVIDIA).iter().filter_map(node).collect()
}

fn cxl_devices(root: &Root) -> Vec<CxlDevice> {
    let names = root.list(CXL).into_known().unwrap_or_default();
    let is_memory = |name: &&String| name.strip_prefix("mem").is_some_and(|id| id.parse::<u32>().is_ok());
    let of = |name: &String| {
        let path = format!("{CXL}/{name}/ram/size");
        let volatile_bytes = root.read(&path).parse(&path, "a number such as 0x40000000", |text| {
            u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
        });
        CxlDevice { name: name.clone(), volatile_bytes }
    };
    names.iter().filter(is_memory).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{snapshot::topology, testing::TestTree};

    fn read(root: &Root) -> MemoryNodes {
        memory_nodes(root, &topology::read(root))
    }

    #[test]
    fn cxl_gpu_and_other_memory_is_told_apart() {
        let meminfo = |node: u32, kib: u64| {
            format!(
                "Node {node} MemTotal: {kib} kB\nNode {node} MemFree: {} kB\nNode {node} Inactive(file): 1024 kB\n",
                kib / 2 - 1_024.min(kib / 2)
            )
        };
        let mut tree = TestTree::new();
        for (node, cpus) in [(0, "0-3"), (1, ""), (2, ""), (3, ""), (4, ""), (5, "")] {
            let folder = format!("/sys/devices/system/node/node{node}");
            tree = tree
                .file(&format!("{folder}/cpulist"), format!("{cpus}\n"))
                .file(&format!("{folder}/meminfo"), meminfo(node, if node == 5 { 0 } else { 8 << 20 }));
        }
        let region = "/sys/devices/platform/ACPI0017:00/root0/decoder0.0/region0/dax_region0/dax0.0";
        let tree = tree
            .file("/sys/devices/system/cpu/online", "0-3\n")
            .file(&format!("{region}/target_node"), "1\n")
            .link("/sys/bus/dax/devices/dax0.0", region)
            .file("/sys/devices/platform/hmem.0/dax1.0/target_node", "2\n")
            .link("/sys/bus/dax/devices/dax1.0", "/sys/devices/platform/hmem.0/dax1.0")
            .file("/proc/driver/nvidia/gpus/0009:01:00.0/numa_status", "Node:      3\nStatus:    online\n")
            .file("/sys/bus/cxl/devices/mem0/ram/size", "0x40000000\n")
            .file("/sys/bus/cxl/devices/root0/devtype", "cxl_port\n")
            .file("/sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0\n")
            .file("/sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "1-4\n")
            .file(DEMOTION, "true\n");
        let memory = read(&tree.root());
        let kinds: Vec<(u32, MemoryKind)> = memory.nodes.iter().map(|of| (of.node, of.kind)).collect();
        assert_eq!(
            kinds,
            [
                (0, MemoryKind::Main),
                (1, MemoryKind::Cxl),
                (2, MemoryKind::Dax),
                (3, MemoryKind::Gpu),
                (4, MemoryKind::Far)
            ]
        );
        assert_eq!(memory.nodes[1].tier, Reading::Known(22));
        assert_eq!(memory.nodes[1].available_bytes, Reading::Known(4 << 30));
        let device = CxlDevice { name: "mem0".into(), volatile_bytes: Reading::Known(1 << 30) };
        assert_eq!(memory.cxl_devices, [device]);
        assert_eq!(memory.is_demotion_enabled, Reading::Known(true));
    }

    #[test]
    fn a_kernel_without_nodes_has_one() {
        let tree = TestTree::new()
            .file("/sys/devices/system/cpu/online", "0-1\n")
            .file("/proc/meminfo", "MemTotal:       4096 kB\nMemAvailable:   1024 kB\n");
        let memory = read(&tree.root());
        assert_eq!(memory.nodes.len(), 1);
        assert_eq!(memory.nodes[0].available_bytes, Reading::Known(1 << 20));
        assert_eq!(memory.is_demotion_enabled, Reading::Absent);
    }
}
