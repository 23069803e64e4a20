//! Power and performance menu, advanced power options.

use super::{CISCO, DELL, DELL_GUIDE, EPYC, GUIDE, HPE, INTEL, LENOVO, ROW, judges};
use lowlat_settings::{Impact, Needs, Risk, Setting, Want};

pub const SETTINGS: &[Setting] = &[
    Setting {
        id: "firmware.power_regulator",
        name: "Power Regulator",
        reason: "What controls the clock. Static High Performance holds the highest state regardless of the \
                 operating system. OS Control leaves it to the kernel, where the performance governor does \
                 the same for the CPUs that need it.",
        cost: "Static High Performance: every core draws full power all the time, even when idle.",
        risk: Risk::Power,
        impact: Impact::Medium,
        effective: "the start-up screen shows Power Regulator Mode; the clock of every CPU stays at its highest.",
        trading: Want::OneOf(&["Static High Performance Mode", "OS Control Mode"]),
        guide: Want::Value("Static High Performance Mode"),
        judge: judges::power_regulator,
        sources: &[GUIDE, "HPE BIOS attribute registry: PowerRegulator"],
        ..ROW
    },
    Setting {
        id: "firmware.core_c_states",
        name: "Core C-states",
        reason: "The deepest idle state that the firmware offers. Deeper states take longer to leave, and \
                 the next message waits for it.",
        cost: "More idle power and heat. Idle cores no longer leave power for the boost of busy ones.",
        risk: Risk::Power,
        impact: Impact::Medium,
        effective: "/sys/devices/system/cpu/cpu*/cpuidle lists no state beyond POLL and C1.",
        trading: Want::OneOf(&["No C-states", "C1 State"]),
        guide: Want::Value("No C-states"),
        hazard: "The kernel may use its own idle states (intel_idle) or disable states per CPU. With \
                 sysfs.cpuidle the isolated CPUs stay awake and the others may sleep.",
        judge: judges::idle_states,
        sources: &[
            GUIDE,
            "HPE BIOS attribute registry: MinProcIdlePower",
            "kernel Documentation/admin-guide/pm/cpuidle.rst",
        ],
        ..ROW
    },
    Setting {
        id: "firmware.c1e",
        name: "C1E (Enhanced Halt State)",
        reason: "Lowers clock and voltage of a core that halts. The core takes longer to leave the state, and \
                 starts at the lower clock.",
        cost: "More idle power.",
        risk: Risk::Power,
        impact: Impact::Medium,
        trading: Want::Value("Disabled"),
        sources: &[DELL_GUIDE, DELL, LENOVO],
        ..INTEL
    },
    Setting {
        id: "firmware.package_c_state",
        name: "Package C-state limit",
        reason: "Lets the parts that cores share, such as the last-level cache and the memory controller, \
                 sleep when all cores idle. The first access afterwards waits for them.",
        cost: "More idle power.",
        risk: Risk::Power,
        impact: Impact::Medium,
        trading: Want::Value("No package C-state"),
        sources: &[HPE, CISCO],
        ..INTEL
    },
    Setting {
        id: "firmware.monitor_mwait",
        name: "MONITOR/MWAIT",
        reason: "The instructions with which Linux enters C-states, and wakes an idle CPU without an interrupt. \
                 Dell's guide for low latency disables them to keep the kernel from deep states. sysfs.cpuidle \
                 does that and keeps the faster wake-up.",
        trading: Want::OneOf(&["Enabled", "Auto"]),
        sources: &[DELL_GUIDE, "kernel Documentation/admin-guide/pm/intel_idle.rst"],
        ..INTEL
    },
    Setting {
        id: "firmware.data_fabric_cstate_enable",
        name: "Data Fabric C-State Enable",
        reason: "Lets the fabric between cores, memory and devices sleep when the processor is idle. The \
                 first access afterwards waits for it.",
        cost: "More idle power.",
        risk: Risk::Power,
        impact: Impact::Medium,
        trading: Want::Value("Disabled"),
        guide: Want::Value("Auto"),
        hazard: "Auto lets the firmware decide. A host whose cores are all awake never enters this state, \
                 but one whose isolated CPUs wait for interrupts can.",
        sources: &[GUIDE, "HPE BIOS attribute registry: DataFabricCStateEnable"],
        ..EPYC
    },
    Setting {
        id: "firmware.cstate_efficiency_mode",
        name: "C-State Efficiency Mode",
        reason: "Trades performance for power when the processor is little used.",
        cost: "More power at low load.",
        risk: Risk::Power,
        impact: Impact::Medium,
        both: Want::Value("Disabled"),
        ..EPYC
    },
    Setting {
        id: "firmware.boost",
        name: "Boost (Core Performance Boost, Turbo)",
        reason: "Boost runs a core above its base clock while power and temperature allow. Work finishes \
                 sooner, but each change of clock, and each core that wakes up elsewhere, changes how long \
                 it takes.",
        cost: "Disabled: the core never exceeds its base clock. Enabled: the clock depends on what other \
               cores do.",
        risk: Risk::Power,
        impact: Impact::Medium,
        effective: "/sys/devices/system/cpu/cpufreq/boost, or the inverse of intel_pstate/no_turbo.",
        guide: Want::Value("Disabled"),
        hazard: "The guide itself offers Enabled as an option, if the clock is monitored under load. Measure \
                 both: the answer depends on the processor and on how many cores are busy.",
        judge: judges::boost,
        sources: &[GUIDE, "guide 57037 section 3.1", "kernel Documentation/admin-guide/pm/cpufreq.rst"],
        needs: Needs::X86,
        ..ROW
    },
    Setting {
        id: "firmware.amd_fmax_boost_limit_control",
        name: "AMD Fmax Boost Limit Control",
        reason: "Manual makes AMD Fmax Boost Limit take effect; Auto leaves the highest boost clock to the processor.",
        guide: Want::Value("Manual"),
        hazard: "Holds the clock below the processor's maximum. It has no effect while boost is disabled.",
        ..EPYC
    },
    Setting {
        id: "firmware.amd_fmax_boost_limit",
        name: "AMD Fmax Boost Limit",
        reason: "The highest boost clock in MHz. A limit that every busy core can sustain makes the clock \
                 steady.",
        cost: "The clock above the limit.",
        guide: Want::Value("3700"),
        hazard: "3700 MHz is the base clock of the EPYC 7F32. Other processors have another base clock, so \
                 copying the value may slow the host down. It has no effect while boost is disabled.",
        sources: &[GUIDE, "guide 57037 section 3.1"],
        ..EPYC
    },
    Setting {
        id: "firmware.energy_performance_bias",
        name: "Energy/Performance Bias",
        reason: "Tells the processor how far it may trade speed for power when it chooses clocks and idle \
                 states. If the operating system controls it, the kernel writes it for each CPU.",
        cost: "More power.",
        risk: Risk::Power,
        impact: Impact::Medium,
        trading: Want::OneOf(&["Performance", "OS controlled"]),
        effective: "/sys/devices/system/cpu/cpu*/power/energy_perf_bias reads 0.",
        sources: &[HPE, DELL, "kernel Documentation/admin-guide/pm/intel_epb.rst"],
        ..INTEL
    },
    Setting {
        id: "firmware.uncore_frequency_scaling",
        name: "Uncore Frequency Scaling",
        reason: "Lets the clock of the mesh, the last-level cache and the memory controller follow the load. \
                 Accesses are slower until it rises.",
        cost: "More power for the mesh and less for the boost of cores.",
        risk: Risk::Power,
        impact: Impact::Medium,
        trading: Want::Value("Maximum"),
        effective: "min_freq_khz equals max_freq_khz below /sys/devices/system/cpu/intel_uncore_frequency.",
        sources: &[
            HPE,
            DELL_GUIDE,
            LENOVO,
            "kernel Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst",
        ],
        ..INTEL
    },
    Setting {
        id: "firmware.upi_link_power",
        name: "UPI link power management",
        reason: "Lets the links between two processors narrow or sleep when traffic is low. Accesses to the \
                 other processor then wait for the change.",
        cost: "More power in the links.",
        risk: Risk::Power,
        trading: Want::Value("Disabled"),
        judge: judges::between_packages,
        sources: &[HPE, DELL, LENOVO],
        ..INTEL
    },
    Setting {
        id: "firmware.collaborative_power_control",
        name: "Collaborative Power Control",
        reason: "Lets the operating system request clock changes from the firmware over the PCC interface \
                 (Linux: pcc-cpufreq). Each request goes through the firmware and one shared buffer.",
        both: Want::Value("Disabled"),
        effective: "the frequency driver is not pcc-cpufreq.",
        judge: judges::collaborative_power,
        sources: &[GUIDE, "HPE BIOS attribute registry: CollabPowerControl"],
        ..ROW
    },
    Setting {
        id: "firmware.xgmi_force_link_width",
        name: "XGMI Force Link Width",
        reason: "Holds the links between two processors at full width. If they narrow to save power, \
                 accesses to the other processor wait for the change.",
        cost: "More power in the links, and slightly less for boost.",
        risk: Risk::Power,
        both: Want::Value("x16"),
        judge: judges::between_packages,
        ..EPYC
    },
    Setting {
        id: "firmware.xgmi_max_link_width",
        name: "XGMI Max Link Width",
        reason: "The maximum width of the links between two processors.",
        both: Want::Value("x16"),
        judge: judges::between_packages,
        ..EPYC
    },
    Setting {
        id: "firmware.infinity_fabric_performance_state",
        name: "Infinity Fabric Performance State",
        reason: "Holds the fabric between cores, memory and devices at one clock. P0 is the fastest. HPE \
                 recommends it for latency-sensitive work.",
        cost: "More power for the fabric and less for the boost of cores.",
        risk: Risk::Power,
        impact: Impact::Medium,
        trading: Want::Value("P0"),
        guide: Want::Value("Disable"),
        hazard: "The screenshot shows \"Disable\", which is not among the values that HPE documents (P0 to \
                 P3, Auto). The setting takes effect only while Infinity Fabric Power Management is \
                 disabled. The guide leaves that enabled, so the fabric's clock follows the load.",
        sources: &[GUIDE, "HPE BIOS attribute registry: InfinityFabricPstate"],
        ..EPYC
    },
    Setting {
        id: "firmware.numa_group_size_optimization",
        name: "NUMA Group Size Optimization",
        reason: "How the firmware describes nodes to operating systems that use processor groups. Linux has \
                 no such groups.",
        guide: Want::Value("Clustered"),
        sources: &[GUIDE, "HPE BIOS attribute registry: NumaGroupSizeOpt"],
        ..ROW
    },
    Setting {
        id: "firmware.infinity_fabric_power_management",
        name: "Infinity Fabric Power Management",
        reason: "Lets the clock of the fabric between cores, memory and devices follow the load. HPE says \
                 that latency-sensitive work may need it disabled.",
        cost: "More power for the fabric and less for the boost of cores.",
        risk: Risk::Power,
        impact: Impact::Medium,
        trading: Want::Value("Disabled"),
        guide: Want::Value("Enabled"),
        hazard: "Enabled lets the fabric slow down when traffic is low, as in a quiet market. Infinity \
                 Fabric Performance State then has no effect.",
        sources: &[GUIDE, "HPE BIOS attribute registry: ApplicationPowerBoost"],
        ..EPYC
    },
];
