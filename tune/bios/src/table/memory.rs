//! Memory menu.

use super::{Row, cisco, dell, hpe, label, row};

/// Spellings of the number of memory domains in AMD's reference setup and its derivatives.
const NPS: &[(&str, &str)] = &[
    ("NPS1", "One memory domain per socket"),
    ("NPS2", "Two memory domains per socket"),
    ("NPS4", "Four memory domains per socket"),
    ("1", "One memory domain per socket"),
    ("2", "Two memory domains per socket"),
    ("4", "Four memory domains per socket"),
];
/// Intel's sub-NUMA clustering.
const SNC: &[(&str, &str)] = &[
    ("Disabled", "One memory domain per socket"),
    ("Disable", "One memory domain per socket"),
    ("2-Way", "Two memory domains per socket"),
    ("SNC2", "Two memory domains per socket"),
    ("SNC4", "Four memory domains per socket"),
];
const INTERLEAVING: &[(&str, &str)] = &[("Enabled", "Auto"), ("Enable", "Auto")];
const SCRUB: &[(&str, &str)] = &[
    ("Standard", "Enabled"),
    ("Extended", "Enabled"),
    ("Enable at End of POST", "Enabled"),
    ("Enable in Background", "Enabled"),
];

pub(super) const MEMORY: &[Row] = &[
    row("firmware.memory_refresh_rate").weakened_by(&["1x Refresh"]).of(&[
        hpe(&["MemRefreshRate"]).spelled(&[("Refreshx1", "1x Refresh"), ("Refreshx2", "2x Refresh")]),
        dell(&["MemRefreshRate"]).spelled(&[("1x", "1x Refresh"), ("2x", "2x Refresh")]).with_custom_only(),
        cisco(&["MemoryRefreshRate"]),
        label(&["DRAM Refresh Rate"]).spelled(&[
            ("1x", "1x Refresh"),
            ("2x", "2x Refresh"),
            ("7.8 usec", "1x Refresh"),
            ("3.9 usec", "2x Refresh"),
        ]),
        label(&["2x Refresh Rate", "DDR 2x Refresh Enable", "2x Refresh"]).spelled(&[
            ("Disabled", "1x Refresh"),
            ("Disable", "1x Refresh"),
            ("Enabled", "2x Refresh"),
            ("Enable", "2x Refresh"),
        ]),
    ]),
    row("firmware.memory_interleaving_mode").of(&[
        // Gen10 offers Auto, Gen10 Plus Enabled: both interleave.
        hpe(&["AmdMemoryInterleaving", "ChannelInterleaving"])
            .spelled(&[("Enabled", "Auto"), ("Disabled", "Disabled")]),
        dell(&["ImcInterleave"]),
        cisco(&["IMCInterleave"]),
        cisco(&["CbsDfCmnMemIntlv"]),
        label(&["Memory Interleave", "Memory Interleaving"]).spelled(INTERLEAVING),
    ]),
    row("firmware.memory_interleave_size")
        .of(&[hpe(&["AmdMemoryIntlvSize"]).spelled(&[("AmdMemIntlv256", "256 Bytes")])]),
    row("firmware.cxl_memory").of(&[
        dell(&["CXLMemoryAttribute"]).spelled(&[("SpecialPurposeMemory", "Special purpose memory")]),
        label(&["CXL SPM"])
            .spelled(&[("Enabled", "Special purpose memory"), ("Enable", "Special purpose memory")]),
    ]),
    row("firmware.memory_pstates").of(&[hpe(&["AmdMemPStates"])]),
    row("firmware.amd_periodic_directory_rinse").of(&[hpe(&["AmdPeriodicDirectoryRinse"])]),
    row("firmware.maximum_memory_bus_frequency").of(&[
        hpe(&["MaxMemBusFreqMHz"])
            .spelled(&[("MaxMemBusFreq2933", "2933 MT/s"), ("MaxMemBusFreq3200", "3200 MT/s")]),
        dell(&["MemFrequency"]).spelled(&[("MaxPerf", "Auto")]).with_custom_only(),
        label(&["Memory Speed", "Memory Target Speed", "Memory Clock Speed", "Memory Frequency"])
            .spelled(&[("Maximum", "Auto"), ("MaximumPerformance", "Auto")]),
    ]),
    row("firmware.memory_patrol_scrubbing").weakened_by(&["Disabled"]).of(&[
        hpe(&["MemPatrolScrubbing"]),
        dell(&["MemPatrolScrub"]).spelled(SCRUB).with_custom_only(),
        cisco(&["PatrolScrub"]).spelled(SCRUB),
        label(&["Patrol Scrub", "Memory Patrol Scrub"]).spelled(SCRUB),
    ]),
    row("firmware.patrol_scrub_duration").of(&[
        hpe(&["PatrolScrubDuration"]),
        cisco(&["CbsDfCmnDramScrubTime"]).spelled(&[("24 hours", "24")]),
        label(&["DRAM Scrub Time"]).spelled(&[("24 hours", "24")]),
    ]),
    row("firmware.transparent_secure_memory_encryption").weakened_by(&["Disabled"]).of(&[
        hpe(&["TransparentSecureMemoryEncryption"]),
        dell(&["TransparentSme"]),
        cisco(&["CbsCmnMemTsmeEnableDdr"]),
        label(&["TSME"]),
    ]),
    row("firmware.amd_secure_memory_encryption").weakened_by(&["Disabled"]).of(&[
        hpe(&["AmdSecureMemoryEncryption"]),
        dell(&["Sme"]),
        cisco(&["CbsCmnCpuSmee"]),
        label(&["SMEE"]),
    ]),
    row("firmware.dram_controller_power_down").of(&[
        hpe(&["DramControllerPowerDown"]),
        cisco(&["CbsCmnMemCtrllerPwrDnEnDdr"]),
        label(&["Memory Power Down Enable", "Power Down Enable", "Memory Power Management"]),
    ]),
    row("firmware.numa_memory_domains_per_socket").of(&[
        hpe(&["NumaMemoryDomainsPerSocket"]),
        hpe(&["SubNumaClustering"]).spelled(SNC),
        dell(&["NumaNodesPerSocket"]).spelled(NPS),
        dell(&["SubNumaCluster"]).spelled(SNC),
        cisco(&["CbsDfCmnDramNps"]).spelled(NPS),
        cisco(&["SncEn"]).spelled(SNC),
        label(&["NUMA Nodes Per Socket"]).spelled(NPS),
        label(&["SNC", "Sub NUMA Clustering", "Sub NUMA Cluster"]).spelled(SNC),
    ]),
    row("firmware.llc_as_numa_node").of(&[
        hpe(&["LastLevelCacheAsNUMANode"]),
        dell(&["CcxAsNumaDomain"]),
        cisco(&["CbsDfCmnAcpiSratL3Numa"]),
        label(&["ACPI SRAT L3 Cache as NUMA Domain"]),
    ]),
];

pub(super) const PROTECTION: &[Row] = &[row("firmware.advanced_memory_protection_mode")
    .weakened_by(&["Advanced ECC Support"])
    .of(&[hpe(&["AdvancedMemProtection"]).spelled(&[("AdvancedEcc", "Advanced ECC Support")])])];
