//! The kernel's description of a host's topology, file by file, before anything is derived from it.

use super::CacheKind;
use crate::{CpuId, CpuSet, Reading};
use std::collections::BTreeMap;

/// The raw facts of a host's topology. Nothing here is checked: files may be missing, contradict each other,
/// or name CPUs that are not running.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RawTopology {
    /// CPUs that could ever exist (/sys/devices/system/cpu/possible).
    pub possible: Reading<CpuSet>,
    /// CPUs that are plugged in (/sys/devices/system/cpu/present).
    pub present: Reading<CpuSet>,
    /// CPUs that are running (/sys/devices/system/cpu/online).
    pub online: Reading<CpuSet>,
    /// CPUs that the kernel isolated (/sys/devices/system/cpu/isolated).
    pub isolated: Reading<CpuSet>,
    /// CPUs that may run without a tick (/sys/devices/system/cpu/nohz_full).
    pub nohz_full: Reading<CpuSet>,
    /// The kernel's description of each CPU: those with a directory in sysfs or, without sysfs, those in
    /// /proc.
    pub cpus: BTreeMap<CpuId, RawCpu>,
    /// The nodes with a directory below /sys/devices/system/node.
    pub nodes: BTreeMap<u32, RawNode>,
    /// Memory tiers: tier number to its nodes (/sys/devices/virtual/memory_tiering/memory_tierN/nodelist).
    pub memory_tiers: BTreeMap<u32, Reading<CpuSet>>,
    /// CPU types of a hybrid processor by name (/sys/devices/cpu_core/cpus is "core").
    pub core_types: BTreeMap<String, Reading<CpuSet>>,
    /// MemTotal of the whole host, for a kernel without NUMA nodes.
    pub memory_bytes: Reading<u64>,
    /// Oddities found by the reader, one sentence each.
    pub notes: Vec<String>,
}

/// The raw facts of one CPU, from the files of the same names in cpuN/topology unless stated otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawCpu {
    /// cpuN/online: `false` if switched off. Absent if the CPU cannot be switched.
    pub is_online: Reading<bool>,
    /// True if the kernel describes its location (a directory cpuN/topology, which offline CPUs lack).
    pub has_topology: bool,
    /// topology/physical_package_id.
    pub package_id: Reading<i64>,
    pub die_id: Reading<i64>,
    pub cluster_id: Reading<i64>,
    pub core_id: Reading<i64>,
    /// topology/package_cpus, formerly core_siblings.
    pub package_cpus: Reading<CpuSet>,
    pub die_cpus: Reading<CpuSet>,
    pub cluster_cpus: Reading<CpuSet>,
    /// topology/core_cpus, formerly thread_siblings.
    pub core_cpus: Reading<CpuSet>,
    /// cpuN/cpu_capacity, 1024 for the fastest.
    pub capacity: Reading<u32>,
    /// Highest clock of the hardware (cpufreq/cpuinfo_max_freq).
    pub clock_khz_max: Reading<u32>,
    /// acpi_cppc/highest_perf; read only without [`RawCpu::clock_khz_max`], because it can interrupt the CPU.
    pub performance_max: Reading<u32>,
    /// Guaranteed clock, in kHz (cpufreq/base_frequency).
    pub base_clock_khz: Reading<u32>,
    /// One entry per directory cache/indexN.
    pub caches: Vec<RawCache>,
}

/// One cache, as described by one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawCache {
    /// Level, from 1 to 4.
    pub level: u8,
    pub kind: CacheKind,
    pub size_bytes: Reading<u64>,
    pub line_bytes: Reading<u32>,
    /// The CPUs that share it.
    pub cpus: Reading<CpuSet>,
}

/// The raw facts of one NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawNode {
    /// CPUs in nodeN/cpumap or nodeN/cpulist.
    pub cpus: Reading<CpuSet>,
    /// MemTotal of nodeN/meminfo, in bytes.
    pub memory_bytes: Reading<u64>,
    /// Distances to the online nodes (nodeN/distance).
    pub distances: Reading<Vec<u32>>,
    /// The largest nodeN/memory_side_cache/indexN/size, in bytes.
    pub side_cache_bytes: Reading<u64>,
}
