//! Changes, and their targets on a host.

use super::kinds::nic::NicTarget;
use crate::Risk;
use lowlat_host::{CpuSet, Reading};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The settings that request it: usually one; all boot rows for the command line, all sysctls for their
    /// file.
    pub settings: Vec<String>,
    pub layer: String,
    pub target: Target,
    /// Value when the plan was made.
    pub before: Reading<String>,
    pub after: String,
    pub moment: Moment,
    pub reason: String,
    /// Its cost; empty if none.
    pub cost: String,
    pub risk: Risk,
    /// The source of the advice.
    pub sources: Vec<String>,
}

/// Target of a change, by kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(
    rename_all = "snake_case",
    tag = "kind",
    expecting = "found a target of an unknown kind, or without its names; a later version of lowlat may have made \
         the plan"
)]
pub enum Target {
    /// The kernel's command line, all parameters at once.
    /// - `tokens`: the parameters that differ, in the order of the new line.
    CommandLine { tokens: Vec<BootToken> },
    /// A key below /proc/sys.
    /// - `key`: key with dots, such as "kernel.numa_balancing".
    Sysctl { key: String },
    /// A file of /sys, /proc or debugfs that contains a value.
    /// - `path`: its path below the root.
    File { path: String },
    /// An idle state of some CPUs: "enabled" or "disabled". It is identified by name, because its number
    /// differs between CPUs.
    /// - `name`: name by the driver, such as "C6".
    IdleState { name: String, cpus: CpuSet },
    /// Pages reserved in the pool of one node.
    /// - `node`: NUMA node; none for the pool of the host.
    HugePages { node: Option<u32>, size_bytes: u64 },
    /// The CPUs of one interrupt, as a CPU list.
    /// - `actions`: names of its handlers, by which it is found after a reboot.
    IrqAffinity { irq: u32, actions: Vec<String> },
    /// The default CPUs of new interrupts, as a CPU list.
    DefaultIrqAffinity,
    /// The CPUs of a kernel thread, as a CPU list.
    /// - `comm`: name, by which it is found after a reboot.
    /// - `pid`: process id when the plan was made.
    KernelThreadAffinity { comm: String, pid: u32 },
    /// The CPUs of process 1 and of the running processes that have the same ones, as a CPU list.
    UserProcesses,
    /// Policy and priority of a kernel thread: "SCHED_FIFO 2".
    /// - `comm`: name, by which it is found after a reboot.
    /// - `pid`: process id when the plan was made.
    KernelThreadScheduling { comm: String, pid: u32 },
    /// The CPUs of a workqueue's workers, as a CPU list.
    /// - `name`: the queue; none for all unbound work.
    WorkqueueCpus { name: Option<String> },
    /// The CPUs of an isolated cpuset partition, as a CPU list, or "none".
    /// - `slice`: the systemd slice whose group forms it: "lowlat.slice".
    CpusetPartition { slice: String },
    /// Contents of a group of resctrl: "cpus=1-3 L3:0=ff0 MB:0=100", or "none".
    /// - `group`: name of the group; "default" is the one of all other CPUs.
    CacheGroup { group: String },
    /// Run state and enablement of a systemd unit: "active, enabled".
    /// - `unit`: full name, such as "chronyd.service".
    Service { unit: String },
    /// TuneD's active profile and its mode: "virtual-guest auto", "lowlat manual".
    TunedProfile,
    /// One `key=value` line of a file of another package that supports no drop-ins.
    FileKey { path: String, key: String },
    /// A whole file that lowlat owns.
    OwnedFile { path: String },
    /// A parameter of a network interface.
    #[serde(untagged)]
    Nic(NicTarget),
}

impl Target {
    /// The parameters, if the target is the command line.
    pub fn boot_tokens(&self) -> &[BootToken] {
        match self {
            Self::CommandLine { tokens } => tokens,
            _ => &[],
        }
    }
}

/// One parameter of the command line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BootToken {
    /// The setting that requests it.
    pub setting: String,
    /// Its name on the line: "nohz_full".
    pub name: String,
    /// Its value on the new line; `Some("")` for a bare word, none if the parameter is removed.
    pub value: Option<String>,
    /// All its occurrences on the present line; none if it is missing.
    pub before: Option<String>,
}

/// When a change takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// When it is applied. It persists, or another change restores it at boot.
    Now,
    /// From the next boot on.
    AtBoot,
    /// When it is applied, and again at each boot.
    NowAndAtBoot,
}

/// Reason why nothing is planned for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyLeftOut {
    /// Its risk was not accepted.
    NotAccepted(Risk),
    /// It would do more harm than good, or cannot be rolled back; lowlat never does it.
    Harmful,
    /// Several values are correct, and the user must choose.
    YourChoice,
    /// Another change or setting causes it.
    ByAnother,
    /// The kernel does not support the value or option.
    Kernel,
    /// It is set in the firmware setup.
    Firmware,
    /// It needs other hardware, or is decided outside this host.
    Hardware,
    /// It is a momentary state.
    StateOfTheMoment,
    /// A name or value of the host does not fit its type, so it is not written.
    Unfit,
    /// Its present value could not be checked.
    Unknown,
    /// It does not apply to this host or profile.
    NotApplicable,
    Good,
}

impl WhyLeftOut {
    /// True if the setting is wrong, so that the user should see it.
    pub fn is_of_fault(self) -> bool {
        !matches!(self, Self::Good | Self::NotApplicable | Self::Unknown)
    }
}
