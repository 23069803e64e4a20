//! Processor, virtualization, prefetcher and I/O menus.

use super::{Row, cisco, dell, hpe, label, row};

/// Every core.
const ALL_CORES: &[(&str, &str)] = &[("All", "0"), ("All Cores", "0"), ("CoresPerProc0", "0")];

pub(super) const PROCESSOR: &[Row] = &[
    row("firmware.processor_x2apic_support").of(&[
        hpe(&["ProcX2Apic"]).spelled(&[("ForceEnabled", "Enabled")]),
        dell(&["ProcX2Apic"]),
        cisco(&["LocalX2Apic", "ProcessorX2apic"]).spelled(&[("X2APIC", "Enabled"), ("XAPIC", "Disabled")]),
        label(&["APIC Mode", "Local APIC Mode", "x2APIC", "x2APIC Mode", "Extended APIC"])
            .spelled(&[("x2APIC", "Enabled"), ("xAPIC", "Disabled")]),
    ]),
    row("firmware.smt").in_hpe_menus("AMD SMT Option").of(&[
        hpe(&["ProcSMT", "ProcHyperthreading"]),
        dell(&["LogicalProc"]),
        cisco(&["CbsCpuSmtCtrl", "IntelHyperThread"]),
        cisco(&["ProcessorHyperThreadingDisable"])
            .spelled(&[("Single LP", "Disabled"), ("ALL LPs", "Enabled")]),
        label(&[
            "SMT Mode",
            "SMT Control",
            "Hyper-Threading",
            "Hyper-Threading [ALL]",
            "Hyper-Threading Technology",
            "Intel(R) Hyper-Threading Tech",
            "Intel(R) Hyper-Threading Technology",
            "Intel HyperThreading Tech",
        ]),
        label(&["Enable LP [Global]"]).spelled(&[("Single LP", "Disabled"), ("ALL LPs", "Enabled")]),
    ]),
    row("firmware.enabled_cores_per_processor").of(&[
        hpe(&["EnabledCoresPerProc"]).spelled(ALL_CORES),
        dell(&["ProcCores"]).spelled(ALL_CORES),
        cisco(&["CoreMultiProcessing"]).spelled(ALL_CORES),
        label(&["Number of Enabled CPU Cores Per Socket", "Cores in CPU Package", "Number of Cores"])
            .spelled(ALL_CORES),
    ]),
    row("firmware.determinism_control").of(&[
        hpe(&["DeterminismControl"])
            .spelled(&[("DeterminismCtrlManual", "Manual"), ("DeterminismCtrlAuto", "Auto")]),
        label(&["Determinism Control"]),
    ]),
    row("firmware.performance_determinism").of(&[
        hpe(&["PerformanceDeterminism"]),
        dell(&["DeterminismSlider"]).spelled(&[
            ("PerfDeterminism", "Performance Deterministic"),
            ("PerformanceDeterminism", "Performance Deterministic"),
            ("PowerDeterminism", "Power Deterministic"),
        ]),
        cisco(&["CbsCmnDeterminismSlider", "CbsCmnDeterminismEnable"])
            .spelled(&[("Performance", "Performance Deterministic"), ("Power", "Power Deterministic")]),
        label(&["Determinism Slider", "Determinism Enable"])
            .spelled(&[("Performance", "Performance Deterministic"), ("Power", "Power Deterministic")]),
    ]),
    row("firmware.page_table_entry_speculative_lock_scheduling").of(&[hpe(&["SpeculativeLockScheduling"])]),
];

pub(super) const VIRTUALIZATION: &[Row] = &[
    row("firmware.iommu").in_hpe_menus("AMD(R) IOMMU").weakened_by(&["Disabled"]).of(&[
        // Gen10 Plus and Gen11, then Gen10, then servers with Intel's processors.
        hpe(&["ProcAmdIoVt", "ProcAmdIOMMU", "IntelProcVtd"]),
        dell(&["IommuSupport"]),
        cisco(&["CbsCmnGnbNbIOMMU", "IntelVTD", "VTdSupport"]),
        label(&[
            "IOMMU",
            "Intel VT for Directed I/O (VT-d)",
            "Intel VT for Directed I/O",
            "Intel(R) VT for Directed I/O",
            "Intel(R) VT for Directed I/O (VT-d)",
            "VT-d",
        ]),
    ]),
    row("firmware.virtualization").in_hpe_menus("AMD Virtualization Technology").of(&[
        hpe(&["ProcAmdVirtualization", "ProcVirtualization"]),
        dell(&["ProcVirtualization"]),
        cisco(&["IntelVT", "EnableSVM", "ProcessorVmxEnable"]),
        label(&[
            "SVM Mode",
            "VMX",
            "Intel Virtualization Technology",
            "Intel(R) Virtualization Technology",
            "VT-x",
        ]),
    ]),
    row("firmware.access_control_service")
        .weakened_by(&["Disabled"])
        .of(&[hpe(&["AccessControlService"]), label(&["ACS Enable", "PCIe ACS CTL"])]),
    row("firmware.sr_iov").of(&[
        hpe(&["Sriov"]),
        dell(&["SriovGlobalEnable"]),
        cisco(&["SriovEnablePolicy"]),
        label(&["SR-IOV", "SR-IOV Support"]),
    ]),
    row("firmware.minimum_sev_asid").of(&[
        hpe(&["MinimumSevAsid"]),
        dell(&["CpuMinSevAsid"]),
        label(&["SEV-ES ASID Space Limit"]),
    ]),
    row("firmware.maximum_sev_asid").of(&[hpe(&["MaximumSevAsid"]).spelled(&[("AsidCount509", "509")])]),
];

pub(super) const PREFETCHERS: &[Row] = &[
    row("firmware.l1_stream_hw_prefetcher").of(&[
        hpe(&["AmdL1Prefetcher"]),
        dell(&["L1StreamHwPrefetcher"]),
        cisco(&["CbsCmnCpuL1StreamHwPrefetcher"]),
        label(&["L1 Stream HW Prefetcher"]),
    ]),
    row("firmware.l2_stream_hw_prefetcher").of(&[
        hpe(&["AmdL2Prefetcher"]),
        dell(&["L2StreamHwPrefetcher"]),
        cisco(&["CbsCmnCpuL2StreamHwPrefetcher"]),
        label(&["L2 Stream HW Prefetcher"]),
    ]),
    row("firmware.hardware_prefetcher").of(&[
        hpe(&["HwPrefetcher"]),
        dell(&["ProcHwPrefetcher"]),
        cisco(&["HardwarePrefetch"]),
        label(&["Hardware Prefetcher", "MLC Streamer"]),
    ]),
    row("firmware.adjacent_line_prefetcher").of(&[
        hpe(&["AdjSecPrefetch"]),
        dell(&["ProcAdjCacheLine"]),
        cisco(&["AdjacentCacheLinePrefetch"]),
        label(&["Adjacent Cache Prefetch", "Adjacent Cache Line Prefetch", "MLC Spatial Prefetcher"]),
    ]),
    row("firmware.dcu_stream_prefetcher").of(&[
        hpe(&["DcuStreamPrefetcher"]),
        dell(&["DcuStreamerPrefetcher"]),
        cisco(&["DcuStreamerPrefetch"]),
        label(&["DCU Streamer Prefetcher", "DCU Data Prefetcher"]),
    ]),
    row("firmware.dcu_ip_prefetcher").of(&[
        hpe(&["DcuIpPrefetcher"]),
        dell(&["DcuIpPrefetcher"]),
        cisco(&["DcuIpPrefetch"]),
        label(&["DCU IP Prefetcher", "DCU Instruction Prefetcher"]),
    ]),
    row("firmware.xpt_prefetch").of(&[
        hpe(&["XptPrefetcher"]),
        dell(&["XptPrefetch"]),
        label(&["XPT Prefetcher", "XPT Prefetch", "XPT Remote Prefetch"]),
    ]),
    row("firmware.upi_prefetch").of(&[
        hpe(&["UpiPrefetcher"]),
        dell(&["UpiPrefetch"]),
        label(&["UPI Prefetcher", "KTI Prefetch", "UPI Prefetch"]),
    ]),
];

pub(super) const IO: &[Row] = &[
    row("firmware.acpi_slit").of(&[hpe(&["AcpiSlit"])]),
    row("firmware.memory_proximity_reporting_for_io").of(&[hpe(&["AcpiRootBridgePxm"])]),
    row("firmware.preferred_io_bus").of(&[hpe(&["PreferredIOBusEnable"])]),
    row("firmware.preferred_io_bus_number").of(&[hpe(&["PreferredIOBusNumber", "PreferredIOBus"])]),
];
