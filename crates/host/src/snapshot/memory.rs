//! Memory: sizes, huge pages, swap, modules.

use crate::Reading;
use serde::{Deserialize, Serialize};

/// Memory of the host and its use. Memory per NUMA node is part of the topology.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryFacts {
    /// MemTotal.
    pub total_bytes: Reading<u64>,
    /// MemAvailable.
    pub available_bytes: Reading<u64>,
    /// Pools of huge pages: per node if nodes are readable, otherwise for the whole host.
    pub huge_pages: Vec<HugePages>,
    /// Default huge page size.
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugePages {
    /// NUMA node; `None` for the whole host.
    pub node: Option<u32>,
    /// Page size.
    pub size_bytes: u64,
    /// Pages reserved.
    pub total: Reading<u64>,
    /// Pages not in use.
    pub free: Reading<u64>,
}

/// One swap area.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Swap {
    /// Device or file.
    pub path: String,
    /// Size.
    pub size_bytes: u64,
    /// In use.
    pub used_bytes: u64,
}

/// One memory module.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryModule {
    /// "PROC 1 DIMM 2".
    pub locator: String,
    /// "P0 CHANNEL A".
    pub bank: String,
    /// Size.
    pub size_bytes: u64,
    /// "DDR4".
    pub kind: String,
    /// Rated speed of the module in megatransfers per second.
    pub speed_mts: Option<u32>,
    /// Actual speed in megatransfers per second.
    pub configured_mts: Option<u32>,
    /// "Samsung".
    pub manufacturer: String,
    /// "M393A4G43AB3-CWE".
    pub part_number: String,
    /// Ranks.
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
