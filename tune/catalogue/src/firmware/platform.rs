//! Workload profile, startup, diagnostics, boot, advanced, thermal and debug menus.

use super::{DELL, GUIDE, LENOVO, ROW, judges};
use lowlat_settings::{Impact, Needs, Risk, Setting, Want};

const DYNAMIC_POWER_CAPPING: &[&str] = &[GUIDE, "HPE BIOS attribute registry: DynamicPowerCapping"];
const THERMAL_CONFIG: &[&str] = &[GUIDE, "HPE BIOS attribute registry: ThermalConfig"];
const THERMAL_SHUTDOWN: &[&str] = &[GUIDE, "HPE BIOS attribute registry: ThermalShutdown"];

pub const SETTINGS: &[Setting] = &[
    Setting {
        id: "firmware.workload_profile",
        name: "Workload Profile",
        reason: "A profile sets a group of BIOS settings at once. Low Latency turns power saving and boost \
                 off. Custom keeps the current values and unlocks each of them.",
        cost: "In Custom the firmware no longer keeps the settings consistent with each other.",
        impact: Impact::Medium,
        both: Want::Value("Custom"),
        hazard: "Custom alone sets nothing. Choose Low Latency first, then Custom; no restart is needed \
                 between the two. A change of profile rewrites the settings that depend on it, and a return \
                 to the old profile does not restore them. Save every setting first.",
        sources: &[GUIDE, "guide 57037 section 3.2.1"],
        ..ROW
    },
    Setting {
        id: "firmware.dynamic_power_capping_functionality",
        name: "Dynamic Power Capping Functionality",
        reason: "At startup the firmware measures the server's power draw, so that its management controller \
                 can later keep it below a limit. Keeping the limit means lowering clocks under load.",
        cost: "The management controller can no longer cap the server's power.",
        risk: Risk::Power,
        both: Want::Value("Disabled"),
        sources: DYNAMIC_POWER_CAPPING,
        ..ROW
    },
    Setting {
        id: "firmware.extended_memory_test",
        name: "Extended Memory Test",
        reason: "Tests all memory at every start. It lengthens the start and does not affect a running host.",
        cost: "Bad memory is found only later, by its errors in use.",
        risk: Risk::Ras,
        guide: Want::Value("Disabled"),
        ..ROW
    },
    Setting {
        id: "firmware.uefi_post_discovery_mode",
        name: "UEFI POST Discovery Mode",
        reason: "How many devices the firmware starts before it hands over to the operating system. It \
                 affects the time to start, not the running host.",
        guide: Want::Value("Auto"),
        sources: &[GUIDE, "HPE BIOS attribute registry: PostDiscoveryMode"],
        ..ROW
    },
    Setting {
        id: "firmware.embedded_diagnostics",
        name: "Embedded Diagnostics",
        reason: "Offers the built-in hardware tests in the startup menu. It does not affect a running host.",
        cost: "Hardware tests need a separate boot medium.",
        guide: Want::Value("Disabled"),
        ..ROW
    },
    Setting {
        id: "firmware.boot_mode",
        name: "Boot Mode",
        reason: "UEFI startup. The legacy mode hides UEFI variables and Secure Boot from the operating \
                 system.",
        effective: "/sys/firmware/efi exists.",
        both: Want::Value("UEFI Mode"),
        judge: judges::boot_mode,
        ..ROW
    },
    Setting {
        id: "firmware.uefi_optimized_boot",
        name: "UEFI Optimized Boot",
        reason: "Makes the firmware start through its native UEFI drivers. It affects the start, not the \
                 running host.",
        guide: Want::Value("Enabled"),
        ..ROW
    },
    Setting {
        id: "firmware.boot_order_policy",
        name: "Boot Order Policy",
        reason: "What the firmware does when no device boots. Endless retries bring a server back \
                 automatically after an outage of its boot network or storage.",
        guide: Want::Value("Retry Boot Order Indefinitely"),
        sources: &[GUIDE, "HPE BIOS attribute registry: BootOrderPolicy"],
        ..ROW
    },
    Setting {
        id: "firmware.rom_selection",
        name: "ROM Selection",
        reason: "Which of the two stored BIOS versions starts next. Compare firmware.bios_version between \
                 servers that should behave alike.",
        guide: Want::Value("Use Current ROM"),
        ..ROW
    },
    Setting {
        id: "firmware.embedded_video_connection",
        name: "Embedded Video Connection",
        reason: "Whether the built-in video output stays powered when no screen is attached.",
        guide: Want::Value("Auto"),
        ..ROW
    },
    Setting {
        id: "firmware.consistent_device_naming",
        name: "Consistent Device Naming",
        reason: "Names network interfaces by their location in the server, so that a role file still refers \
                 to the same port after a card is added.",
        guide: Want::Value("CDN Support for LOMs and Slots"),
        sources: &[GUIDE, "HPE BIOS attribute registry: ConsistentDevNaming"],
        ..ROW
    },
    Setting {
        id: "firmware.mixed_power_supply_reporting",
        name: "Mixed Power Supply Reporting",
        reason: "Logs a message when the power supplies are of different kinds. It does not affect a running \
                 host.",
        guide: Want::Value("Enabled"),
        sources: &[GUIDE, "HPE BIOS attribute registry: MixedPowerSupplyReporting"],
        ..ROW
    },
    Setting {
        id: "firmware.hpet_acpi_support",
        name: "High Precision Event Timer (HPET) ACPI Support",
        reason: "Exposes the HPET to the operating system. The kernel checks the TSC against it; without a \
                 second clock a drifting TSC goes unnoticed. Reading time from the HPET itself is slow, so \
                 it must not be the current clock source (sysfs.clocksource).",
        effective: "hpet is listed in /sys/devices/system/clocksource/clocksource0/available_clocksource.",
        both: Want::Value("Enabled"),
        judge: judges::hpet,
        sources: &[
            GUIDE,
            "HPE BIOS attribute registry: AcpiHpet",
            "kernel Documentation/virt/kvm/x86/timekeeping.rst",
        ],
        needs: Needs::X86,
        ..ROW
    },
    Setting {
        id: "firmware.pcie_aspm",
        name: "PCI Express ASPM",
        reason: "Lets links to devices sleep between transfers. The first packet after a pause waits for the \
                 link of the NIC.",
        cost: "More idle power.",
        risk: Risk::Power,
        impact: Impact::Medium,
        trading: Want::Value("Disabled"),
        effective: "lspci -vv shows \"ASPM Disabled\" in LnkCtl of the NICs.",
        sources: &[DELL, LENOVO, "PCI Express base specification, section 5.4"],
        ..ROW
    },
    Setting {
        id: "firmware.redundant_power_supply_mode",
        name: "Redundant Power Supply Mode",
        reason: "Balanced mode loads all power supplies equally, so none has to wake up when another fails.",
        cost: "Slightly more power lost in the supplies at low load.",
        risk: Risk::Power,
        both: Want::Value("Balanced Mode"),
        ..ROW
    },
    Setting {
        id: "firmware.thermal_configuration",
        name: "Thermal Configuration",
        reason: "How fast the fans run. A processor near its temperature limit lowers its clock. More \
                 cooling keeps it away from the limit.",
        cost: "More fan power, noise and wear.",
        risk: Risk::Power,
        impact: Impact::Medium,
        effective: "core_throttle_count and package_throttle_count do not increase under load (Intel); the \
                    clock stays constant under load.",
        trading: Want::OneOf(&["Increased Cooling", "Maximum Cooling", "Enhanced CPU Cooling"]),
        guide: Want::Value("Increased Cooling"),
        sources: THERMAL_CONFIG,
        ..ROW
    },
    Setting {
        id: "firmware.thermal_shutdown",
        name: "Thermal Shutdown",
        reason: "Shuts the server down cleanly when it gets too hot. When off, the hardware eventually cuts \
                 the power, and data is lost.",
        risk: Risk::Availability,
        both: Want::Value("Enabled"),
        sources: THERMAL_SHUTDOWN,
        ..ROW
    },
    Setting {
        id: "firmware.fan_installation_requirements",
        name: "Fan Installation Requirements",
        reason: "Reports missing fans. A missing fan later causes lower clocks.",
        risk: Risk::Ras,
        both: Want::Value("Enable Messaging"),
        ..ROW
    },
    Setting {
        id: "firmware.fan_failure_policy",
        name: "Fan Failure Policy",
        reason: "What the server does when too few fans are running to cool it.",
        cost: "The server stops when critical fans fail.",
        risk: Risk::Availability,
        both: Want::Value("Shutdown/Halt on Critical Fan Failures"),
        ..ROW
    },
    Setting {
        id: "firmware.extended_ambient_temperature_support",
        name: "Extended Ambient Temperature Support",
        reason: "Lets the server run in a hotter room than it was designed for. A hotter processor lowers \
                 its clock sooner.",
        both: Want::Value("Disabled"),
        ..ROW
    },
    Setting {
        id: "firmware.uefi_serial_debug_message_level",
        name: "UEFI Serial Debug Message Level",
        reason: "How much the firmware writes to the serial port during startup. It affects the time to \
                 start.",
        guide: Want::Value("Errors Only"),
        sources: &[GUIDE, "HPE BIOS attribute registry: UefiSerialDebugLevel"],
        ..ROW
    },
    Setting {
        id: "firmware.post_verbose_boot_progress",
        name: "POST Verbose Boot Progress",
        reason: "Shows more messages while the server starts. It does not affect a running host.",
        guide: Want::Value("Disabled"),
        sources: &[GUIDE, "HPE BIOS attribute registry: PostBootProgress"],
        ..ROW
    },
    Setting {
        id: "firmware.advanced_crash_dump_mode",
        name: "Advanced Crash Dump Mode",
        reason: "Logs more data when the server crashes. HPE advises to switch it on only when HPE support \
                 asks for it.",
        both: Want::Value("Disabled"),
        sources: &[GUIDE, "HPE BIOS attribute registry: AdvCrashDumpMode"],
        ..ROW
    },
    Setting {
        id: "firmware.bios_version",
        name: "BIOS version and date",
        reason: "Firmware versions change timing and defaults. Two servers are comparable only if their \
                 versions are known. The guide's figures belong to BIOS A42 1.24 of 04/29/2020.",
        effective: "xsos --bios, or the decoded SMBIOS type 0.",
        both: Want::State("known"),
        judge: judges::bios_version,
        sources: &["guide 57037 section 3.3", "SMBIOS specification (DMTF DSP0134) type 0"],
        ..ROW
    },
];
