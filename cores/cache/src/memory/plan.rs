//! Sizes of buffers, by the caches that they must exceed.

use lowlat_host::{CpuSet, Reading, topology::Topology};
use serde::{Deserialize, Serialize};

/// Bytes that are chased or read for each byte of last-level cache, so that a line has left the caches when it is next
/// loaded.
const BYTES_PER_LLC_BYTE: u64 = 2;
/// Smallest half of a buffer: above the caches of processors that do not report their size.
const HALF_BYTES_MIN: u64 = 32 << 20;
/// Huge pages of x86-64, and of aarch64 with pages of 4 KiB.
const GRAIN_BYTES: u64 = 2 << 20;

/// Sizes to chase and to read, and the CPUs that do it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryPlan {
    /// Bytes that one CPU chases.
    pub chased_bytes: u64,
    /// Bytes that the CPUs of a node read together, an equal part each.
    pub read_bytes: u64,
    /// Each node with CPUs that may read.
    pub nodes: Vec<NodePlan>,
}

/// CPUs of one node, and the caches between them and memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodePlan {
    /// The kernel's number of the node.
    pub node: u32,
    /// CPUs that read. The first one chases.
    pub cpus: CpuSet,
    /// Number of last-level caches of the node.
    pub llc_count: usize,
    /// Size of all of them together. Absent if the kernel names none.
    pub llc_bytes: Reading<u64>,
    /// Part of each CPU that reads.
    pub bytes_per_cpu: u64,
    /// Smallest part that leaves the caches before it is read again: of the last-level cache that fewest readers share
    /// for its size. 0 if no size is known.
    pub bytes_per_cpu_min: u64,
}

impl MemoryPlan {
    /// Plans buffers for these CPUs; `asked` is the size of a buffer, half of which is chased and half read.
    ///
    /// `None` if the sizes are beyond 64 bits.
    pub fn of(topology: &Topology, cpus: &CpuSet, asked: Option<u64>) -> Option<Self> {
        let llcs = topology.llcs();
        let nodes = topology.nodes.iter().map(|node| (node, node.cpus.intersection(cpus)));
        let mut nodes: Vec<NodePlan> = nodes
            .filter(|(_, cpus)| !cpus.is_empty())
            .map(|(node, cpus)| {
                let of_node = llcs.iter().filter(|llc| !llc.cpus.intersection(&node.cpus).is_empty());
                let sizes: Vec<Reading<u64>> = of_node.map(|llc| llc.size_bytes.clone()).collect();
                let llc_count = sizes.len();
                let sum = sizes.into_iter().reduce(|sum, size| match (sum, size) {
                    (Reading::Known(sum), Reading::Known(size)) => Reading::Known(sum.saturating_add(size)),
                    (Reading::Known(_), unknown) | (unknown, _) => unknown,
                });
                let least = llcs.iter().filter_map(|llc| {
                    let readers = llc.cpus.intersection(&cpus).len() as u64;
                    let size = llc.size_bytes.known()?.saturating_mul(BYTES_PER_LLC_BYTE);
                    (readers > 0).then(|| size.div_ceil(readers))
                });
                NodePlan {
                    node: node.id,
                    llc_count,
                    llc_bytes: sum.unwrap_or(Reading::Absent),
                    bytes_per_cpu_min: least.max().unwrap_or(0),
                    bytes_per_cpu: 0,
                    cpus,
                }
            })
            .collect();
        let whole = |bytes: u64| bytes.max(HALF_BYTES_MIN).checked_next_multiple_of(GRAIN_BYTES);
        let (chased_bytes, read_bytes) = if let Some(asked) = asked {
            let half = (asked / 2).max(1).checked_next_multiple_of(GRAIN_BYTES)?;
            (half, half)
        } else {
            let llc = nodes.iter().filter_map(|node| node.llc_bytes.known()).max().copied().unwrap_or(0);
            let chased = llc.checked_mul(BYTES_PER_LLC_BYTE)?;
            let parts = nodes.iter().map(|node| node.bytes_per_cpu_min.checked_mul(node.cpus.len() as u64));
            let parts: Option<Vec<u64>> = parts.collect();
            let read = parts?.into_iter().max().unwrap_or(0).max(chased);
            (whole(chased)?, whole(read)?)
        };
        for node in &mut nodes {
            node.bytes_per_cpu = read_bytes / node.cpus.len().max(1) as u64;
        }
        Some(Self { chased_bytes, read_bytes, nodes })
    }

    /// Size of one buffer, both parts together.
    pub fn buffer_bytes(&self) -> u64 {
        self.chased_bytes.saturating_add(self.read_bytes)
    }

    /// Returns the reasons why figures would partly be those of caches: sentences.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let is_small = |bytes: u64, llc: u64| bytes < llc.saturating_mul(BYTES_PER_LLC_BYTE);
        for node in &self.nodes {
            match &node.llc_bytes {
                Reading::Known(llc) if is_small(self.chased_bytes, *llc) => doubts.push(format!(
                    "Node {}: the part that is chased is less than twice its last-level caches, so times are not those of memory alone.",
                    node.node
                )),
                Reading::Known(_) => {}
                unknown => doubts.push(format!(
                    "Node {}: the size of its last-level caches is not known ({unknown}), so they may hold a part of the buffer.",
                    node.node
                )),
            }
            if node.bytes_per_cpu < node.bytes_per_cpu_min {
                doubts.push(format!(
                    "Node {}: what a CPU reads stays in its last-level cache, so bandwidth is not that of memory alone.",
                    node.node
                ));
            }
        }
        doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::topology::{Cache, CacheKind, Node};

    /// Nodes of `cores` CPUs, `per_llc` of which share a cache of `llc_bytes`.
    fn host(nodes: u32, cores: u32, per_llc: u32, llc_bytes: &[Reading<u64>]) -> Topology {
        let cpus = |from: u32, count: u32| (from..from + count).collect::<CpuSet>();
        let size = |place: u32| llc_bytes.get(place as usize).or(llc_bytes.last()).cloned().unwrap();
        Topology {
            online: cpus(0, nodes * cores),
            nodes: (0..nodes)
                .map(|id| Node { id, cpus: cpus(id * cores, cores), ..Node::default() })
                .collect(),
            caches: (0..nodes * cores / per_llc)
                .map(|place| Cache {
                    level: 3,
                    kind: CacheKind::Unified,
                    size_bytes: size(place),
                    cpus: cpus(place * per_llc, per_llc),
                    ..Cache::default()
                })
                .collect(),
            ..Topology::default()
        }
    }

    fn plan(topology: &Topology, cpus: &str, asked: Option<u64>) -> MemoryPlan {
        let cpus = if cpus.is_empty() { topology.online.clone() } else { CpuSet::parse_list(cpus).unwrap() };
        MemoryPlan::of(topology, &cpus, asked).unwrap()
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn buffers_exceed_all_caches_of_a_node() {
        // 7F32: eight cores with 16 MiB each.
        let split = plan(&host(2, 8, 1, &[Reading::Known(16 * MIB)]), "", None);
        assert_eq!((split.chased_bytes, split.read_bytes), (256 * MIB, 256 * MIB));
        assert_eq!((split.nodes[0].llc_count, &split.nodes[0].llc_bytes), (8, &Reading::Known(128 * MIB)));
        assert_eq!((split.nodes[1].bytes_per_cpu, split.nodes[1].bytes_per_cpu_min), (32 * MIB, 32 * MIB));
        assert_eq!(split.doubts(), [""; 0]);
        // One cache of all.
        let shared = plan(&host(1, 8, 8, &[Reading::Known(24 * MIB)]), "", None);
        assert_eq!((shared.chased_bytes, shared.read_bytes), (48 * MIB, 48 * MIB));
        assert_eq!(shared.nodes[0].bytes_per_cpu_min, 6 * MIB);
        // A small one.
        assert_eq!(plan(&host(1, 2, 2, &[Reading::Known(MIB)]), "", None).chased_bytes, HALF_BYTES_MIN);
    }

    #[test]
    fn a_reader_that_has_a_cache_to_itself_gets_a_part_beyond_it() {
        // Four readers share the first cache, one has the second.
        let topology = host(1, 8, 4, &[Reading::Known(32 * MIB)]);
        let plan = plan(&topology, "0-4", None);
        assert_eq!(plan.nodes[0].bytes_per_cpu_min, 64 * MIB);
        assert_eq!((plan.chased_bytes, plan.read_bytes), (128 * MIB, 5 * 64 * MIB));
        assert_eq!(plan.doubts(), [""; 0]);
    }

    #[test]
    fn a_buffer_that_was_asked_for_is_judged() {
        let topology = host(1, 8, 1, &[Reading::Known(16 * MIB)]);
        let doubts = plan(&topology, "", Some(64 * MIB)).doubts();
        assert!(
            doubts[0].contains("chased is less than twice") && doubts[1].contains("bandwidth"),
            "{doubts:?}"
        );
        assert_eq!(plan(&topology, "", Some(512 * MIB)).doubts(), [""; 0]);
        assert_eq!(plan(&topology, "", Some(1)).chased_bytes, GRAIN_BYTES);
        assert_eq!(
            MemoryPlan::of(&topology, &topology.online, Some(u64::MAX)).map(|of| of.chased_bytes),
            Some(1 << 63)
        );
    }

    #[test]
    fn an_unknown_size_is_told_and_never_small() {
        for (sizes, word) in
            [(vec![Reading::Denied], "denied"), (vec![Reading::Known(8 * MIB), Reading::Absent], "not known")]
        {
            let plan = plan(&host(1, 4, 1, &sizes), "", None);
            assert!(plan.doubts().join(" ").contains(word), "{:?}", plan.doubts());
        }
        let none = Topology { caches: Vec::new(), ..host(1, 4, 4, &[Reading::Absent]) };
        assert_eq!(plan(&none, "", None).nodes[0].llc_bytes, Reading::Absent);
        let huge = host(1, 2, 1, &[Reading::Known(u64::MAX)]);
        assert_eq!(MemoryPlan::of(&huge, &huge.online, None), None);
    }
}
