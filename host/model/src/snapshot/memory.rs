//! Memory: sizes, huge pages, swap, modules.

use crate::Reading;
use serde::{Deserialize, Serialize};

/// Memory of the host and its use. Memory per NUMA node is part of the topology.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryFacts {
    /// MemTotal of /proc/meminfo, in bytes.
    pub total_bytes: Reading<u64>,
    /// MemAvailable of /proc/meminfo, in bytes.
    pub available_bytes: Reading<u64>,
    /// Pools of huge pages: per node if nodes are readable, otherwise for the whole host.
    pub huge_pages: Vec<HugePages>,
    pub huge_page_default_bytes: Reading<u64>,
    /// Transparent huge pages: the chosen word of /sys/kernel/mm/transparent_hugepage/enabled.
    pub thp_enabled: Reading<String>,
    /// The chosen word of …/defrag.
    pub thp_defrag: Reading<String>,
    /// Kernel samepage merging: /sys/kernel/mm/ksm/run (0 stopped, 1 running, 2 unmerging).
    pub ksm_run: Reading<u32>,
    /// Swap areas in use; `Known` and empty if there are none.
    pub swaps: Reading<Vec<Swap>>,
    /// Memory modules (SMBIOS type 17), without empty slots.
    pub modules: Reading<Vec<MemoryModule>>,
    /// Slots for modules, including empty ones.
    pub module_slots: Reading<u32>,
    /// The most memory that these slots support (SMBIOS type 16).
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub capacity_bytes_max: Reading<u64>,
}

/// One pool of huge pages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HugePages {
    /// NUMA node; `None` for the whole host.
    pub node: Option<u32>,
    pub size_bytes: u64,
    /// Pages reserved, whether used or free.
    pub total: Reading<u64>,
    pub free: Reading<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Swap {
    /// Path of the device or file.
    pub path: String,
    pub size_bytes: u64,
    pub used_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryModule {
    /// Slot, in the firmware's words: "PROC 1 DIMM 2".
    pub locator: String,
    /// Bank, in the firmware's words: "P0 CHANNEL A".
    pub bank: String,
    pub size_bytes: u64,
    /// Type of the memory: "DDR4".
    pub kind: String,
    /// Rated speed of the module in megatransfers per second.
    pub speed_mts: Option<u32>,
    /// Actual speed in megatransfers per second.
    pub configured_mts: Option<u32>,
    pub manufacturer: String,
    /// The manufacturer's part number: "M393A4G43AB3-CWE".
    pub part_number: String,
    pub ranks: Option<u32>,
    /// Width including the bits for error correction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_width_bits: Option<u32>,
    /// Width of the data alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_width_bits: Option<u32>,
    /// Lowest voltage that the module supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voltage_mv_min: Option<u32>,
    /// Highest voltage that the module supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voltage_mv_max: Option<u32>,
    /// Voltage at which the module runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voltage_mv: Option<u32>,
}
