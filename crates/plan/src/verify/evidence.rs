//! What a verification looks at beside the snapshot: the files that others set values by. Facts only.

use lowlat_host::{
    Reading,
    snapshot::{InterruptFacts, SysctlAssignment},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts that tell who overrides a plan, and how planned files stand.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Files that the plan names and the snapshot does not hold: owned files, files with a key, values of the kernel.
    pub files: BTreeMap<String, Reading<String>>,
    /// Planned files in whose place a link to /dev/null stands.
    pub masked: Vec<String>,
    /// What the active profile of TuneD sets, its parents first; the last assignment of a key wins.
    pub tuned: Vec<TunedOption>,
    /// Parameters of the kernel in the files that boot entries are made from.
    pub boot: Vec<BootSource>,
    /// The line of the entry that the next boot takes, where that can be told.
    pub next_boot_line: Reading<String>,
    /// `Environment=` lines of drop-ins beside planned ones, in the order in which systemd reads them, and then those
    /// of environment files, which win.
    pub environment: Vec<Assignment>,
    /// What running units with a planned drop-in have in their environment, of the variables that it sets.
    pub running: Vec<RunningVariable>,
    /// Lines of tmpfiles.d and sysfs.conf that write to /sys or /proc: path and value.
    pub sysfs_files: Vec<Assignment>,
    /// Lines of /etc/sysctl.conf, which `sysctl -p` sets and, on some hosts, the boot.
    pub sysctl_conf: Vec<SysctlAssignment>,
    /// Interrupts as they were some time after the snapshot; none when the host was looked at once.
    pub interrupts_later: Option<InterruptFacts>,
}

/// One option of a TuneD profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunedOption {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The plugin: the section's `type`, else its name.
    pub plugin: String,
    /// The section's `devices`; empty when it names none.
    pub devices: String,
    /// The option.
    pub key: String,
    /// Its value with variables put in; what could not be put in stays as written.
    pub value: String,
}

/// A line that holds parameters of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootSource {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The variable: "GRUB_CMDLINE_LINUX", "options"; empty when the whole file is the line.
    pub variable: String,
    /// The parameters.
    pub parameters: String,
}

/// A variable that a planned drop-in sets, in the environment of the unit's running process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningVariable {
    /// "irqbalance.service".
    pub unit: String,
    /// The variable.
    pub key: String,
    /// Its value; absent when the process runs without it.
    pub value: Reading<String>,
}

/// A line of a file that gives something a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// What gets the value.
    pub key: String,
    /// The value.
    pub value: String,
}
