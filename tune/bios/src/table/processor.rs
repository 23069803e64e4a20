//! Processor, virtualization, prefetcher and I/O menus.

use super::{Row, dell, hpe, lenovo, row, supermicro};

pub(super) const PROCESSOR: &[Row] = &[
    row("firmware.processor_x2apic_support").of(&[
        hpe("ProcX2Apic").spelled(&[("ForceEnabled", "Enabled")]),
        dell("ProcX2Apic"),
        lenovo("Processors_APICMode"),
    ]),
    row("firmware.amd_smt_option").of(&[
        hpe("ProcSMT"),
        hpe("ProcHyperthreading"),
        dell("LogicalProc"),
        lenovo("Processors_SMTMode"),
        lenovo("Processors_HyperThreading"),
        supermicro("SMTControl"),
    ]),
    row("firmware.enabled_cores_per_processor").of(&[
        hpe("EnabledCoresPerProc").spelled(&[("CoresPerProc0", "0")]),
        lenovo("Processors_NumberofEnabledCPUCoresPerSocket").spelled(&[("All", "0")]),
    ]),
    row("firmware.determinism_control").of(&[
        hpe("DeterminismControl")
            .spelled(&[("DeterminismCtrlManual", "Manual"), ("DeterminismCtrlAuto", "Auto")]),
        supermicro("DeterminismControl"),
    ]),
    row("firmware.performance_determinism").of(&[
        hpe("PerformanceDeterminism"),
        dell("DeterminismSlider").spelled(&[
            ("PerfDeterminism", "Performance Deterministic"),
            ("PerformanceDeterminism", "Performance Deterministic"),
            ("PowerDeterminism", "Power Deterministic"),
        ]),
        lenovo("Processors_DeterminismSlider")
            .spelled(&[("Performance", "Performance Deterministic"), ("Power", "Power Deterministic")]),
    ]),
    row("firmware.page_table_entry_speculative_lock_scheduling").of(&[hpe("SpeculativeLockScheduling")]),
];

pub(super) const VIRTUALIZATION: &[Row] = &[
    row("firmware.amd_iommu").weakened_by(&["Disabled"]).of(&[
        // Gen10 Plus and Gen11, then Gen10, then servers with Intel's processors.
        hpe("ProcAmdIoVt"),
        hpe("ProcAmdIOMMU"),
        hpe("IntelProcVtd"),
        dell("IommuSupport"),
        lenovo("DevicesandIOPorts_IOMMU"),
        supermicro("IOMMU"),
    ]),
    row("firmware.amd_virtualization_technology").of(&[
        hpe("ProcAmdVirtualization"),
        dell("ProcVirtualization"),
        lenovo("Processors_SVMMode"),
        supermicro("SVMMode"),
    ]),
    row("firmware.access_control_service")
        .weakened_by(&["Disabled"])
        .of(&[hpe("AccessControlService"), supermicro("ACSEnable")]),
    row("firmware.sr_iov").of(&[
        hpe("Sriov"),
        dell("SriovGlobalEnable"),
        lenovo("DevicesandIOPorts_SRIOV"),
        supermicro("SR_IOVSupport"),
    ]),
    row("firmware.minimum_sev_asid").of(&[
        hpe("MinimumSevAsid"),
        dell("CpuMinSevAsid"),
        lenovo("Memory_SEV_ESASIDSpaceLimit"),
        supermicro("SEV_ESASIDSpaceLimit"),
    ]),
    row("firmware.maximum_sev_asid").of(&[hpe("MaximumSevAsid").spelled(&[("AsidCount509", "509")])]),
];

pub(super) const PREFETCHERS: &[Row] = &[
    row("firmware.l1_stream_hw_prefetcher").of(&[
        hpe("AmdL1Prefetcher"),
        dell("L1StreamHwPrefetcher"),
        lenovo("Processors_L1StreamHWPrefetcher"),
        supermicro("L1StreamHWPrefetcher"),
    ]),
    row("firmware.l2_stream_hw_prefetcher").of(&[
        hpe("AmdL2Prefetcher"),
        dell("L2StreamHwPrefetcher"),
        lenovo("Processors_L2StreamHWPrefetcher"),
        supermicro("L2StreamHWPrefetcher"),
    ]),
];

pub(super) const IO: &[Row] = &[
    row("firmware.acpi_slit").of(&[hpe("AcpiSlit")]),
    row("firmware.memory_proximity_reporting_for_io").of(&[hpe("AcpiRootBridgePxm")]),
    row("firmware.preferred_io_bus").of(&[hpe("PreferredIOBusEnable")]),
    row("firmware.preferred_io_bus_number").of(&[hpe("PreferredIOBusNumber"), hpe("PreferredIOBus")]),
];
