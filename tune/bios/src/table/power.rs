//! Power and performance menu, advanced power options.

use super::{Row, VendorAttribute, dell, hpe, lenovo, row, supermicro};

/// Off means that no idle state beyond halting is offered, on all of them.
const C_STATES: &[(&str, &str)] = &[("Disabled", "No C-states"), ("Enabled", "C6 State")];
/// "APB disable": on keeps the fabric in one state, so its power management is off.
const APB_DISABLE: &[(&str, &str)] =
    &[("Enabled", "Disabled"), ("Disabled", "Enabled"), ("1", "Disabled"), ("0", "Enabled")];

pub(super) const POWER: &[Row] = &[
    row(
        "firmware.power_regulator",
        &[VendorAttribute {
            // iLO 6 Bios resource definitions: configurable only if the Workload Profile is Custom.
            needs_custom: true,
            ..hpe(
                "PowerRegulator",
                &[("StaticHighPerf", "Static High Performance Mode"), ("OsControl", "OS Control Mode")],
            )
        }],
    ),
    row(
        "firmware.minimum_processor_idle_power_core_cstate",
        &[
            // As above.
            VendorAttribute {
                needs_custom: true,
                ..hpe("MinProcIdlePower", &[("C1", "C1 State"), ("C6", "C6 State")])
            },
            dell("ProcCStates", C_STATES),
            lenovo("Processors_GlobalC_stateControl", C_STATES),
            supermicro("GlobalC_stateControl", C_STATES),
        ],
    ),
    row(
        "firmware.data_fabric_cstate_enable",
        &[
            hpe("DataFabricCStateEnable", &[("ForceEnabled", "Enabled")]),
            dell("DfCState", &[]),
            lenovo("Processors_DFC_States", &[]),
            supermicro("DFCstates", &[]),
        ],
    ),
    row(
        "firmware.cstate_efficiency_mode",
        &[hpe("CStateEfficiencyMode", &[]), lenovo("Power_EfficiencyMode", &[])],
    ),
    row(
        "firmware.amd_core_performance_boost",
        &[
            hpe("ProcAMDBoost", &[]),
            hpe("ProcTurbo", &[]),
            dell("ProcTurboMode", &[]),
            lenovo("Processors_CorePerformanceBoost", &[]),
            supermicro("CorePerformanceBoost", &[]),
        ],
    ),
    row(
        "firmware.amd_fmax_boost_limit_control",
        &[
            hpe("ProcAMDBoostControl", &[("AmdFmaxBoostAuto", "Auto"), ("AmdFmaxBoostManual", "Manual")]),
            dell("BoostFMax", &[("BoostFMaxAuto", "Auto")]),
            lenovo("Processors_BoostFmax", &[]),
        ],
    ),
    row(
        "firmware.amd_fmax_boost_limit",
        &[hpe("ProcAmdFmax", &[]), lenovo("Processors_BoostFmaxManual", &[])],
    ),
    row("firmware.collaborative_power_control", &[hpe("CollabPowerControl", &[])]),
    row("firmware.xgmi_force_link_width", &[hpe("XGMIForceLinkWidth", &[]), dell("DlwmForcedWidth", &[])]),
    row("firmware.xgmi_max_link_width", &[hpe("XGMIMaxLinkWidth", &[])]),
    row(
        "firmware.infinity_fabric_performance_state",
        &[
            hpe(
                "InfinityFabricPstate",
                &[("P0", "P0"), ("P1", "P1"), ("P2", "P2"), ("P3", "P3"), ("Auto", "Auto")],
            ),
            dell("FixedSocPstate", &[("FixedSocPstate0", "P0")]),
            lenovo("Processors_SOCP_states", &[]),
        ],
    ),
    row("firmware.numa_group_size_optimization", &[hpe("NumaGroupSizeOpt", &[])]),
];

pub(super) const FABRIC: &[Row] = &[row(
    "firmware.infinity_fabric_power_management",
    &[hpe("ApplicationPowerBoost", &[]), dell("ApbDis", APB_DISABLE), supermicro("APBDIS", APB_DISABLE)],
)];
