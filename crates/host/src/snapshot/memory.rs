//! Memory: sizes, huge pages, swap, modules.

use crate::Reading;
use serde::{Deserialize, Serialize};

/// What the host's memory is and how it is used. Memory per NUMA node is part of the topology.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryFacts {
    /// MemTotal.
    pub total_bytes: Reading<u64>,
    /// MemAvailable.
    pub available_bytes: Reading<u64>,
    /// Pools of huge pages: per node where nodes are readable, else of the whole host.
    pub huge_pages: Vec<HugePages>,
    /// Default huge page size.
    pub huge_page_default_bytes: Reading<u64>,
    /// Transparent huge pages: the chosen word of /sys/kernel/mm/transparent_hugepage/enabled.
    pub thp_enabled: Reading<String>,
    /// The chosen word of …/defrag.
    pub thp_defrag: Reading<String>,
    /// Kernel samepage merging: /sys/kernel/mm/ksm/run (0 stopped, 1 running, 2 unmerging).
    pub ksm_run: Reading<u32>,
    /// Swap areas in use; `Known` and empty when there is none.
    pub swaps: Reading<Vec<Swap>>,
    /// Memory modules (SMBIOS type 17), empty slots left out.
    pub modules: Reading<Vec<MemoryModule>>,
    /// Slots for modules, empty ones counted.
    pub module_slots: Reading<u32>,
}

/// One pool of huge pages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HugePages {
    /// NUMA node, or none for the whole host.
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
pub struct MemoryModule {
    /// "PROC 1 DIMM 2".
    pub locator: String,
    /// "P0 CHANNEL A".
    pub bank: String,
    /// Size.
    pub size_bytes: u64,
    /// "DDR4".
    pub kind: String,
    /// What the module can do, in megatransfers a second.
    pub speed_mts: Option<u32>,
    /// What it runs at.
    pub configured_mts: Option<u32>,
    /// "Samsung".
    pub manufacturer: String,
    /// "M393A4G43AB3-CWE".
    pub part_number: String,
    /// Ranks.
    pub ranks: Option<u32>,
}
