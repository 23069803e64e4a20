//! Workload profile, startup, platform and thermal menus.

use super::{Row, dell, hpe, lenovo, risky, row, supermicro};

pub(super) const RBSU: &[Row] =
    &[row("firmware.workload_profile", &[hpe("WorkloadProfile", &[]), dell("SysProfile", &[])])];

pub(super) const BOOT_TIME: &[Row] = &[
    row("firmware.dynamic_power_capping_functionality", &[hpe("DynamicPowerCapping", &[])]),
    risky(
        "firmware.extended_memory_test",
        &["Disabled"],
        &[hpe("ExtendedMemTest", &[]), dell("MemTest", &[])],
    ),
    row("firmware.uefi_post_discovery_mode", &[hpe("PostDiscoveryMode", &[])]),
];

pub(super) const DIAGNOSTICS: &[Row] =
    &[row("firmware.embedded_diagnostics", &[hpe("EmbeddedDiagnostics", &[])])];

pub(super) const BOOT: &[Row] = &[
    row(
        "firmware.boot_mode",
        &[
            hpe("BootMode", &[("Uefi", "UEFI Mode"), ("LegacyBios", "Legacy BIOS Mode")]),
            dell("BootMode", &[("Uefi", "UEFI Mode"), ("Bios", "Legacy BIOS Mode")]),
            lenovo("BootModes_SystemBootMode", &[]),
        ],
    ),
    row("firmware.uefi_optimized_boot", &[hpe("UefiOptimizedBoot", &[])]),
    row(
        "firmware.boot_order_policy",
        &[
            hpe(
                "BootOrderPolicy",
                &[
                    ("RetryIndefinitely", "Retry Boot Order Indefinitely"),
                    ("AttemptOnce", "Attempt Boot Order Once"),
                    ("ResetAfterFailed", "Reset After Failed Boot Attempt"),
                ],
            ),
            dell("BootSeqRetry", &[("Enabled", "Retry Boot Order Indefinitely")]),
            lenovo("BootModes_InfiniteBootRetry", &[("Enabled", "Retry Boot Order Indefinitely")]),
        ],
    ),
];

pub(super) const ADVANCED: &[Row] = &[
    row(
        "firmware.rom_selection",
        &[hpe("RomSelection", &[("CurrentRom", "Use Current ROM"), ("BackupRom", "Switch to Backup ROM")])],
    ),
    row("firmware.embedded_video_connection", &[hpe("EmbVideoConnection", &[])]),
    row(
        "firmware.consistent_device_naming",
        &[hpe(
            "ConsistentDevNaming",
            &[("LomsAndSlots", "CDN Support for LOMs and Slots"), ("LomsOnly", "CDN Support for LOMs Only")],
        )],
    ),
    row("firmware.mixed_power_supply_reporting", &[hpe("MixedPowerSupplyReporting", &[])]),
    row("firmware.hpet_acpi_support", &[hpe("AcpiHpet", &[]), supermicro("HighPrecisionEventTimer", &[])]),
];

pub(super) const POWER_SUPPLIES: &[Row] = &[row(
    "firmware.redundant_power_supply_mode",
    &[hpe("RedundantPowerSupply", &[]), hpe("RedundantPowerSupplySystemDomain", &[])],
)];

pub(super) const FANS: &[Row] = &[
    row("firmware.thermal_configuration", &[hpe("ThermalConfig", &[("MaxCooling", "Maximum Cooling")])]),
    row("firmware.thermal_shutdown", &[hpe("ThermalShutdown", &[])]),
    row("firmware.fan_installation_requirements", &[hpe("FanInstallReq", &[])]),
    row(
        "firmware.fan_failure_policy",
        &[hpe(
            "FanFailPolicy",
            &[
                ("Shutdown", "Shutdown/Halt on Critical Fan Failures"),
                ("Allow", "Allow Operation with Critical Fan Failures"),
            ],
        )],
    ),
    row("firmware.extended_ambient_temperature_support", &[hpe("ExtendedAmbientTemp", &[])]),
];

pub(super) const DEBUG: &[Row] = &[
    row("firmware.uefi_serial_debug_message_level", &[hpe("UefiSerialDebugLevel", &[])]),
    row("firmware.post_verbose_boot_progress", &[hpe("PostBootProgress", &[])]),
    row("firmware.advanced_crash_dump_mode", &[hpe("AdvCrashDumpMode", &[])]),
];
