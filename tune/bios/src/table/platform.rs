//! Workload profile, startup, platform and thermal menus.

use super::{Row, cisco, dell, hpe, label, row};

pub(super) const RBSU: &[Row] = &[row("firmware.workload_profile").of(&[
    hpe(&["WorkloadProfile"]),
    dell(&["SysProfile"]),
    label(&["Choose Operating Mode", "Power Technology"]).spelled(&[("CustomMode", "Custom")]),
])];

pub(super) const BOOT_TIME: &[Row] = &[
    row("firmware.dynamic_power_capping_functionality").of(&[hpe(&["DynamicPowerCapping"])]),
    row("firmware.extended_memory_test")
        .weakened_by(&["Disabled"])
        .of(&[hpe(&["ExtendedMemTest"]), dell(&["MemTest"])]),
    row("firmware.uefi_post_discovery_mode").of(&[hpe(&["PostDiscoveryMode"])]),
];

pub(super) const DIAGNOSTICS: &[Row] =
    &[row("firmware.embedded_diagnostics").of(&[hpe(&["EmbeddedDiagnostics"])])];

pub(super) const BOOT: &[Row] = &[
    row("firmware.boot_mode").of(&[
        hpe(&["BootMode"]).spelled(&[("Uefi", "UEFI Mode"), ("LegacyBios", "Legacy BIOS Mode")]),
        dell(&["BootMode"]).spelled(&[("Uefi", "UEFI Mode"), ("Bios", "Legacy BIOS Mode")]),
        cisco(&["BootType"]).spelled(&[("UEFIBoot", "UEFI Mode"), ("LegacyBoot", "Legacy BIOS Mode")]),
        label(&["System Boot Mode", "Boot mode select"])
            .spelled(&[("UEFI", "UEFI Mode"), ("LEGACY", "Legacy BIOS Mode")]),
    ]),
    row("firmware.uefi_optimized_boot").of(&[hpe(&["UefiOptimizedBoot"])]),
    row("firmware.boot_order_policy").of(&[
        hpe(&["BootOrderPolicy"]).spelled(&[
            ("RetryIndefinitely", "Retry Boot Order Indefinitely"),
            ("AttemptOnce", "Attempt Boot Order Once"),
            ("ResetAfterFailed", "Reset After Failed Boot Attempt"),
        ]),
        dell(&["BootSeqRetry"]).spelled(&[("Enabled", "Retry Boot Order Indefinitely")]),
        label(&["Infinite Boot Retry"]).spelled(&[("Enabled", "Retry Boot Order Indefinitely")]),
    ]),
];

pub(super) const ADVANCED: &[Row] = &[
    row("firmware.rom_selection").of(&[hpe(&["RomSelection"])
        .spelled(&[("CurrentRom", "Use Current ROM"), ("BackupRom", "Switch to Backup ROM")])]),
    row("firmware.embedded_video_connection").of(&[hpe(&["EmbVideoConnection"])]),
    row("firmware.consistent_device_naming").of(&[hpe(&["ConsistentDevNaming"]).spelled(&[
        ("LomsAndSlots", "CDN Support for LOMs and Slots"),
        ("LomsOnly", "CDN Support for LOMs Only"),
    ])]),
    row("firmware.mixed_power_supply_reporting").of(&[hpe(&["MixedPowerSupplyReporting"])]),
    row("firmware.hpet_acpi_support")
        .of(&[hpe(&["AcpiHpet"]), label(&["High Precision Event Timer", "High Precision Timer", "HPET"])]),
    row("firmware.pcie_aspm").of(&[
        hpe(&["PcieGlobalAspm"]),
        dell(&["PcieAspmL1"]),
        cisco(&["AspmSupport", "PcieAspmControl"]),
        label(&["ASPM", "PCIe ASPM Support (Global)", "PCIe ASPM"]),
    ]),
];

pub(super) const POWER_SUPPLIES: &[Row] = &[row("firmware.redundant_power_supply_mode")
    .of(&[hpe(&["RedundantPowerSupply", "RedundantPowerSupplySystemDomain"])])];

pub(super) const FANS: &[Row] = &[
    row("firmware.thermal_configuration")
        .of(&[hpe(&["ThermalConfig"]).spelled(&[("MaxCooling", "Maximum Cooling")])]),
    row("firmware.thermal_shutdown").of(&[hpe(&["ThermalShutdown"])]),
    row("firmware.fan_installation_requirements").of(&[hpe(&["FanInstallReq"])]),
    row("firmware.fan_failure_policy").of(&[hpe(&["FanFailPolicy"]).spelled(&[
        ("Shutdown", "Shutdown/Halt on Critical Fan Failures"),
        ("Allow", "Allow Operation with Critical Fan Failures"),
    ])]),
    row("firmware.extended_ambient_temperature_support").of(&[hpe(&["ExtendedAmbientTemp"])]),
];

pub(super) const DEBUG: &[Row] = &[
    row("firmware.uefi_serial_debug_message_level").of(&[hpe(&["UefiSerialDebugLevel"])]),
    row("firmware.post_verbose_boot_progress").of(&[hpe(&["PostBootProgress"])]),
    row("firmware.advanced_crash_dump_mode").of(&[hpe(&["AdvCrashDumpMode"])]),
];
