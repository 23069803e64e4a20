//! Processor, virtualisation, prefetcher and I/O menus.

use super::{EPYC, EPYC_INERT, GUIDE, INERT, ROW, judges, judges_memory};
use lowlat_settings::{Impact, Needs, Risk, Setting, Want};

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "firmware.processor_x2apic_support",
        name: "Processor x2APIC Support",
        reason: "The interrupt controller mode that addresses more than 255 CPUs, and sends interrupts between CPUs by \
                 one register write.",
        effective: "x2apic among the flags in /proc/cpuinfo.",
        trading: Want::OneOf(&["Auto", "Enabled"]),
        guide: Want::Value("Auto"),
        judge: judges::x2apic,
        sources: &[GUIDE, "kernel Documentation/arch/x86/cpuinfo.rst"],
        ..ROW
    },
    Setting {
        id: "firmware.amd_smt_option",
        name: "AMD SMT Option",
        reason: "Two threads of one core share its execution units and its L1 and L2 caches. Work on one thread delays \
                 the other, and no scheduler setting prevents it.",
        cost: "Half as many CPUs, and less throughput for the work that is not sensitive to latency.",
        risk: Risk::Power,
        impact: Impact::High,
        effective: "/sys/devices/system/cpu/smt/control reads notsupported, off or forceoff.",
        trading: Want::Value("Disabled"),
        guide: Want::Value("Disabled"),
        judge: judges::smt,
        sources: &[GUIDE, "kernel Documentation/ABI/testing/sysfs-devices-system-cpu: smt/control"],
        ..ROW
    },
    Setting {
        id: "firmware.enabled_cores_per_processor",
        name: "Enabled Cores per Processor",
        reason: "0 keeps every core. Fewer cores leave more cache and power for each; the guide keeps all.",
        trading: Want::Value("0"),
        guide: Want::Value("0"),
        judge: judges::enabled_cores,
        sources: &[GUIDE],
        ..ROW
    },
    Setting {
        id: "firmware.determinism_control",
        name: "Determinism Control",
        reason: "Auto takes what was fused into the processor; Manual makes Performance Determinism take effect.",
        impact: Impact::Medium,
        trading: Want::Value("Manual"),
        guide: Want::Value("Manual"),
        sources: &[GUIDE, "HPE BIOS attribute registry: DeterminismControl"],
        ..EPYC
    },
    Setting {
        id: "firmware.performance_determinism",
        name: "Performance Determinism",
        reason: "Performance Deterministic makes every processor of one model run alike, whatever its silicon and its \
                 temperature allow. Power Deterministic lets each use its power budget and differ from the next.",
        cost: "The better parts give up the clock they could reach.",
        impact: Impact::Medium,
        trading: Want::Value("Performance Deterministic"),
        guide: Want::Value("Performance Deterministic"),
        sources: &[
            GUIDE,
            "AMD: Power/Performance Determinism (2017)",
            "HPE BIOS attribute registry: PerformanceDeterminism",
        ],
        ..EPYC
    },
    Setting {
        id: "firmware.page_table_entry_speculative_lock_scheduling",
        name: "Page Table Entry Speculative Lock Scheduling",
        reason: "Lets the processor schedule the locks of a page table walk speculatively. Disabled costs performance.",
        trading: Want::Value("Enabled"),
        guide: Want::Value("Enabled"),
        sources: &[GUIDE, "HPE BIOS attribute registry: SpeculativeLockScheduling"],
        ..EPYC
    },
    Setting {
        id: "firmware.amd_iommu",
        name: "AMD(R) IOMMU",
        reason: "The IOMMU checks and translates each device's access to memory. In translating mode every mapping of a \
                 buffer costs time; with iommu=pt on the kernel's command line devices that the kernel drives pass \
                 through, and the cost is gone while the protection of user-space drivers stays.",
        cost: "Enabled: mappings cost time unless the kernel passes devices through. Disabled: any device can write \
               anywhere, and drivers in user space (VFIO, DPDK) have no safe mode.",
        risk: Risk::Security,
        effective: "/sys/class/iommu is empty when it is off.",
        trading: Want::Value("Enabled"),
        guide: Want::Value("Disabled"),
        hazard: "Without an IOMMU a device, or whoever controls one, can write to any memory; VFIO and DPDK lose their \
                 safe mode; and CPUs beyond 255 cannot take interrupts. Today iommu=pt removes the cost and keeps these.",
        judge: judges::iommu,
        sources: &[
            GUIDE,
            "kernel Documentation/admin-guide/kernel-parameters.txt: iommu=, amd_iommu=",
            "kernel Documentation/driver-api/vfio.rst",
        ],
        needs: Needs::X86,
        ..ROW
    },
    Setting {
        id: "firmware.amd_virtualization_technology",
        name: "AMD Virtualization Technology",
        reason: "Lets the host run virtual machines. It costs nothing while none runs; switched off, nobody can start one \
                 on a trading host.",
        cost: "No virtual machines on this host.",
        guide: Want::Value("Disabled"),
        effective: "the flag svm (Intel: vmx) is missing from /proc/cpuinfo on recent kernels.",
        judge: judges::virtualization_flag,
        sources: &[GUIDE, "kernel commit ef4d3bf19855 (5.6): VMX flag cleared when the BIOS disables it"],
        ..INERT
    },
    Setting {
        id: "firmware.access_control_service",
        name: "Access Control Service",
        reason: "PCI Express ACS keeps devices below one port from reaching each other without passing the IOMMU. It \
                 makes IOMMU groups small enough to hand one device to user space.",
        cost: "Direct traffic from device to device takes the longer way through the root port.",
        risk: Risk::Security,
        trading: Want::Value("Enabled"),
        guide: Want::Value("Enabled"),
        hazard: "With the IOMMU off, as the guide has it, ACS protects nothing.",
        sources: &[GUIDE, "HPE BIOS attribute registry: AccessControlService"],
        ..ROW
    },
    Setting {
        id: "firmware.sr_iov",
        name: "SR-IOV",
        reason: "Reserves PCI Express resources for virtual functions. HPE says it may stay enabled without a hypervisor; \
                 Onload and DPDK can use virtual functions on bare metal.",
        guide: Want::Value("Disabled"),
        hazard: "Virtual functions of a NIC are then not available to Onload, DPDK or containers.",
        sources: &[GUIDE, "HPE BIOS attribute registry: Sriov"],
        ..INERT
    },
    Setting {
        id: "firmware.minimum_sev_asid",
        name: "Minimum SEV ASID",
        reason: "Parts the ids of encrypted virtual machines. It means nothing on a host that runs none.",
        guide: Want::Value("1"),
        sources: &[GUIDE, "HPE BIOS attribute registry: MinimumSevAsid"],
        ..EPYC_INERT
    },
    Setting {
        id: "firmware.maximum_sev_asid",
        name: "Maximum SEV ASID",
        reason: "How many encrypted virtual machines can run. It means nothing on a host that runs none.",
        guide: Want::Value("509"),
        sources: &[GUIDE],
        ..EPYC_INERT
    },
    Setting {
        id: "firmware.l1_stream_hw_prefetcher",
        name: "L1 Stream HW Prefetcher",
        reason: "Fetches the next lines of a sequential access into the L1 cache. Most programs gain; HPE advises to \
                 switch it off only after a measurement of one's own program.",
        trading: Want::Value("Enabled"),
        guide: Want::Value("Enabled"),
        judge: judges::prefetcher,
        sources: &[GUIDE, "HPE BIOS attribute registry: AmdL1Prefetcher"],
        needs: Needs::X86,
        ..ROW
    },
    Setting {
        id: "firmware.l2_stream_hw_prefetcher",
        name: "L2 Stream HW Prefetcher",
        reason: "Fetches the next lines of a sequential access into the L2 cache. Most programs gain; HPE advises to \
                 switch it off only after a measurement of one's own program.",
        trading: Want::Value("Enabled"),
        guide: Want::Value("Enabled"),
        judge: judges::prefetcher,
        sources: &[GUIDE, "HPE BIOS attribute registry: AmdL2Prefetcher"],
        needs: Needs::X86,
        ..ROW
    },
    Setting {
        id: "firmware.acpi_slit",
        name: "ACPI SLIT",
        reason: "The table that tells the operating system how far each NUMA node is from each other. Without it the \
                 kernel takes every other node for equally far.",
        effective: "/sys/devices/system/node/node*/distance shows more than the kernel's stand-in values 10 and 20.",
        trading: Want::Value("Enabled"),
        guide: Want::Value("Enabled"),
        judge: judges_memory::slit,
        sources: &[GUIDE, "HPE BIOS attribute registry: AcpiSlit", "ACPI specification: SLIT"],
        ..ROW
    },
    Setting {
        id: "firmware.memory_proximity_reporting_for_io",
        name: "Memory Proximity Reporting for I/O",
        reason: "Tells the operating system which NUMA node each device hangs on. Without it nobody can put a thread \
                 beside its NIC, and drivers allocate their rings on any node.",
        impact: Impact::Medium,
        effective: "numa_node of the NICs in /sys/bus/pci/devices is not -1.",
        trading: Want::Value("Enabled"),
        guide: Want::Value("Enabled"),
        judge: judges_memory::io_proximity,
        sources: &[
            GUIDE,
            "HPE BIOS attribute registry: AcpiRootBridgePxm",
            "kernel Documentation/ABI/testing/sysfs-bus-pci: numa_node",
        ],
        ..ROW
    },
    Setting {
        id: "firmware.preferred_io_bus",
        name: "Preferred IO Bus",
        reason: "Gives the devices on one bus precedence over all others on EPYC 7002. It can help the one NIC that \
                 carries the orders, at the expense of the rest: measure.",
        guide: Want::Value("Disabled"),
        sources: &[GUIDE, "Lenovo Press: Tuning UEFI Settings on AMD Processor-Based ThinkSystem Servers"],
        ..EPYC_INERT
    },
    Setting {
        id: "firmware.preferred_io_bus_number",
        name: "Preferred IO Bus Number",
        reason: "The bus that Preferred IO Bus prefers; it means nothing while that is disabled.",
        guide: Want::Value("0"),
        sources: &[GUIDE],
        ..EPYC_INERT
    },
];
