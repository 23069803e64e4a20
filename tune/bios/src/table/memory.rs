//! Memory menu.

use super::{Row, dell, hpe, lenovo, risky, row, supermicro};

/// Spellings of the number of memory domains in AMD's reference setup and its derivatives.
const NPS: &[(&str, &str)] = &[
    ("NPS1", "One memory domain per socket"),
    ("NPS2", "Two memory domains per socket"),
    ("NPS4", "Four memory domains per socket"),
];

pub(super) const MEMORY: &[Row] = &[
    risky(
        "firmware.memory_refresh_rate",
        &["1x Refresh"],
        &[
            hpe("MemRefreshRate", &[("Refreshx1", "1x Refresh"), ("Refreshx2", "2x Refresh")]),
            dell("MemRefreshRate", &[("1x", "1x Refresh"), ("2x", "2x Refresh")]),
            lenovo(
                "Memory_DRAMRefreshRate",
                &[("DRAMRefreshRate_1x", "1x Refresh"), ("DRAMRefreshRate_2x", "2x Refresh")],
            ),
        ],
    ),
    row(
        "firmware.memory_interleaving_mode",
        &[
            // Gen10 offers Auto, Gen10 Plus Enabled: both interleave.
            hpe("AmdMemoryInterleaving", &[("Enabled", "Auto"), ("Disabled", "Disabled")]),
            lenovo("Memory_Interleave", &[("Enabled", "Auto")]),
            supermicro("MemoryInterleaving", &[("Enabled", "Auto")]),
        ],
    ),
    row("firmware.memory_interleave_size", &[hpe("AmdMemoryIntlvSize", &[("AmdMemIntlv256", "256 Bytes")])]),
    row("firmware.memory_pstates", &[hpe("AmdMemPStates", &[])]),
    row("firmware.amd_periodic_directory_rinse", &[hpe("AmdPeriodicDirectoryRinse", &[])]),
    row(
        "firmware.maximum_memory_bus_frequency",
        &[
            hpe(
                "MaxMemBusFreqMHz",
                &[("MaxMemBusFreq2933", "2933 MT/s"), ("MaxMemBusFreq3200", "3200 MT/s")],
            ),
            dell("MemFrequency", &[("MaxPerf", "Auto")]),
            lenovo("Memory_MemorySpeed", &[("Maximum", "Auto")]),
            supermicro("MemoryTargetSpeed", &[]),
        ],
    ),
    risky(
        "firmware.memory_patrol_scrubbing",
        &["Disabled"],
        &[
            hpe("MemPatrolScrubbing", &[]),
            dell("MemPatrolScrub", &[("Standard", "Enabled"), ("Extended", "Enabled")]),
        ],
    ),
    row(
        "firmware.patrol_scrub_duration",
        &[
            hpe("PatrolScrubDuration", &[]),
            lenovo("Memory_DRAMScrubTime", &[("DRAMScrubTime_24Hours", "24")]),
            supermicro("DRAMScrubTime", &[("24 hours", "24")]),
        ],
    ),
    risky(
        "firmware.transparent_secure_memory_encryption",
        &["Disabled"],
        &[
            hpe("TransparentSecureMemoryEncryption", &[]),
            dell("TransparentSme", &[]),
            lenovo("Memory_TSME", &[]),
            supermicro("TSME", &[]),
        ],
    ),
    risky(
        "firmware.amd_secure_memory_encryption",
        &["Disabled"],
        &[
            hpe("AmdSecureMemoryEncryption", &[]),
            dell("Sme", &[]),
            lenovo("Memory_SMEE", &[]),
            supermicro("SMEE", &[]),
        ],
    ),
    row(
        "firmware.dram_controller_power_down",
        &[
            hpe("DramControllerPowerDown", &[]),
            lenovo("Memory_MemoryPowerDownEnable", &[]),
            supermicro("PowerDownEnable", &[]),
        ],
    ),
    row(
        "firmware.numa_memory_domains_per_socket",
        &[
            hpe("NumaMemoryDomainsPerSocket", &[]),
            dell(
                "NumaNodesPerSocket",
                &[
                    ("1", "One memory domain per socket"),
                    ("2", "Two memory domains per socket"),
                    ("4", "Four memory domains per socket"),
                ],
            ),
            lenovo("Memory_NUMANodesperSocket", NPS),
            supermicro("NUMANodesPerSocket", NPS),
        ],
    ),
    row(
        "firmware.llc_as_numa_node",
        &[
            hpe("LastLevelCacheAsNUMANode", &[]),
            dell("CcxAsNumaDomain", &[]),
            lenovo("Processors_ACPISRATL3CacheasNUMADomain", &[]),
            supermicro("ACPISRATL3CacheAsNUMADomain", &[]),
        ],
    ),
];

pub(super) const PROTECTION: &[Row] = &[risky(
    "firmware.advanced_memory_protection_mode",
    &["Advanced ECC Support"],
    &[hpe("AdvancedMemProtection", &[("AdvancedEcc", "Advanced ECC Support")])],
)];
