//! The topology of a host: packages, dies, nodes, caches, clusters, cores.
//!
//! Groups are sets of logical CPUs as the kernel reports them, never computed from CPU numbers. Numbering is
//! interleaved on many hosts, has gaps where CPUs are offline, and means nothing on hybrid processors.

mod build;
mod levels;
mod nodes;
mod online;
mod partition;
mod raw;

pub use raw::{RawCache, RawCpu, RawNode, RawTopology};

use crate::{CpuId, CpuSet, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The topology of a host, as [`Topology::build`] derives it from the kernel's files.
///
/// Groups contain only online CPUs and are sorted by their lowest CPU. Those of one kind share no CPU.
/// Packages, dies and cores cover every online CPU, and each lies within one of the previous kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Topology {
    /// Sums over the online CPUs, for comparison with other tools.
    pub counts: Counts,
    /// CPUs that could ever exist (/sys/devices/system/cpu/possible).
    pub possible: Reading<CpuSet>,
    /// CPUs that are plugged in.
    pub present: Reading<CpuSet>,
    /// CPUs that are running; never empty on a readable host.
    pub online: CpuSet,
    /// CPUs that are present but switched off.
    pub offline: CpuSet,
    /// CPUs that the kernel isolated (/sys/devices/system/cpu/isolated).
    pub isolated: Reading<CpuSet>,
    /// CPUs that may run without a tick (/sys/devices/system/cpu/nohz_full).
    pub nohz_full: Reading<CpuSet>,
    /// Packages, also known as sockets.
    pub packages: Vec<Group>,
    /// Dies; as many as packages if each package has one.
    pub dies: Vec<Group>,
    /// Clusters: CPUs of several cores that share an L2 or an interconnect below the package
    /// (`cluster_cpus_list`, otherwise the L2). Only those wider than a core and narrower than their package;
    /// empty if the host has none. A cluster may be as wide as its LLC.
    pub clusters: Vec<Group>,
    /// Cores; with SMT a core has several CPUs.
    pub cores: Vec<Group>,
    /// Caches of every level, each instance once.
    pub caches: Vec<Cache>,
    /// NUMA nodes, including memory-only ones.
    pub nodes: Vec<Node>,
    /// CPU types of a hybrid processor ("core" and "atom" on Intel, otherwise by capacity or clock); empty if all
    /// are alike.
    pub core_types: Vec<CoreType>,
    /// Oddities in the host's description: contradictions, missing files. One sentence each.
    pub oddities: Vec<String>,
}

/// Sums over the online CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    pub packages: usize,
    /// NUMA nodes, including memory-only ones.
    pub numa_nodes: usize,
    /// Last-level caches ([`Topology::llcs`]): the L3s, and the L2s of CPUs without an L3.
    pub llcs: usize,
    /// Groups that share a second-level data or unified cache.
    pub l2_groups: usize,
    pub cores: usize,
    /// Number of logical CPUs ("processing units").
    pub pus: usize,
}

/// A group of CPUs with the kernel's number for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// The kernel's ID (physical_package_id, die_id, cluster_id, core_id). Not unique for cores and dies of
    /// different packages; -1 if the host has none.
    pub id: i64,
    pub cpus: CpuSet,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// Level, from 1 to 4.
    pub level: u8,
    pub kind: CacheKind,
    pub size_bytes: Reading<u64>,
    pub line_bytes: Reading<u32>,
    /// The CPUs that share it.
    pub cpus: CpuSet,
}

impl Cache {
    fn can_be_last_level(&self) -> bool {
        matches!(self.level, 2 | 3) && self.kind != CacheKind::Instruction
    }
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    Data,
    Instruction,
    #[default]
    Unified,
}

/// A NUMA node, with or without CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// The kernel's number of the node.
    pub id: u32,
    /// Its online CPUs; empty for memory without CPUs.
    pub cpus: CpuSet,
    /// MemTotal of the node's meminfo, in bytes.
    pub memory_bytes: Reading<u64>,
    /// Distances to the nodes in the order of [`Topology::nodes`]; 10 is local.
    pub distances: Reading<Vec<u32>>,
    /// The kernel's memory tier (/sys/devices/virtual/memory_tiering): lower is faster.
    pub memory_tier: Reading<u32>,
    /// Size of the cache in front of its memory, such as HBM or DRAM before persistent memory.
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub side_cache_bytes: Reading<u64>,
}

/// CPUs of one type on a hybrid processor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CoreType {
    /// "core" (performance), "atom" (efficiency), "capacity 1024" or "clock up to 5200 MHz".
    pub name: String,
    /// The CPUs of the type.
    pub cpus: CpuSet,
    /// True if another type is faster.
    pub is_small: bool,
}

impl Topology {
    /// The group in `groups` that contains the CPU.
    pub fn group_of(groups: &[Group], cpu: CpuId) -> Option<&Group> {
        groups.iter().find(|group| group.cpus.contains(cpu))
    }

    /// The CPUs on the same core, including the CPU itself.
    pub fn siblings(&self, cpu: CpuId) -> CpuSet {
        Self::group_of(&self.cores, cpu).map_or_else(|| CpuSet::of(cpu), |core| core.cpus.clone())
    }

    /// The package of a CPU.
    pub fn package_of(&self, cpu: CpuId) -> Option<&Group> {
        Self::group_of(&self.packages, cpu)
    }

    /// The NUMA node of a CPU.
    pub fn node_of(&self, cpu: CpuId) -> Option<&Node> {
        self.nodes.iter().find(|node| node.cpus.contains(cpu))
    }

    /// The last-level cache of a CPU: the highest level with data, from the second level up. `None` for a CPU
    /// with only a known L1.
    ///
    /// Levels above the third (memory-side caches) are excluded: they belong to the memory, not to a group of
    /// cores.
    pub fn llc_of(&self, cpu: CpuId) -> Option<&Cache> {
        self.caches
            .iter()
            .filter(|cache| cache.can_be_last_level() && cache.cpus.contains(cpu))
            .max_by_key(|cache| (cache.level, cache.kind))
    }

    /// Each last-level cache once, by lowest CPU.
    pub fn llcs(&self) -> Vec<&Cache> {
        let mut candidates: Vec<&Cache> =
            self.caches.iter().filter(|cache| cache.can_be_last_level()).collect();
        candidates.sort_by_key(|cache| std::cmp::Reverse((cache.level, cache.kind)));
        let mut covered = CpuSet::new();
        let mut llcs = Vec::new();
        for cache in candidates {
            if !cache.cpus.is_subset(&covered) {
                llcs.push(cache);
            }
            covered.extend(cache.cpus.iter());
        }
        llcs.sort_by_key(|cache| cache.cpus.lowest());
        llcs
    }

    /// The second-level caches that contain data.
    pub fn l2s(&self) -> impl Iterator<Item = &Cache> {
        self.caches.iter().filter(|cache| cache.level == 2 && cache.kind != CacheKind::Instruction)
    }

    /// One past the highest CPU number that the kernel may use: its `nr_cpu_ids`.
    pub fn cpu_count(&self) -> u32 {
        let highest = |set: &CpuSet| set.highest().map_or(0, |max| max + 1);
        self.possible.known().map_or(0, highest).max(highest(&self.online)).max(highest(&self.offline))
    }

    /// The CPUs on efficiency cores: those of a hybrid processor that are not of its fastest type.
    pub fn efficiency_cpus(&self) -> CpuSet {
        self.core_types.iter().filter(|kind| kind.is_small).flat_map(|kind| kind.cpus.iter()).collect()
    }

    /// True if cores have several threads.
    pub fn has_smt(&self) -> bool {
        self.cores.iter().any(|core| core.cpus.len() > 1)
    }
}

#[cfg(test)]
mod tests;
