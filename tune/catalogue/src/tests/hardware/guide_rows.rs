use super::{CATALOGUE, Profile};
use lowlat_settings::Want;

/// Every setting of the tables in section 3.2.2 of the guide as HPE's menus name it, in the guide's order, with the
/// guide's value.
const GUIDE_ROWS: &[(&str, &str, &str)] = &[
    ("Workload Profile", "Custom", "workload_profile"),
    ("Dynamic Power Capping Functionality", "Disabled", "dynamic_power_capping_functionality"),
    ("Extended Memory Test", "Disabled", "extended_memory_test"),
    ("UEFI POST Discovery Mode", "Auto", "uefi_post_discovery_mode"),
    ("Embedded Diagnostics", "Disabled", "embedded_diagnostics"),
    ("Processor x2APIC Support", "Auto", "processor_x2apic_support"),
    ("AMD SMT Option", "Disabled", "smt"),
    ("Enabled Cores per Processor", "0", "enabled_cores_per_processor"),
    ("Determinism Control", "Manual", "determinism_control"),
    ("Performance Determinism", "Performance Deterministic", "performance_determinism"),
    (
        "Page Table Entry Speculative Lock Scheduling",
        "Enabled",
        "page_table_entry_speculative_lock_scheduling",
    ),
    ("Memory Refresh Rate", "1x Refresh", "memory_refresh_rate"),
    ("Memory Interleaving Mode", "Disabled", "memory_interleaving_mode"),
    ("Memory Interleave Size", "256 Bytes", "memory_interleave_size"),
    ("Memory PStates", "Disabled", "memory_pstates"),
    ("AMD Periodic Directory Rinse", "Enabled", "amd_periodic_directory_rinse"),
    ("Maximum Memory Bus Frequency", "Auto", "maximum_memory_bus_frequency"),
    ("Memory Patrol Scrubbing", "Disabled", "memory_patrol_scrubbing"),
    ("Patrol Scrub Duration", "24", "patrol_scrub_duration"),
    ("Transparent Secure Memory Encryption", "Disabled", "transparent_secure_memory_encryption"),
    ("AMD Secure Memory Encryption", "Disabled", "amd_secure_memory_encryption"),
    ("DRAM Controller Power Down", "Disabled", "dram_controller_power_down"),
    ("NUMA memory domains per socket", "One memory domain per socket", "numa_memory_domains_per_socket"),
    ("Last-Level Cache (LLC) As NUMA Node", "Disabled", "llc_as_numa_node"),
    ("AMD(R) IOMMU", "Disabled", "iommu"),
    ("AMD Virtualization Technology", "Disabled", "virtualization"),
    ("Access Control Service", "Enabled", "access_control_service"),
    ("SR-IOV", "Disabled", "sr_iov"),
    ("Minimum SEV ASID", "1", "minimum_sev_asid"),
    ("Maximum SEV ASID", "509", "maximum_sev_asid"),
    ("Boot Mode", "UEFI Mode", "boot_mode"),
    ("UEFI Optimized Boot", "Enabled", "uefi_optimized_boot"),
    ("Boot Order Policy", "Retry Boot Order Indefinitely", "boot_order_policy"),
    ("Power Regulator", "Static High Performance Mode", "power_regulator"),
    ("Minimum Processor Idle Power Core C-State", "No C-states", "core_c_states"),
    ("Data Fabric C-State Enable", "Auto", "data_fabric_cstate_enable"),
    ("C-State Efficiency Mode", "Disabled", "cstate_efficiency_mode"),
    ("AMD Core Performance Boost", "Disabled", "boost"),
    ("AMD Fmax Boost Limit Control", "Manual", "amd_fmax_boost_limit_control"),
    ("AMD Fmax Boost Limit", "3700", "amd_fmax_boost_limit"),
    ("Collaborative Power Control", "Disabled", "collaborative_power_control"),
    ("XGMI Force Link Width", "x16", "xgmi_force_link_width"),
    ("XGMI Max Link Width", "x16", "xgmi_max_link_width"),
    ("Infinity Fabric Performance State", "Disable", "infinity_fabric_performance_state"),
    ("NUMA Group Size Optimization", "Clustered", "numa_group_size_optimization"),
    ("L1 Stream HW Prefetcher", "Enabled", "l1_stream_hw_prefetcher"),
    ("L2 Stream HW Prefetcher", "Enabled", "l2_stream_hw_prefetcher"),
    ("ACPI SLIT", "Enabled", "acpi_slit"),
    ("Memory Proximity Reporting for I/O", "Enabled", "memory_proximity_reporting_for_io"),
    ("Preferred IO Bus", "Disabled", "preferred_io_bus"),
    ("Preferred IO Bus Number", "0", "preferred_io_bus_number"),
    ("ROM Selection", "Use Current ROM", "rom_selection"),
    ("Embedded Video Connection", "Auto", "embedded_video_connection"),
    ("Consistent Device Naming", "CDN Support for LOMs and Slots", "consistent_device_naming"),
    ("Mixed Power Supply Reporting", "Enabled", "mixed_power_supply_reporting"),
    ("High Precision Event Timer (HPET) ACPI Support", "Enabled", "hpet_acpi_support"),
    ("Redundant Power Supply Mode", "Balanced Mode", "redundant_power_supply_mode"),
    ("Infinity Fabric Power Management", "Enabled", "infinity_fabric_power_management"),
    ("Thermal Configuration", "Increased Cooling", "thermal_configuration"),
    ("Thermal Shutdown", "Enabled", "thermal_shutdown"),
    ("Fan Installation Requirements", "Enable Messaging", "fan_installation_requirements"),
    ("Fan Failure Policy", "Shutdown/Halt on Critical Fan Failures", "fan_failure_policy"),
    ("Extended Ambient Temperature Support", "Disabled", "extended_ambient_temperature_support"),
    ("UEFI Serial Debug Message Level", "Errors Only", "uefi_serial_debug_message_level"),
    ("POST Verbose Boot Progress", "Disabled", "post_verbose_boot_progress"),
    ("Advanced Crash Dump Mode", "Disabled", "advanced_crash_dump_mode"),
    // Shown on the startup screen at the end of the section.
    ("Advanced Memory Protection Mode", "Advanced ECC Support", "advanced_memory_protection_mode"),
];

/// Rows of the guide whose setting other makers name differently.
const CONCEPTS: [&str; 5] = ["smt", "iommu", "virtualization", "core_c_states", "boost"];

#[test]
fn every_row_of_the_guide_has_an_id_and_the_guides_value() {
    for (name, value, id) in GUIDE_ROWS {
        let is_concept = CONCEPTS.contains(id);
        let id = format!("firmware.{id}");
        let setting = CATALOGUE.find(&id).unwrap_or_else(|| panic!("no setting {id} for {name}"));
        assert_eq!(setting.name == *name, !is_concept, "{id}");
        let guide = setting.want(Profile::Guide57037);
        assert!(matches!(guide, Want::Value(guide) if guide == *value), "{id}: {guide:?}");
    }
}
