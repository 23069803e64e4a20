//! Facts that a verification reads besides the snapshot: files by which other programs set values.

use lowlat_host::{
    Reading,
    snapshot::{Assignment, InterruptFacts},
};
use lowlat_settings::change::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Facts that show what overrides a plan, and the state of planned files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Files of the plan that the snapshot lacks: owned files, files with a key, values of the kernel.
    pub files: BTreeMap<String, Reading<String>>,
    /// Planned files that are replaced by a link to /dev/null.
    pub masked: Vec<String>,
    /// Options of TuneD's active profile, its parents first; the last assignment of a key wins.
    pub tuned: Vec<TunedOption>,
    /// Kernel parameters in the source files of boot entries.
    pub boot: Vec<BootSource>,
    /// The command line of the next boot's entry, if known.
    pub next_boot_line: Reading<String>,
    /// `Environment=` lines of drop-ins for the same units as planned ones, in systemd's order, then those
    /// of environment files, which win.
    pub environment: Vec<Assignment>,
    /// The variables of planned drop-ins in the environments of their running units.
    pub running: Vec<RunningVariable>,
    /// Lines of tmpfiles.d and sysfs.conf that write to /sys or /proc: path and value.
    pub sysfs_files: Vec<Assignment>,
    /// Lines of /etc/sysctl.conf, which `sysctl -p` applies and, on some hosts, the boot.
    pub sysctl_conf: Vec<Assignment>,
    /// Interrupts read again some time after the snapshot, if they were.
    pub interrupts_later: Option<InterruptFacts>,
    /// Changes that were refused: lasting ones when the plan was applied, others in this boot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
}

/// A change that lowlat could not make when it last tried, or not completely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub target: Target,
    /// The error, and what to do instead.
    pub reason: String,
}

/// One option of a TuneD profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TunedOption {
    pub path: String,
    /// Line number, from 1.
    pub line: u32,
    /// The plugin: the section's `type`, otherwise its name.
    pub plugin: String,
    /// The section's `devices`; empty if there are none.
    pub devices: String,
    pub key: String,
    /// Its value with variables expanded; unknown ones are kept.
    pub value: String,
}

/// A line with kernel parameters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootSource {
    pub path: String,
    /// Line number, from 1.
    pub line: u32,
    /// The variable: "GRUB_CMDLINE_LINUX", "options"; empty if the whole file is the line.
    pub variable: String,
    pub parameters: String,
}

/// A variable of a planned drop-in in the environment of the unit's process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningVariable {
    /// The unit, such as "irqbalance.service".
    pub unit: String,
    pub key: String,
    /// Its value; absent if the process lacks it.
    pub value: Reading<String>,
}
