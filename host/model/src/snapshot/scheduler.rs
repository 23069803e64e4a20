//! The scheduler's knowledge of caches: its domains, its balancing by cache, and a loaded BPF scheduler.

use crate::{CpuSet, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The scheduler's view of the topology.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SchedulerFacts {
    /// Version of the format of /proc/schedstat.
    pub schedstat_version: Reading<u32>,
    /// Every domain in /proc/schedstat once, narrowest first.
    pub domains: Reading<Vec<SchedDomain>>,
    /// Names of domains (debugfs `sched/domains`), narrowest first. The kernel lists them after `sched_verbose` on its
    /// command line or "Y" in `sched/verbose`.
    pub named_domains: Reading<Vec<NamedDomain>>,
    /// Cache-aware scheduling's files in debugfs `sched/llc_balancing` (Linux 7.2), by name.
    pub llc_balancing: Reading<BTreeMap<String, Reading<String>>>,
    /// State of `sched_ext`: "enabled" while a BPF scheduler is loaded.
    pub ext_state: Reading<String>,
    /// Name of the loaded BPF scheduler.
    pub ext_scheduler: Reading<String>,
}

impl SchedulerFacts {
    /// Kernel options that the scheduler's facts depend on, without `CONFIG_`.
    pub const CONFIG_OPTIONS: [&str; 4] = ["SCHEDSTATS", "SCHED_CACHE", "SCHED_CLASS_EXT", "SCHED_CLUSTER"];

    /// True if the host showed none of it, or the snapshot is of an earlier version.
    pub fn is_unread(&self) -> bool {
        *self == Self::default()
    }

    /// Name of the loaded BPF scheduler; "unknown" if only its name cannot be read.
    pub fn loaded_ext(&self) -> Option<&str> {
        let is_loaded = matches!(self.ext_state.text(), "enabled" | "enabling");
        is_loaded.then(|| self.ext_scheduler.known().map_or("unknown", String::as_str))
    }
}

/// CPUs among which the scheduler balances.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
pub struct SchedDomain {
    /// Place from the narrowest domain of a CPU.
    pub level: u32,
    /// "SMT", "CLS", "MC", "PKG"; `None` before version 17 of the format.
    pub name: Option<String>,
    pub cpus: CpuSet,
}

/// A level of domains by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NamedDomain {
    /// Place from the narrowest domain of a CPU.
    pub level: u32,
    /// Name of the level: "SMT", "CLS", "MC", "PKG".
    pub name: String,
    /// Flags of the level: "SD_CLUSTER", "SD_SHARE_LLC", …
    pub flags: Reading<Vec<String>>,
    /// CPUs that have such a domain.
    pub cpus: CpuSet,
}
