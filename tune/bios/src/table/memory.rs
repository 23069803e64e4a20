//! Memory menu.

use super::{Row, dell, hpe, lenovo, row, supermicro};

/// Spellings of the number of memory domains in AMD's reference setup and its derivatives.
const NPS: &[(&str, &str)] = &[
    ("NPS1", "One memory domain per socket"),
    ("NPS2", "Two memory domains per socket"),
    ("NPS4", "Four memory domains per socket"),
];

pub(super) const MEMORY: &[Row] = &[
    row("firmware.memory_refresh_rate").weakened_by(&["1x Refresh"]).of(&[
        hpe("MemRefreshRate").spelled(&[("Refreshx1", "1x Refresh"), ("Refreshx2", "2x Refresh")]),
        dell("MemRefreshRate").spelled(&[("1x", "1x Refresh"), ("2x", "2x Refresh")]),
        lenovo("Memory_DRAMRefreshRate")
            .spelled(&[("DRAMRefreshRate_1x", "1x Refresh"), ("DRAMRefreshRate_2x", "2x Refresh")]),
    ]),
    row("firmware.memory_interleaving_mode").of(&[
        // Gen10 offers Auto, Gen10 Plus Enabled: both interleave.
        hpe("AmdMemoryInterleaving").spelled(&[("Enabled", "Auto"), ("Disabled", "Disabled")]),
        lenovo("Memory_Interleave").spelled(&[("Enabled", "Auto")]),
        supermicro("MemoryInterleaving").spelled(&[("Enabled", "Auto")]),
    ]),
    row("firmware.memory_interleave_size")
        .of(&[hpe("AmdMemoryIntlvSize").spelled(&[("AmdMemIntlv256", "256 Bytes")])]),
    row("firmware.memory_pstates").of(&[hpe("AmdMemPStates")]),
    row("firmware.amd_periodic_directory_rinse").of(&[hpe("AmdPeriodicDirectoryRinse")]),
    row("firmware.maximum_memory_bus_frequency").of(&[
        hpe("MaxMemBusFreqMHz")
            .spelled(&[("MaxMemBusFreq2933", "2933 MT/s"), ("MaxMemBusFreq3200", "3200 MT/s")]),
        dell("MemFrequency").spelled(&[("MaxPerf", "Auto")]),
        lenovo("Memory_MemorySpeed").spelled(&[("Maximum", "Auto")]),
        supermicro("MemoryTargetSpeed"),
    ]),
    row("firmware.memory_patrol_scrubbing").weakened_by(&["Disabled"]).of(&[
        hpe("MemPatrolScrubbing"),
        dell("MemPatrolScrub").spelled(&[("Standard", "Enabled"), ("Extended", "Enabled")]),
    ]),
    row("firmware.patrol_scrub_duration").of(&[
        hpe("PatrolScrubDuration"),
        lenovo("Memory_DRAMScrubTime").spelled(&[("DRAMScrubTime_24Hours", "24")]),
        supermicro("DRAMScrubTime").spelled(&[("24 hours", "24")]),
    ]),
    row("firmware.transparent_secure_memory_encryption").weakened_by(&["Disabled"]).of(&[
        hpe("TransparentSecureMemoryEncryption"),
        dell("TransparentSme"),
        lenovo("Memory_TSME"),
        supermicro("TSME"),
    ]),
    row("firmware.amd_secure_memory_encryption").weakened_by(&["Disabled"]).of(&[
        hpe("AmdSecureMemoryEncryption"),
        dell("Sme"),
        lenovo("Memory_SMEE"),
        supermicro("SMEE"),
    ]),
    row("firmware.dram_controller_power_down").of(&[
        hpe("DramControllerPowerDown"),
        lenovo("Memory_MemoryPowerDownEnable"),
        supermicro("PowerDownEnable"),
    ]),
    row("firmware.numa_memory_domains_per_socket").of(&[
        hpe("NumaMemoryDomainsPerSocket"),
        dell("NumaNodesPerSocket").spelled(&[
            ("1", "One memory domain per socket"),
            ("2", "Two memory domains per socket"),
            ("4", "Four memory domains per socket"),
        ]),
        lenovo("Memory_NUMANodesperSocket").spelled(NPS),
        supermicro("NUMANodesPerSocket").spelled(NPS),
    ]),
    row("firmware.llc_as_numa_node").of(&[
        hpe("LastLevelCacheAsNUMANode"),
        dell("CcxAsNumaDomain"),
        lenovo("Processors_ACPISRATL3CacheasNUMADomain"),
        supermicro("ACPISRATL3CacheAsNUMADomain"),
    ]),
];

pub(super) const PROTECTION: &[Row] = &[row("firmware.advanced_memory_protection_mode")
    .weakened_by(&["Advanced ECC Support"])
    .of(&[hpe("AdvancedMemProtection").spelled(&[("AdvancedEcc", "Advanced ECC Support")])])];
