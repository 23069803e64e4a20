//! Power and performance menu, advanced power options.

use super::{Row, dell, hpe, lenovo, row, supermicro};

/// Off means that no idle state beyond halting is offered, on all of them.
const C_STATES: &[(&str, &str)] = &[("Disabled", "No C-states"), ("Enabled", "C6 State")];
/// "APB disable": on keeps the fabric in one state, so its power management is off.
const APB_DISABLE: &[(&str, &str)] =
    &[("Enabled", "Disabled"), ("Disabled", "Enabled"), ("1", "Disabled"), ("0", "Enabled")];

pub(super) const POWER: &[Row] = &[
    row("firmware.power_regulator").of(&[
        // iLO 6 Bios resource definitions: configurable only if the Workload Profile is Custom.
        hpe("PowerRegulator")
            .spelled(&[("StaticHighPerf", "Static High Performance Mode"), ("OsControl", "OS Control Mode")])
            .with_custom_only(),
    ]),
    row("firmware.minimum_processor_idle_power_core_cstate").of(&[
        // As above.
        hpe("MinProcIdlePower").spelled(&[("C1", "C1 State"), ("C6", "C6 State")]).with_custom_only(),
        dell("ProcCStates").spelled(C_STATES),
        lenovo("Processors_GlobalC_stateControl").spelled(C_STATES),
        supermicro("GlobalC_stateControl").spelled(C_STATES),
    ]),
    row("firmware.data_fabric_cstate_enable").of(&[
        hpe("DataFabricCStateEnable").spelled(&[("ForceEnabled", "Enabled")]),
        dell("DfCState"),
        lenovo("Processors_DFC_States"),
        supermicro("DFCstates"),
    ]),
    row("firmware.cstate_efficiency_mode").of(&[hpe("CStateEfficiencyMode"), lenovo("Power_EfficiencyMode")]),
    row("firmware.amd_core_performance_boost").of(&[
        hpe("ProcAMDBoost"),
        hpe("ProcTurbo"),
        dell("ProcTurboMode"),
        lenovo("Processors_CorePerformanceBoost"),
        supermicro("CorePerformanceBoost"),
    ]),
    row("firmware.amd_fmax_boost_limit_control").of(&[
        hpe("ProcAMDBoostControl").spelled(&[("AmdFmaxBoostAuto", "Auto"), ("AmdFmaxBoostManual", "Manual")]),
        dell("BoostFMax").spelled(&[("BoostFMaxAuto", "Auto")]),
        lenovo("Processors_BoostFmax"),
    ]),
    row("firmware.amd_fmax_boost_limit").of(&[hpe("ProcAmdFmax"), lenovo("Processors_BoostFmaxManual")]),
    row("firmware.collaborative_power_control").of(&[hpe("CollabPowerControl")]),
    row("firmware.xgmi_force_link_width").of(&[hpe("XGMIForceLinkWidth"), dell("DlwmForcedWidth")]),
    row("firmware.xgmi_max_link_width").of(&[hpe("XGMIMaxLinkWidth")]),
    row("firmware.infinity_fabric_performance_state").of(&[
        hpe("InfinityFabricPstate").spelled(&[
            ("P0", "P0"),
            ("P1", "P1"),
            ("P2", "P2"),
            ("P3", "P3"),
            ("Auto", "Auto"),
        ]),
        dell("FixedSocPstate").spelled(&[("FixedSocPstate0", "P0")]),
        lenovo("Processors_SOCP_states"),
    ]),
    row("firmware.numa_group_size_optimization").of(&[hpe("NumaGroupSizeOpt")]),
];

pub(super) const FABRIC: &[Row] = &[row("firmware.infinity_fabric_power_management").of(&[
    hpe("ApplicationPowerBoost"),
    dell("ApbDis").spelled(APB_DISABLE),
    supermicro("APBDIS").spelled(APB_DISABLE),
])];
