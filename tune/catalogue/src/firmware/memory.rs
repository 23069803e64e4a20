//! Memory menu.

use super::{EPYC, GUIDE, NODES, ROW, judges, judges_memory};
use lowlat_settings::{Impact, Risk, Setting, Want};

pub const SETTINGS: &[Setting] = &[
    Setting {
        id: "firmware.memory_refresh_rate",
        name: "Memory Refresh Rate",
        reason: "A memory bank cannot be read while it is refreshed. The double rate refreshes twice as \
                 often and delays more accesses.",
        cost: "Some modules need the double rate as protection in a hot server.",
        risk: Risk::Ras,
        both: Want::Value("1x Refresh"),
        sources: &[GUIDE, "HPE BIOS attribute registry: MemRefreshRate"],
        ..ROW
    },
    Setting {
        id: "firmware.memory_interleaving_mode",
        name: "Memory Interleaving Mode",
        reason: "Spreads neighbouring addresses over all memory channels of a node, so that streams of \
                 accesses do not queue up on one channel.",
        cost: "Without interleaving a whole buffer uses one channel.",
        impact: Impact::Medium,
        trading: Want::Value("Auto"),
        guide: Want::Value("Disabled"),
        hazard: "The value comes from one screenshot and conflicts with another row: one memory domain per \
                 socket is the mode that interleaves over all channels of the socket. Disabled puts each \
                 buffer behind one channel. Measure bandwidth and latency under load before you copy it.",
        sources: &[GUIDE, "HPC Advisory Council: AMD 2nd Gen EPYC CPU Tuning Guide, NPS configuration"],
        ..ROW
    },
    Setting {
        id: "firmware.memory_interleave_size",
        name: "Memory Interleave Size",
        reason: "How many bytes stay on one channel before the next one is used.",
        both: Want::Value("256 Bytes"),
        hazard: "Has no effect while Memory Interleaving Mode is Disabled, as in the guide.",
        ..EPYC
    },
    Setting {
        id: "firmware.cxl_memory",
        name: "CXL memory",
        reason: "Memory behind CXL answers later than the processor's own. As special purpose memory, Linux \
                 leaves it to programs that ask for it. As general memory, it can hold any page.",
        trading: Want::OneOf(&["Special purpose memory", "Auto"]),
        sources: &["UEFI specification: EFI_MEMORY_SP", "Linux kernel parameters: efi=nosoftreserve"],
        ..ROW
    },
    Setting {
        id: "firmware.memory_pstates",
        name: "Memory PStates",
        reason: "Lets the memory run slower when it is little used. Both the change of speed and the slow \
                 phase delay accesses.",
        cost: "More idle power.",
        risk: Risk::Power,
        impact: Impact::Medium,
        both: Want::Value("Disabled"),
        sources: &[GUIDE, "HPE BIOS attribute registry: AmdMemPStates"],
        ..EPYC
    },
    Setting {
        id: "firmware.amd_periodic_directory_rinse",
        name: "AMD Periodic Directory Rinse",
        reason: "Clears old entries from the directory that tracks which cache holds which line. This keeps \
                 the directory from filling up when many cores share data.",
        both: Want::Value("Enabled"),
        sources: &[GUIDE, "HPE BIOS attribute registry: AmdPeriodicDirectoryRinse"],
        ..EPYC
    },
    Setting {
        id: "firmware.maximum_memory_bus_frequency",
        name: "Maximum Memory Bus Frequency",
        reason: "On EPYC 7002, memory at 2933 MT/s is in step with the Infinity Fabric at 1467 MHz. It \
                 responds sooner than 3200 MT/s out of step. On other processors the highest speed is best.",
        cost: "2933 MT/s carries less bandwidth than 3200 MT/s.",
        impact: Impact::Medium,
        effective: "dmidecode -t17: Configured Memory Speed.",
        trading: Want::Derived(judges_memory::wanted_memory_frequency),
        guide: Want::Value("Auto"),
        hazard: "The guide's own chapter 2 advises 2933 MT/s for latency when bandwidth is not the limit. \
                 Auto runs 3200 MT/s modules at 3200 MT/s, out of step with the fabric.",
        judge: judges_memory::memory_frequency,
        sources: &[GUIDE, "guide 57037 chapter 2", "HPE BIOS attribute registry: MaxMemBusFreqMHz"],
        ..ROW
    },
    Setting {
        id: "firmware.memory_patrol_scrubbing",
        name: "Memory Patrol Scrubbing",
        reason: "Reads all memory in the background and corrects single-bit errors before they become \
                 uncorrectable. Its reads compete with those of programs.",
        cost: "Disabled: errors accumulate in memory that is seldom read until they become uncorrectable, \
               and the host stops.",
        risk: Risk::Ras,
        trading: Want::Value("Enabled"),
        guide: Want::Value("Disabled"),
        hazard: "Switches off the protection against uncorrectable errors. Keep it on with the longest \
                 Patrol Scrub Duration. Switch it off only when a measurement shows a cost.",
        sources: &[GUIDE, "HPE BIOS attribute registry: MemPatrolScrubbing"],
        ..ROW
    },
    Setting {
        id: "firmware.patrol_scrub_duration",
        name: "Patrol Scrub Duration",
        reason: "Hours for one pass of patrol scrubbing over all memory. With a longer pass, fewer of its \
                 reads compete with those of programs.",
        risk: Risk::Ras,
        both: Want::Value("24"),
        hazard: "Has no effect while Memory Patrol Scrubbing is Disabled, as in the guide.",
        sources: &[GUIDE, "HPE BIOS attribute registry: PatrolScrubDuration"],
        ..ROW
    },
    Setting {
        id: "firmware.transparent_secure_memory_encryption",
        name: "Transparent Secure Memory Encryption",
        reason: "Encrypts all memory without involving the operating system. Every memory access passes \
                 through the cipher.",
        cost: "Anyone with physical access to the modules can read their contents.",
        risk: Risk::Security,
        impact: Impact::Medium,
        both: Want::Value("Disabled"),
        hazard: "A security decision: some data centres require encrypted memory.",
        sources: &[GUIDE, "kernel Documentation/arch/x86/amd-memory-encryption.rst"],
        ..EPYC
    },
    Setting {
        id: "firmware.amd_secure_memory_encryption",
        name: "AMD Secure Memory Encryption",
        reason: "Lets the operating system encrypt pages of memory. Every access to an encrypted page passes \
                 through the cipher.",
        cost: "The kernel cannot encrypt memory.",
        risk: Risk::Security,
        effective: "the flag sme is missing from /proc/cpuinfo.",
        both: Want::Value("Disabled"),
        hazard: "A security decision: some data centres require encrypted memory.",
        judge: judges::sme,
        sources: &[
            GUIDE,
            "kernel Documentation/arch/x86/amd-memory-encryption.rst",
            "HPE BIOS attribute registry: AmdSecureMemoryEncryption",
        ],
        ..EPYC
    },
    Setting {
        id: "firmware.dram_controller_power_down",
        name: "DRAM Controller Power Down",
        reason: "Puts idle memory ranks into a power-saving state. The next access waits until they are \
                 awake.",
        cost: "More idle power.",
        risk: Risk::Power,
        impact: Impact::Medium,
        both: Want::Value("Disabled"),
        sources: &[GUIDE, "HPE BIOS attribute registry: DramControllerPowerDown"],
        ..EPYC
    },
    Setting {
        id: "firmware.numa_memory_domains_per_socket",
        name: "NUMA memory domains per socket",
        reason: "How many NUMA nodes a processor has (AMD: NPS, Intel: sub-NUMA clusters). One interleaves \
                 memory over the whole processor. More bring the nearest memory closer, for programs that \
                 place each thread near its memory and its NIC.",
        cost: "One domain: accesses have the average distance to memory, never the shortest.",
        effective: "numactl -H: nodes with CPUs per package.",
        reads: NODES,
        both: Want::Value("One memory domain per socket"),
        hazard: "The guide tested only this value. Four domains have the shortest distance to local memory. \
                 Measure both if you place every thread manually.",
        judge: judges_memory::numa_domains,
        sources: &[GUIDE, "HPC Advisory Council: AMD 2nd Gen EPYC CPU Tuning Guide, NPS configuration"],
        ..ROW
    },
    Setting {
        id: "firmware.llc_as_numa_node",
        name: "Last-Level Cache (LLC) As NUMA Node",
        reason: "Exposes each last-level cache as a separate NUMA node. Schedulers then see cache \
                 boundaries. Tools that count nodes, spread huge pages or place memory see many small nodes \
                 for the same memory.",
        effective: "the host has fewer nodes with CPUs than last-level caches.",
        both: Want::Value("Disabled"),
        judge: judges_memory::llc_as_node,
        sources: &[GUIDE, "HPE BIOS attribute registry: LastLevelCacheAsNUMANode"],
        ..EPYC
    },
    Setting {
        id: "firmware.advanced_memory_protection_mode",
        name: "Advanced Memory Protection Mode",
        reason: "Advanced ECC corrects errors in place. The other modes mirror memory or keep spare ranks, \
                 which reduces capacity or bandwidth.",
        risk: Risk::Ras,
        effective: "the start-up screen shows Advanced ECC Support.",
        both: Want::Value("Advanced ECC Support"),
        sources: &["guide 57037 section 3.2.2, start-up screen"],
        ..ROW
    },
];
