//! Kernel release, command line, configuration and state.

use crate::{Reading, cmdline::CommandLine, kernel_version::KernelVersion};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The expected text in the error for a boot loader's menu whose default entry depends on what only the boot shows.
pub const KNOWN_BEFORE_BOOT: &str = "an entry that is known before the boot";

/// Identity of the kernel, and how it was started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KernelFacts {
    /// The kernel release: "6.1.0-25-amd64" (/proc/sys/kernel/osrelease).
    pub release: Reading<String>,
    /// The leading numbers of the release.
    pub version: Reading<KernelVersion>,
    /// Build line (/proc/sys/kernel/version): "#1 SMP PREEMPT_DYNAMIC Debian …".
    pub build: Reading<String>,
    /// Machine architecture: "x86_64", "aarch64".
    pub machine: Reading<String>,
    /// The boot parameters, from /proc/cmdline.
    pub command_line: Reading<CommandLine>,
    /// The configuration options that settings need, without `CONFIG_`: "NO_HZ_FULL" to "y". An option that
    /// is not set is missing from a known map. From /proc/config.gz or /boot/config-RELEASE.
    pub config: Reading<BTreeMap<String, String>>,
    /// Taint flags (/proc/sys/kernel/tainted); 0 is untainted.
    pub tainted: Reading<u64>,
    /// The current lockdown mode: "none", "integrity", "confidentiality".
    pub lockdown: Reading<String>,
    /// SELinux: "enforcing", "permissive" or "disabled", as the running kernel has it.
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub selinux: Reading<String>,
    /// SELINUX= of /etc/selinux/config, the mode of later boots.
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub selinux_configured: Reading<String>,
    /// The default boot entry: its kernel's image, then the arguments. Absent if not read, as in captures. Unparsable
    /// if it depends on what only the boot shows.
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub default_boot_line: Reading<String>,
    /// True for a PREEMPT_RT kernel (/sys/kernel/realtime).
    pub is_realtime: Reading<bool>,
    /// Load averages over 1, 5 and 15 minutes.
    pub load_average: Reading<[f64; 3]>,
    pub uptime_s: Reading<f64>,
    /// Name of the distribution (PRETTY_NAME of /etc/os-release).
    pub distribution: Reading<String>,
    /// The id of this boot (/proc/sys/kernel/random/boot_id).
    pub boot_id: Reading<String>,
    /// [`crate::digest()`] of /etc/machine-id: identifies the host without revealing the ID.
    pub machine_id_digest: Reading<String>,
    /// Names of the loaded modules (/proc/modules), without those built into the kernel.
    pub modules: Reading<BTreeSet<String>>,
    /// Every assignment in sysctl.d, in the order in which systemd-sysctl applies them (the last one wins).
    pub sysctl_files: Vec<Assignment>,
}

impl KernelFacts {
    /// The value of a configuration option; `Known(None)` if the option is not set.
    pub fn config_option(&self, option: &str) -> Reading<Option<String>> {
        self.config.as_ref().map(|config| config.get(option).cloned())
    }

    /// True if the kernel is for x86; `None` if its machine is unknown.
    pub fn is_x86(&self) -> Option<bool> {
        let machine = self.machine.known()?;
        Some(matches!(machine.as_str(), "x86_64" | "i686" | "i586" | "i486" | "i386"))
    }

    /// The warning above every judgement of a host whose processor lowlat does not support.
    pub fn unsupported(&self) -> Option<String> {
        let machine = self.machine.known().filter(|name| !matches!(name.as_str(), "x86_64" | "aarch64"))?;
        Some(format!(
            "lowlat does not support {machine} processors, only x86_64 and aarch64. Do not rely on its verdicts, plans or \
             choice of CPUs on this host."
        ))
    }

    /// The command line, or an empty one.
    pub fn tokens(&self) -> CommandLine {
        self.command_line.known().cloned().unwrap_or_default()
    }
}

/// One line of a file that sets a value: of sysctl.d, of a unit, of a TuneD profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Assignment {
    /// The file, below the root.
    pub path: String,
    /// Line number, counted from 1.
    pub line: u32,
    /// The key with dots, as sysctl(8) prints it.
    pub key: String,
    /// The value as written in the file.
    pub value: String,
}
