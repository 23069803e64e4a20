//! What can be changed on a host.

use super::kinds::nic::NicTarget;
use crate::Risk;
use lowlat_host::{CpuSet, Reading};
use serde::{Deserialize, Serialize};

/// One thing that would be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The settings that ask for it: one for most, all boot rows for the command line, all sysctls for their file.
    pub settings: Vec<String>,
    /// The layer, as a word.
    pub layer: String,
    /// What is changed.
    pub target: Target,
    /// What is there now.
    pub before: Reading<String>,
    /// What would be there.
    pub after: String,
    /// When it takes effect.
    pub moment: Moment,
    /// Why.
    pub reason: String,
    /// What it costs; empty when nothing.
    pub cost: String,
    /// The class of harm it can do.
    pub risk: Risk,
    /// Where the advice comes from.
    pub sources: Vec<String>,
}

/// What kind of thing is changed, and which one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(
    rename_all = "snake_case",
    tag = "kind",
    expecting = "found a target of no known kind, or without its names; was the plan made by a later version of lowlat?"
)]
pub enum Target {
    /// The kernel's command line, all parameters at once.
    CommandLine {
        /// The parameters that differ, in the order in which they stand on the new line.
        tokens: Vec<BootToken>,
    },
    /// A key below /proc/sys.
    Sysctl {
        /// "kernel.numa_balancing".
        key: String,
    },
    /// A file of /sys, /proc or debugfs that takes a value.
    File {
        /// Its path below the root.
        path: String,
    },
    /// An idle state of some CPUs: "enabled" or "disabled". Its number differs between CPUs, so the name is kept.
    IdleState {
        /// The driver's name: "C6".
        name: String,
        /// The CPUs.
        cpus: CpuSet,
    },
    /// Pages reserved in the pool of one node.
    HugePages {
        /// NUMA node; none for the pool of the host.
        node: Option<u32>,
        /// Page size.
        size_bytes: u64,
    },
    /// Where one interrupt may go, as a CPU list.
    IrqAffinity {
        /// Number in /proc/irq.
        irq: u32,
        /// Handlers' names, by which it is found after a reboot.
        actions: Vec<String>,
    },
    /// Where interrupts go that are set up later, as a CPU list.
    DefaultIrqAffinity,
    /// Where a kernel thread may run, as a CPU list.
    KernelThreadAffinity {
        /// Name, by which it is found after a reboot.
        comm: String,
        /// Process id now.
        pid: u32,
    },
    /// Policy and priority of a kernel thread: "SCHED_FIFO 2".
    KernelThreadScheduling {
        /// Name, by which it is found after a reboot.
        comm: String,
        /// Process id now.
        pid: u32,
    },
    /// Where the workers of a workqueue may run, as a CPU list.
    WorkqueueCpus {
        /// The queue; none for all unbound work.
        name: Option<String>,
    },
    /// Whether a unit of systemd runs, and starts at boot: "active, enabled".
    Service {
        /// Full name: "chronyd.service".
        unit: String,
    },
    /// The profile that TuneD runs, and how it was chosen: "virtual-guest auto", "lowlat manual".
    TunedProfile,
    /// One `key=value` line of a file that is not lowlat's own and takes no drop-in.
    FileKey {
        /// The file.
        path: String,
        /// The key.
        key: String,
    },
    /// A whole file that lowlat owns.
    OwnedFile {
        /// The file.
        path: String,
    },
    /// A parameter of a network interface.
    #[serde(untagged)]
    Nic(NicTarget),
}

impl Target {
    /// The parameters of the command line, where that is what is changed.
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
    /// The setting that asks for it.
    pub setting: String,
    /// Name as it stands on the line: "nohz_full".
    pub name: String,
    /// Value on the new line; `Some("")` for a bare word, none when the parameter is taken off.
    pub value: Option<String>,
    /// The parameter as it stands on the present line, every time that it does; none when it is missing.
    pub before: Option<String>,
}

/// When a change takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// When it is applied; the host keeps it by itself, or something else brings it back at boot.
    Now,
    /// From the next boot on.
    AtBoot,
    /// When it is applied, and again at each boot.
    NowAndAtBoot,
}

/// Why nothing is planned for a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyLeftOut {
    /// Its risk was not accepted.
    NotAccepted(Risk),
    /// It would do more harm than good, or has no way back; lowlat never does it.
    Harmful,
    /// Several answers are right, and only the user knows which.
    YourChoice,
    /// Another change, or another setting, brings it about.
    ByAnother,
    /// The kernel takes no such value, or has no such option.
    Kernel,
    /// It is set in the firmware's set-up.
    Firmware,
    /// It takes other hardware, or is decided outside this host.
    Hardware,
    /// It is a state of the moment.
    StateOfTheMoment,
    /// A name or value of the host does not fit its type, so nothing is written with it.
    Unfit,
    /// It could not be told whether it is as wanted.
    Unknown,
    /// It means nothing on this host or in this profile.
    NotApplicable,
    /// It is as wanted.
    Good,
}

impl WhyLeftOut {
    /// Whether the setting is at fault, so that the user should see it.
    pub fn is_of_fault(self) -> bool {
        !matches!(self, Self::Good | Self::NotApplicable | Self::Unknown)
    }
}
