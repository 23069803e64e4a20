//! Services, TuneD, irqbalance and control groups.

use crate::{CpuSet, Reading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Services and control groups that share the host with the trading processes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServiceFacts {
    pub source: ServiceSource,
    /// Units by full name: "chronyd.service".
    pub units: BTreeMap<String, Service>,
    /// The target that systemd starts: "multi-user.target".
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub default_target: Reading<String>,
    pub tuned: TunedFacts,
    pub irqbalance: IrqbalanceFacts,
    /// 1, 2, or 0 for hybrid; from the mounts under /sys/fs/cgroup.
    pub cgroup_version: Reading<u32>,
    /// Groups with a cpuset.cpus.partition other than "member".
    pub cpuset_partitions: Vec<CpusetPartition>,
    /// Configuration of systemd that names the CPUs of processes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub process_cpus: Vec<ProcessCpus>,
}

/// CPUs that systemd's configuration gives to processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProcessCpus {
    /// The slice, scope or service; empty for the manager, from which all processes inherit.
    pub unit: String,
    /// Name of the setting: "CPUAffinity" or "AllowedCPUs".
    pub key: String,
    /// The CPUs of all assignments together; an empty assignment discards those before it.
    pub cpus: Reading<CpuSet>,
    /// The file with the last assignment.
    pub path: String,
    /// Its line, counted from 1.
    pub line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServiceSource {
    /// From systemd over D-Bus: current states.
    SystemdBus,
    /// From unit files and control groups: enablement and presence, and the run state only if a group shows
    /// it.
    UnitFiles,
    /// No service manager was found.
    #[default]
    None,
}

/// States of one systemd unit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Service {
    /// Active state: "active", "inactive", "failed", "activating".
    pub active: Reading<String>,
    /// Sub-state: "running", "exited", "dead", "listening".
    pub sub: Reading<String>,
    /// State of the unit file: "enabled", "disabled", "static", "masked".
    pub enablement: Reading<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TunedFacts {
    /// /etc/tuned/active_profile; `Absent` without TuneD, `Known("")` without a profile.
    pub profile: Reading<String>,
    /// Mode of the profile: "manual", "auto" (/etc/tuned/profile_mode).
    pub mode: Reading<String>,
    /// `rollback` of tuned-main.conf: what happens when it stops ("auto" reverts everything, "not_on_exit"
    /// keeps it).
    pub rollback: Reading<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IrqbalanceFacts {
    /// Its configuration file: /etc/default/irqbalance or /etc/sysconfig/irqbalance.
    pub config_path: Reading<String>,
    /// CPUs it must not use (IRQBALANCE_BANNED_CPULIST or …_CPUS).
    pub banned_cpus: Reading<CpuSet>,
    /// The file that names them: its own, or a drop-in of its unit.
    pub banned_by: Reading<String>,
    /// IRQBALANCE_ARGS as written in the file.
    pub args: Reading<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpusetPartition {
    /// Path of the group below /sys/fs/cgroup.
    pub group: String,
    /// "root", "isolated", or "isolated invalid (…)".
    pub state: String,
    /// The CPUs in effect (cpuset.cpus.effective).
    pub cpus: Reading<CpuSet>,
}

impl CpusetPartition {
    /// True if the scheduler excludes all its CPUs from load balancing.
    pub fn is_isolated(&self) -> bool {
        self.state == "isolated"
    }
}
