//! Power and performance menu, advanced power options.

use super::{Row, cisco, dell, hpe, label, lenovo, row};

/// Off means that no idle state beyond halting is offered.
const C_STATES: &[(&str, &str)] = &[
    ("Disabled", "No C-states"),
    ("Disable", "No C-states"),
    ("Enabled", "C6 State"),
    ("Legacy", "C6 State"),
    ("Autonomous", "C6 State"),
];
/// Without C6, C1 remains.
const C6_REPORT: &[(&str, &str)] =
    &[("Disabled", "C1 State"), ("Disable", "C1 State"), ("Enabled", "C6 State"), ("Enable", "C6 State")];
const PACKAGE_C_STATES: &[(&str, &str)] = &[
    ("NoState", "No package C-state"),
    ("C0/C1 state", "No package C-state"),
    ("C0/C1", "No package C-state"),
    ("C0 C1 State", "No package C-state"),
];
/// "APB disable": on keeps the fabric in one state, so its power management is off.
const APB_DISABLE: &[(&str, &str)] =
    &[("1", "Disabled"), ("0", "Enabled"), ("Enabled", "Disabled"), ("Disabled", "Enabled")];
/// The same with Dell's words.
const APB_DISABLE_DELL: &[(&str, &str)] = &[("Enabled", "Disabled"), ("Disabled", "Enabled")];
/// Off keeps the highest frequency.
const SCALING: &[(&str, &str)] =
    &[("Disabled", "Maximum"), ("Disable", "Maximum"), ("Enabled", "Dynamic"), ("Enable", "Dynamic")];
const LINK_WIDTHS: &[(&str, &str)] = &[("2", "x16"), ("1", "x8"), ("0", "x4")];

pub(super) const POWER: &[Row] = &[
    row("firmware.power_regulator").of(&[
        // iLO 6 Bios resource definitions: configurable only if the Workload Profile is Custom.
        hpe(&["PowerRegulator"])
            .spelled(&[("StaticHighPerf", "Static High Performance Mode"), ("OsControl", "OS Control Mode")])
            .with_custom_only(),
        dell(&["ProcPwrPerf"])
            .spelled(&[("MaxPerf", "Static High Performance Mode"), ("OsDbpm", "OS Control Mode")])
            .with_custom_only(),
        lenovo(&["Processors_CPUPstateControl"]).spelled(&[
            ("None", "Static High Performance Mode"),
            ("Legacy", "OS Control Mode"),
            ("CooperativewithoutLegacy", "OS Control Mode"),
            ("CooperativewithLegacy", "OS Control Mode"),
        ]),
        cisco(&["HWPMEnable", "ProcessorHWPMEnable", "CpuHWPM"]).spelled(&[
            ("HWPM Native Mode", "OS Control Mode"),
            ("Native Mode with no legacy", "OS Control Mode"),
            ("Disabled", "OS Control Mode"),
        ]),
        label(&["Hardware P-States"]).spelled(&[
            ("Disable", "OS Control Mode"),
            ("Native Mode", "OS Control Mode"),
            ("Native Mode with No Legacy Support", "OS Control Mode"),
        ]),
    ]),
    row("firmware.core_c_states").in_hpe_menus("Minimum Processor Idle Power Core C-State").of(&[
        // As above.
        hpe(&["MinProcIdlePower"])
            .spelled(&[("NoCStates", "No C-states"), ("C1", "C1 State"), ("C6", "C6 State")])
            .with_custom_only(),
        dell(&["ProcCStates"]).spelled(C_STATES).with_custom_only(),
        cisco(&["CbsCmnCpuGlobalCstateCtrl", "ProcessorCState"]).spelled(C_STATES),
        cisco(&["ProcessorC6Report", "C6Enable"]).spelled(C6_REPORT),
        label(&["Global C-state Control", "C-States", "CPU C State"]).spelled(C_STATES),
        label(&["CPU C6 Report", "C6 Report", "Processor C6"]).spelled(C6_REPORT),
    ]),
    row("firmware.c1e").of(&[
        dell(&["ProcC1E"]).with_custom_only(),
        cisco(&["ProcessorC1E", "ProcessorC1eEnable"]),
        label(&["C1 Enhanced Mode", "Enhanced Halt State (C1E)", "C1E", "C1E Support", "Processor C1E"]),
    ]),
    row("firmware.package_c_state").of(&[
        hpe(&["MinProcIdlePkgState"]).spelled(PACKAGE_C_STATES).with_custom_only(),
        cisco(&["PackageCStateLimit"]).spelled(PACKAGE_C_STATES),
        label(&["Package C State", "Package C State Limit"]).spelled(PACKAGE_C_STATES),
    ]),
    row("firmware.monitor_mwait").of(&[
        dell(&["MonitorMwait"]).with_custom_only(),
        cisco(&["EnableMonitorMwait"]),
        label(&["MONITOR/MWAIT", "Enable Monitor MWAIT", "Monitor/MWAIT Support"]),
    ]),
    row("firmware.data_fabric_cstate_enable").of(&[
        hpe(&["DataFabricCStateEnable"]).spelled(&[("ForceEnabled", "Enabled")]),
        dell(&["DfCState"]),
        cisco(&["CbsCmnGnbSMUDfCstates", "CbsCmnGnbSmuDfCstatesRs"]),
        label(&["DF Cstates"]),
    ]),
    row("firmware.cstate_efficiency_mode").of(&[
        hpe(&["CStateEfficiencyMode"]),
        cisco(&["CbsCmnEfficiencyModeEn"]),
        label(&["Efficiency Mode", "Efficiency Mode Enable"]),
    ]),
    row("firmware.boost").in_hpe_menus("AMD Core Performance Boost").of(&[
        hpe(&["ProcAMDBoost", "ProcTurbo"]),
        dell(&["ProcTurboMode"]).with_custom_only(),
        cisco(&["CbsCmnCpuCpb", "IntelTurboBoostTech"]),
        label(&[
            "Core Performance Boost",
            "Turbo Mode",
            "Turbo Boost",
            "Intel(R) Turbo Boost Technology",
            "Intel Turbo Boost Tech",
        ]),
    ]),
    row("firmware.amd_fmax_boost_limit_control").of(&[
        hpe(&["ProcAMDBoostControl"])
            .spelled(&[("AmdFmaxBoostAuto", "Auto"), ("AmdFmaxBoostManual", "Manual")]),
        dell(&["BoostFMax"]).spelled(&[("BoostFMaxAuto", "Auto")]),
        label(&["Boost Fmax", "BoostFmaxEn"]),
    ]),
    row("firmware.amd_fmax_boost_limit").of(&[hpe(&["ProcAmdFmax"]), label(&["Boost Fmax Manual"])]),
    row("firmware.energy_performance_bias").of(&[
        hpe(&["EnergyPerfBias"]).spelled(&[("MaxPerf", "Performance")]).with_custom_only(),
        dell(&["EnergyPerformanceBias"]).spelled(&[("MaxPower", "Performance")]).with_custom_only(),
        cisco(&["CpuEngPerfBias", "AltEngPerfBIAS"]),
        label(&["ENERGY_PERF_BIAS_CFG mode", "Energy Performance Bias", "Power/Performance Bias"])
            .spelled(&[("OSControlled", "OS controlled"), ("Maximum Performance", "Performance")]),
    ]),
    row("firmware.uncore_frequency_scaling").of(&[
        hpe(&["UncoreFreqScaling"]),
        dell(&["UncoreFrequency"]).spelled(&[("MaxUFS", "Maximum")]).with_custom_only(),
        cisco(&["UncoreFrequencyScaling"]).spelled(SCALING),
        cisco(&["UFSDisable"]).spelled(&[("Enabled", "Maximum"), ("Disabled", "Dynamic")]),
        label(&["Uncore Frequency Scaling", "Uncore Freq Scaling (UFS)", "Uncore Frequency"])
            .spelled(SCALING),
    ]),
    row("firmware.upi_link_power").of(&[
        hpe(&["IntelUpiPowerManagement"]),
        dell(&["CpuInterconnectBusLinkPower"]).with_custom_only(),
        cisco(&["UPIPowerManagement"]),
        label(&[
            "L0p",
            "Link L0p Enable",
            "UPI Power Management",
            "UPI Link Power Management",
            "QPI Power Management",
        ]),
    ]),
    row("firmware.collaborative_power_control").of(&[hpe(&["CollabPowerControl"])]),
    row("firmware.xgmi_force_link_width").of(&[
        hpe(&["XGMIForceLinkWidth"]),
        dell(&["DlwmForcedWidth"]),
        cisco(&["CbsCmnxGmiForceLinkWidthRs"]).spelled(LINK_WIDTHS),
        label(&["xGMI Force Link Width"]).spelled(LINK_WIDTHS),
    ]),
    row("firmware.xgmi_max_link_width")
        .of(&[hpe(&["XGMIMaxLinkWidth"]), label(&["xGMI Max Link Width"]).spelled(LINK_WIDTHS)]),
    row("firmware.infinity_fabric_performance_state").of(&[
        hpe(&["InfinityFabricPstate"]).spelled(&[
            ("P0", "P0"),
            ("P1", "P1"),
            ("P2", "P2"),
            ("P3", "P3"),
            ("Auto", "Auto"),
        ]),
        dell(&["FixedSocPstate"]).spelled(&[("FixedSocPstate0", "P0")]),
        cisco(&["CbsCmnFixedSocPstate"]),
        label(&["SOC P-states", "Fixed SOC P-state"]),
    ]),
    row("firmware.numa_group_size_optimization").of(&[hpe(&["NumaGroupSizeOpt"])]),
];

pub(super) const FABRIC: &[Row] = &[row("firmware.infinity_fabric_power_management").of(&[
    hpe(&["ApplicationPowerBoost"]),
    dell(&["ApbDis"]).spelled(APB_DISABLE_DELL),
    cisco(&["CbsCmnApbdis"]).spelled(APB_DISABLE),
    label(&["APBDIS", "APB Disable"]).spelled(APB_DISABLE),
])];
