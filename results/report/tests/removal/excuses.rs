//! Answers that are information although nothing was read: the kernel creates a file only with its feature, and some
//! files may be empty.

use super::Way;

/// A reported fault that is acceptable, and the reason.
#[derive(Debug)]
#[allow(dead_code, reason = "the reason is shown with an excuse that nothing needs")]
pub struct Excuse {
    /// Pattern of the path, in which one `*` matches anything.
    pub path: &'static str,
    /// The answers that are information.
    pub ways: &'static [Way],
    /// Text that the fault contains.
    pub fault: &'static str,
    pub reason: &'static str,
}

impl Excuse {
    /// True if it excuses the fault. A pattern such as `/sys/*` is one of files, not of directories.
    pub fn fits(&self, pattern: &str, is_folder: bool, way: Way, fault: &str) -> bool {
        let is_here = match self.path.split_once('*') {
            Some((start, "")) if is_folder && !start.is_empty() => false,
            Some((start, end)) => pattern.starts_with(start) && pattern.ends_with(end),
            None => pattern == self.path,
        };
        is_here && self.ways.contains(&way) && fault.contains(self.fault)
    }
}

const ABSENT: &[Way] = &[Way::Absent];
const NOT_READ: &[Way] = &[Way::Absent, Way::Denied];
const ANY: &[Way] = &Way::ALL;

pub const EXCUSES: &[Excuse] = &[
    Excuse {
        path: "/proc/sys/*",
        ways: ABSENT,
        fault: "not applicable",
        reason: "the kernel creates a sysctl only with its feature; the directory was read",
    },
    Excuse {
        path: "/sys/*",
        ways: ABSENT,
        fault: "not applicable",
        reason: "sysfs has a file only where kernel, driver and device have what it shows",
    },
    Excuse {
        path: "/sys/devices/pci*/msi_irqs",
        ways: ABSENT,
        fault: "not applicable",
        reason: "a device without message-signalled interrupts has no such directory",
    },
    Excuse {
        path: "/sys/devices/pci*/numa_node",
        ways: ABSENT,
        fault: "no device reports its node",
        reason: "a device without the file reports no node",
    },
    Excuse {
        path: "/sys/devices/system/node",
        ways: ABSENT,
        fault: "",
        reason: "a kernel without NUMA has no such directory, and the host is one node",
    },
    Excuse {
        path: "/sys/devices/system/cpu/cpu#/cache*",
        ways: ANY,
        fault: "",
        reason: "a warning names the CPUs whose caches are missing",
    },
    Excuse {
        path: "/sys/devices/system/cpu/cpu#/cache",
        ways: NOT_READ,
        fault: "",
        reason: "a warning names the CPUs whose caches are missing",
    },
    Excuse {
        path: "/sys/devices/system/cpu/cpu#/topology/*",
        ways: ANY,
        fault: "",
        reason: "a warning names the CPUs whose place is missing, and sets of CPUs give the same places",
    },
    Excuse {
        path: "/sys/devices/system/cpu",
        ways: &[Way::Denied],
        fault: "",
        reason: "a warning says that /proc/cpuinfo, which has other numbers, is used instead",
    },
    Excuse {
        path: "/sys/devices/system/node",
        ways: &[Way::Denied],
        fault: "",
        reason: "a warning says that all CPUs and memory are taken for one node",
    },
    Excuse {
        path: "/sys/devices/system/cpu/cpufreq*",
        ways: ANY,
        fault: "Core type",
        reason: "other files of the kernel tell the kinds of cores apart",
    },
    Excuse {
        path: "/sys/devices/system/cpu/cpufreq",
        ways: ABSENT,
        fault: "",
        reason: "a kernel without a frequency driver has no such directory",
    },
    Excuse {
        path: "/sys/devices/pci*/queues",
        ways: ABSENT,
        fault: "not applicable",
        reason: "a kernel without RPS and XPS has no such directory",
    },
    Excuse {
        path: "/sys/class/dmi/id/sys_vendor",
        ways: ANY,
        fault: "host show",
        reason: "the product's name stands without the maker's",
    },
    Excuse {
        path: "/proc/sys/net/ipv#/conf",
        ways: ABSENT,
        fault: "not applicable",
        reason: "the directory above it was read",
    },
    Excuse {
        path: "/proc/irq/#/effective_affinity_list",
        ways: ANY,
        fault: "",
        reason: "the mask says it; before Linux 4.15 an interrupt goes where it was asked to go",
    },
    Excuse {
        path: "/proc/version",
        ways: ANY,
        fault: "this kernel has no s",
        reason: "it says that of other files, which are absent; of a known kernel the version says it",
    },
    Excuse {
        path: "/boot",
        ways: ABSENT,
        fault: "",
        reason: "of a known configuration an option says that a row does not apply; else it is judged by other files",
    },
    Excuse {
        path: "/sys/devices/system/cpu/nohz_full",
        ways: &[Way::Empty],
        fault: "",
        reason: "the list is empty if no CPU is meant",
    },
    Excuse {
        path: "/sys/devices/system/cpu/vulnerabilities/*",
        ways: ABSENT,
        fault: "mitigated: ",
        reason: "a kernel shows the flaws that it knows",
    },
    Excuse {
        path: "/sys/bus/workqueue/devices",
        ways: ABSENT,
        fault: "not applicable",
        reason: "a kernel without attributes of workqueues has no such directory",
    },
    Excuse {
        path: "/sys/fs/cgroup",
        ways: ABSENT,
        fault: "no control groups are mounted",
        reason: "the directory is missing where none are mounted",
    },
    Excuse {
        path: "/proc/sys/kernel/osrelease",
        ways: &[Way::Garbage],
        fault: "this kernel has no s",
        reason: "it says that of other files, which are absent; of a known kernel the version says it",
    },
    Excuse {
        path: "/proc/sys/kernel/watchdog_cpumask",
        ways: &[Way::Empty],
        fault: "",
        reason: "the list is empty if no CPU is meant",
    },
    Excuse {
        path: "/proc/sys/kernel/osrelease",
        ways: &[Way::Garbage],
        fault: "audit: sysctl.kernel.nmi_watchdog",
        reason: "the sysctl was read; of a known configuration an option says that it does not apply",
    },
    Excuse {
        path: "/sys/devices/system/node/node#/cpumap",
        ways: ANY,
        fault: "memory without CPUs",
        reason: "a warning says that the node's CPUs are not known",
    },
    Excuse {
        path: "/proc/interrupts",
        ways: ANY,
        fault: "no writable value would change it",
        reason: "an interrupt without a name is taken for one that the kernel places",
    },
    Excuse {
        path: "/sys/fs/cgroup",
        ways: ABSENT,
        fault: "verdict of sysfs.cgroup_v2",
        reason: "the directory is missing where none are mounted",
    },
    Excuse {
        path: "/boot*",
        ways: ANY,
        fault: "audit: kthread.rcub",
        reason: "it says that of threads, which were read; of a known configuration an option says it",
    },
    Excuse {
        path: "/boot*",
        ways: ANY,
        fault: "audit: boot.preempt",
        reason: "the kernel's version says it; of a known configuration an option says that it does not apply",
    },
    Excuse {
        path: "/boot*",
        ways: ANY,
        fault: "audit: sysctl.kernel.nmi_watchdog",
        reason: "the sysctl was read; of a known configuration an option says that it does not apply",
    },
    Excuse {
        path: "/proc/sys/kernel/osrelease",
        ways: &[Way::Garbage],
        fault: "audit: kthread.rcub",
        reason: "it says that of threads, which were read; of a known configuration an option says it",
    },
    Excuse {
        path: "/sys/kernel/mm/hugepages",
        ways: ABSENT,
        fault: "",
        reason: "a kernel without pools of huge pages has no such directory",
    },
    Excuse {
        path: "/sys/devices/system/node/node#/hugepages",
        ways: NOT_READ,
        fault: "Huge pages",
        reason: "the pools of the whole host were read",
    },
    Excuse {
        path: "/sys/devices/system/cpu/cpu#/cpuidle",
        ways: ABSENT,
        fault: "not applicable",
        reason: "a kernel without idle states has no such directory",
    },
    Excuse {
        path: "/sys/devices/system/cpu*/scaling_governor",
        ways: ANY,
        fault: " more",
        reason: "a list of CPUs that became shorter",
    },
    Excuse {
        path: "/proc/cmdline",
        ways: &[Way::Empty, Way::Garbage],
        fault: "",
        reason: "any text is a command line, and so is none",
    },
    Excuse {
        path: "/proc/cmdline",
        ways: ANY,
        fault: "sysfs.cpuidle.deep_states",
        reason: "it says that of idle states, which were read; of a known command line a parameter says it",
    },
    Excuse {
        path: "/proc/modules",
        ways: &[Way::Empty],
        fault: "",
        reason: "a kernel without loaded modules shows an empty file",
    },
    Excuse {
        path: "/proc/swaps",
        ways: ABSENT,
        fault: "this kernel has no swap",
        reason: "a kernel without swap has no such file",
    },
    Excuse { path: "/proc/#/stat", ways: ABSENT, fault: "", reason: "a task that ended has no file" },
    Excuse {
        path: "/etc/tuned*",
        ways: &[Way::Absent, Way::Empty, Way::Garbage],
        fault: "",
        reason: "TuneD removes or empties the file if no profile is active, and any word can be a profile's name",
    },
    Excuse {
        path: "/etc/tuned",
        ways: ABSENT,
        fault: "",
        reason: "TuneD without its directory has no profile",
    },
    Excuse {
        path: "/usr/lib/systemd/*",
        ways: ABSENT,
        fault: "",
        reason: "a unit without a file is not installed",
    },
    Excuse {
        path: "/etc/systemd/system",
        ways: ABSENT,
        fault: "Units",
        reason: "it counts the units that were found",
    },
    Excuse {
        path: "*",
        ways: ANY,
        fault: "readiness.cmdline",
        reason: "it counts the boot rows, each of which is judged by itself",
    },
];
