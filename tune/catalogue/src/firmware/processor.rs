//! Processor, virtualization, prefetcher and I/O menus.

use super::{CISCO, EPYC, GUIDE, HPE, INTEL, ROW, judges, judges_memory};
use lowlat_settings::{
    Context, Impact, Needs, Risk, Setting, Want,
    change::{Proposal, WhyLeftOut},
};

const INTEL_PREFETCHERS: &[&str] = &[HPE, CISCO];

pub const SETTINGS: &[Setting] = &[
    Setting {
        id: "firmware.processor_x2apic_support",
        name: "Processor x2APIC Support",
        reason: "The interrupt controller mode that addresses more than 255 CPUs and sends interrupts \
                 between CPUs with one register write.",
        effective: "x2apic among the flags in /proc/cpuinfo.",
        trading: Want::OneOf(&["Auto", "Enabled"]),
        guide: Want::Value("Auto"),
        judge: judges::x2apic,
        sources: &[GUIDE, "kernel Documentation/arch/x86/cpuinfo.rst"],
        ..ROW
    },
    Setting {
        id: "firmware.smt",
        name: "SMT (Hyper-Threading)",
        reason: "The two threads of a core share its execution units and its L1 and L2 caches. Work on one \
                 thread delays the other, and no scheduler setting prevents it.",
        cost: "Half as many CPUs, and less throughput for work that is not latency-sensitive.",
        risk: Risk::Power,
        impact: Impact::High,
        effective: "/sys/devices/system/cpu/smt/control reads notsupported, off or forceoff.",
        both: Want::Value("Disabled"),
        judge: judges::smt,
        change: smt,
        sources: &[GUIDE, CISCO, "kernel Documentation/ABI/testing/sysfs-devices-system-cpu: smt/control"],
        ..ROW
    },
    Setting {
        id: "firmware.enabled_cores_per_processor",
        name: "Enabled Cores per Processor",
        reason: "0 keeps every core. With fewer cores, each has more cache and power. The guide keeps all.",
        both: Want::Value("0"),
        judge: judges::enabled_cores,
        ..ROW
    },
    Setting {
        id: "firmware.determinism_control",
        name: "Determinism Control",
        reason: "Auto uses the mode fused into the processor. Manual makes Performance Determinism take \
                 effect.",
        impact: Impact::Medium,
        both: Want::Value("Manual"),
        sources: &[GUIDE, "HPE BIOS attribute registry: DeterminismControl"],
        ..EPYC
    },
    Setting {
        id: "firmware.performance_determinism",
        name: "Performance Determinism",
        reason: "Performance Deterministic makes every processor of a model run alike, regardless of its \
                 silicon and temperature. Power Deterministic lets each use its full power budget, so \
                 processors differ.",
        cost: "Better parts lose the higher clock that they could reach.",
        impact: Impact::Medium,
        both: Want::Value("Performance Deterministic"),
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
        both: Want::Value("Enabled"),
        sources: &[GUIDE, "HPE BIOS attribute registry: SpeculativeLockScheduling"],
        ..EPYC
    },
    Setting {
        id: "firmware.iommu",
        name: "IOMMU (AMD-Vi, VT-d)",
        reason: "The IOMMU checks and translates each device's access to memory. In translating mode every \
                 mapping of a buffer costs time. With iommu=pt on the kernel's command line, devices that \
                 the kernel drives bypass translation. The cost then disappears, while the protection for \
                 user-space drivers stays.",
        cost: "Enabled: mappings cost time unless the kernel bypasses translation. Disabled: any device can \
               write anywhere, and user-space drivers (VFIO, DPDK) have no safe mode.",
        risk: Risk::Security,
        effective: "/sys/class/iommu is empty when it is off.",
        trading: Want::Value("Enabled"),
        guide: Want::Value("Disabled"),
        hazard: "Without an IOMMU a device, or an attacker who controls one, can write to any memory. VFIO \
                 and DPDK lose their safe mode, and CPUs beyond 255 cannot receive interrupts. On current \
                 kernels iommu=pt removes the cost and keeps these.",
        judge: judges::iommu,
        sources: &[
            GUIDE,
            "kernel Documentation/admin-guide/kernel-parameters.txt: iommu=, amd_iommu=, intel_iommu=",
            "kernel Documentation/driver-api/vfio.rst",
        ],
        needs: Needs::X86,
        ..ROW
    },
    Setting {
        id: "firmware.virtualization",
        name: "Processor virtualization (AMD-V, VT-x)",
        reason: "Lets the host run virtual machines. It costs nothing while none runs. When it is off, \
                 nobody can start one on a trading host.",
        cost: "No virtual machines on this host.",
        guide: Want::Value("Disabled"),
        effective: "the flag svm (AMD) or vmx (Intel) is missing from /proc/cpuinfo on recent kernels.",
        judge: judges::virtualization_flag,
        needs: Needs::X86,
        ..ROW
    },
    Setting {
        id: "firmware.access_control_service",
        name: "Access Control Service",
        reason: "PCI Express ACS prevents devices below one port from reaching each other without passing \
                 through the IOMMU. It makes IOMMU groups small enough to assign one device to user space.",
        cost: "Direct traffic between devices takes the longer path through the root port.",
        risk: Risk::Security,
        both: Want::Value("Enabled"),
        hazard: "Has no effect with the IOMMU off, as in the guide.",
        sources: &[GUIDE, "HPE BIOS attribute registry: AccessControlService"],
        ..ROW
    },
    Setting {
        id: "firmware.sr_iov",
        name: "SR-IOV",
        reason: "Reserves PCI Express resources for virtual functions. HPE says it may stay enabled without \
                 a hypervisor. Onload and DPDK can use virtual functions on bare metal.",
        guide: Want::Value("Disabled"),
        hazard: "Virtual functions of a NIC are then unavailable to Onload, DPDK and containers.",
        sources: &[GUIDE, "HPE BIOS attribute registry: Sriov"],
        ..ROW
    },
    Setting {
        id: "firmware.minimum_sev_asid",
        name: "Minimum SEV ASID",
        reason: "Divides the IDs of encrypted virtual machines. It has no effect on a host that runs none.",
        guide: Want::Value("1"),
        sources: &[GUIDE, "HPE BIOS attribute registry: MinimumSevAsid"],
        ..EPYC
    },
    Setting {
        id: "firmware.maximum_sev_asid",
        name: "Maximum SEV ASID",
        reason: "How many encrypted virtual machines can run. It has no effect on a host that runs none.",
        guide: Want::Value("509"),
        ..EPYC
    },
    Setting {
        id: "firmware.l1_stream_hw_prefetcher",
        name: "L1 Stream HW Prefetcher",
        reason: "Fetches the next lines of a sequential access into the L1 cache. Most programs gain. HPE \
                 advises to switch it off only after measuring your own program.",
        both: Want::Value("Enabled"),
        judge: judges::prefetcher,
        sources: &[GUIDE, "HPE BIOS attribute registry: AmdL1Prefetcher"],
        ..EPYC
    },
    Setting {
        id: "firmware.l2_stream_hw_prefetcher",
        name: "L2 Stream HW Prefetcher",
        reason: "Fetches the next lines of a sequential access into the L2 cache. Most programs gain. HPE \
                 advises to switch it off only after measuring your own program.",
        both: Want::Value("Enabled"),
        judge: judges::prefetcher,
        sources: &[GUIDE, "HPE BIOS attribute registry: AmdL2Prefetcher"],
        ..EPYC
    },
    Setting {
        id: "firmware.hardware_prefetcher",
        name: "Hardware Prefetcher",
        reason: "Fetches the next lines of a stream into the L2 cache. Tables read in order arrive before they are \
                 needed.",
        trading: Want::Value("Enabled"),
        judge: judges::prefetcher,
        sources: INTEL_PREFETCHERS,
        ..INTEL
    },
    Setting {
        id: "firmware.adjacent_line_prefetcher",
        name: "Adjacent Cache Line Prefetch",
        reason: "Fetches lines in pairs. Data that spans two lines arrives with one miss. Two CPUs that write \
                 neighbouring lines disturb each other, so keep their data 128 bytes apart.",
        trading: Want::Value("Enabled"),
        judge: judges::prefetcher,
        sources: INTEL_PREFETCHERS,
        ..INTEL
    },
    Setting {
        id: "firmware.dcu_stream_prefetcher",
        name: "DCU Streamer Prefetcher",
        reason: "Fetches the next line into the L1 cache when loads ascend.",
        trading: Want::Value("Enabled"),
        judge: judges::prefetcher,
        sources: INTEL_PREFETCHERS,
        ..INTEL
    },
    Setting {
        id: "firmware.dcu_ip_prefetcher",
        name: "DCU IP Prefetcher",
        reason: "Fetches into the L1 cache by the stride of a load instruction.",
        trading: Want::Value("Enabled"),
        judge: judges::prefetcher,
        sources: INTEL_PREFETCHERS,
        ..INTEL
    },
    Setting {
        id: "firmware.xpt_prefetch",
        name: "XPT Prefetch",
        reason: "Starts a read from memory while the last-level cache is still searched.",
        trading: Want::OneOf(&["Enabled", "Auto"]),
        judge: judges::prefetcher,
        sources: INTEL_PREFETCHERS,
        ..INTEL
    },
    Setting {
        id: "firmware.upi_prefetch",
        name: "UPI Prefetch",
        reason: "Starts a read from memory when a request arrives from the other processor. It matters only for \
                 threads that use remote memory.",
        trading: Want::OneOf(&["Enabled", "Auto"]),
        judge: judges::prefetcher,
        sources: INTEL_PREFETCHERS,
        ..INTEL
    },
    Setting {
        id: "firmware.acpi_slit",
        name: "ACPI SLIT",
        reason: "The table of distances between NUMA nodes. Without it the kernel assumes that all other \
                 nodes are equally far away.",
        effective: "/sys/devices/system/node/node*/distance differs from the kernel's default values 10 and \
                    20.",
        both: Want::Value("Enabled"),
        judge: judges_memory::slit,
        sources: &[GUIDE, "HPE BIOS attribute registry: AcpiSlit", "ACPI specification: SLIT"],
        ..ROW
    },
    Setting {
        id: "firmware.memory_proximity_reporting_for_io",
        name: "Memory Proximity Reporting for I/O",
        reason: "Reports to the operating system which NUMA node each device is attached to. Without it, \
                 threads cannot be placed near their NIC, and drivers allocate their rings on any node.",
        impact: Impact::Medium,
        effective: "numa_node of the NICs in /sys/bus/pci/devices is not -1.",
        both: Want::Value("Enabled"),
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
        reason: "Gives the devices on one bus priority over all others on EPYC 7002. It can help the one NIC \
                 that carries the orders at the expense of other devices, so measure it.",
        guide: Want::Value("Disabled"),
        sources: &[GUIDE, "Lenovo Press: Tuning UEFI Settings on AMD Processor-Based ThinkSystem Servers"],
        ..EPYC
    },
    Setting {
        id: "firmware.preferred_io_bus_number",
        name: "Preferred IO Bus Number",
        reason: "The bus that Preferred IO Bus prefers. It has no effect while that is disabled.",
        guide: Want::Value("0"),
        ..EPYC
    },
];

/// The firmware's switch removes the second threads. The kernel's does the same, if the role names the row.
fn smt(context: &Context<'_>, setting: &Setting) -> Proposal {
    if context.role.accepts(setting.id) {
        return Proposal::default().token("nosmt", "");
    }
    Proposal::not(
        WhyLeftOut::Firmware,
        format!(
            "set {} to Disabled in the firmware setup, or accept the risk of this row, and the plan adds nosmt to the \
             command line",
            setting.name
        ),
    )
}
