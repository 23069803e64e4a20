//! Processor, virtualization, prefetcher and I/O menus.

use super::{Row, dell, hpe, lenovo, risky, row, supermicro};

pub(super) const PROCESSOR: &[Row] = &[
    row(
        "firmware.processor_x2apic_support",
        &[
            hpe("ProcX2Apic", &[("ForceEnabled", "Enabled")]),
            dell("ProcX2Apic", &[]),
            lenovo("Processors_APICMode", &[]),
        ],
    ),
    row(
        "firmware.amd_smt_option",
        &[
            hpe("ProcSMT", &[]),
            hpe("ProcHyperthreading", &[]),
            dell("LogicalProc", &[]),
            lenovo("Processors_SMTMode", &[]),
            lenovo("Processors_HyperThreading", &[]),
            supermicro("SMTControl", &[]),
        ],
    ),
    row(
        "firmware.enabled_cores_per_processor",
        &[
            hpe("EnabledCoresPerProc", &[("CoresPerProc0", "0")]),
            lenovo("Processors_NumberofEnabledCPUCoresPerSocket", &[("All", "0")]),
        ],
    ),
    row(
        "firmware.determinism_control",
        &[
            hpe(
                "DeterminismControl",
                &[("DeterminismCtrlManual", "Manual"), ("DeterminismCtrlAuto", "Auto")],
            ),
            supermicro("DeterminismControl", &[]),
        ],
    ),
    row(
        "firmware.performance_determinism",
        &[
            hpe("PerformanceDeterminism", &[]),
            dell(
                "DeterminismSlider",
                &[
                    ("PerfDeterminism", "Performance Deterministic"),
                    ("PerformanceDeterminism", "Performance Deterministic"),
                    ("PowerDeterminism", "Power Deterministic"),
                ],
            ),
            lenovo(
                "Processors_DeterminismSlider",
                &[("Performance", "Performance Deterministic"), ("Power", "Power Deterministic")],
            ),
        ],
    ),
    row("firmware.page_table_entry_speculative_lock_scheduling", &[hpe("SpeculativeLockScheduling", &[])]),
];

pub(super) const VIRTUALIZATION: &[Row] = &[
    risky(
        "firmware.amd_iommu",
        &["Disabled"],
        &[
            // Gen10 Plus and Gen11, then Gen10, then servers with Intel's processors.
            hpe("ProcAmdIoVt", &[]),
            hpe("ProcAmdIOMMU", &[]),
            hpe("IntelProcVtd", &[]),
            dell("IommuSupport", &[]),
            lenovo("DevicesandIOPorts_IOMMU", &[]),
            supermicro("IOMMU", &[]),
        ],
    ),
    row(
        "firmware.amd_virtualization_technology",
        &[
            hpe("ProcAmdVirtualization", &[]),
            dell("ProcVirtualization", &[]),
            lenovo("Processors_SVMMode", &[]),
            supermicro("SVMMode", &[]),
        ],
    ),
    risky(
        "firmware.access_control_service",
        &["Disabled"],
        &[hpe("AccessControlService", &[]), supermicro("ACSEnable", &[])],
    ),
    row(
        "firmware.sr_iov",
        &[
            hpe("Sriov", &[]),
            dell("SriovGlobalEnable", &[]),
            lenovo("DevicesandIOPorts_SRIOV", &[]),
            supermicro("SR_IOVSupport", &[]),
        ],
    ),
    row(
        "firmware.minimum_sev_asid",
        &[
            hpe("MinimumSevAsid", &[]),
            dell("CpuMinSevAsid", &[]),
            lenovo("Memory_SEV_ESASIDSpaceLimit", &[]),
            supermicro("SEV_ESASIDSpaceLimit", &[]),
        ],
    ),
    row("firmware.maximum_sev_asid", &[hpe("MaximumSevAsid", &[("AsidCount509", "509")])]),
];

pub(super) const PREFETCHERS: &[Row] = &[
    row(
        "firmware.l1_stream_hw_prefetcher",
        &[
            hpe("AmdL1Prefetcher", &[]),
            dell("L1StreamHwPrefetcher", &[]),
            lenovo("Processors_L1StreamHWPrefetcher", &[]),
            supermicro("L1StreamHWPrefetcher", &[]),
        ],
    ),
    row(
        "firmware.l2_stream_hw_prefetcher",
        &[
            hpe("AmdL2Prefetcher", &[]),
            dell("L2StreamHwPrefetcher", &[]),
            lenovo("Processors_L2StreamHWPrefetcher", &[]),
            supermicro("L2StreamHWPrefetcher", &[]),
        ],
    ),
];

pub(super) const IO: &[Row] = &[
    row("firmware.acpi_slit", &[hpe("AcpiSlit", &[])]),
    row("firmware.memory_proximity_reporting_for_io", &[hpe("AcpiRootBridgePxm", &[])]),
    row("firmware.preferred_io_bus", &[hpe("PreferredIOBusEnable", &[])]),
    row("firmware.preferred_io_bus_number", &[hpe("PreferredIOBusNumber", &[]), hpe("PreferredIOBus", &[])]),
];
