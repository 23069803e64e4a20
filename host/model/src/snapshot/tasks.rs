//! Kernel threads and workqueues: the kernel's own work that can run on an isolated CPU.

use crate::{CpuSet, Reading};
use serde::{Deserialize, Serialize};

/// Kernel threads, workqueues, and the CPUs of this process.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TaskFacts {
    /// Kernel threads, sorted by process ID.
    pub kernel_threads: Vec<KernelThread>,
    /// Workqueues with attributes in sysfs.
    pub workqueues: Vec<Workqueue>,
    /// /sys/devices/virtual/workqueue/cpumask: the CPUs for unbound work.
    pub workqueue_cpus: Reading<CpuSet>,
    /// CPUs that the reading process may use.
    pub allowed_cpus: Reading<CpuSet>,
    /// CPUs that process 1 may use, and with it every process that requests none.
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub first_process_cpus: Reading<CpuSet>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct KernelThread {
    pub pid: u32,
    /// Name of the thread: "ksoftirqd/3".
    pub comm: String,
    pub cpus_allowed: Reading<CpuSet>,
    pub policy: SchedPolicy,
    /// Real-time priority, 1 to 99, or 0.
    pub rt_priority: u32,
    /// True if the kernel forbids changing its affinity (PF_NO_SETAFFINITY).
    pub is_bound: bool,
}

/// Scheduling policies of Linux (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedPolicy {
    Other,
    Fifo,
    Rr,
    Batch,
    Idle,
    Deadline,
    Ext,
    /// A number that this version does not know.
    Unknown,
}

/// Each policy with its number and name in linux/sched.h.
const POLICIES: [(SchedPolicy, u32, &str); 7] = [
    (SchedPolicy::Other, 0, "SCHED_OTHER"),
    (SchedPolicy::Fifo, 1, "SCHED_FIFO"),
    (SchedPolicy::Rr, 2, "SCHED_RR"),
    (SchedPolicy::Batch, 3, "SCHED_BATCH"),
    (SchedPolicy::Idle, 5, "SCHED_IDLE"),
    (SchedPolicy::Deadline, 6, "SCHED_DEADLINE"),
    (SchedPolicy::Ext, 7, "SCHED_EXT"),
];

impl SchedPolicy {
    /// The policy with the kernel's number (field 41 of /proc/PID/stat).
    pub fn from_number(number: u32) -> Self {
        POLICIES.iter().find(|row| row.1 == number).map_or(Self::Unknown, |row| row.0)
    }

    /// The policy with the kernel's name: "SCHED_FIFO".
    pub fn from_name(name: &str) -> Option<Self> {
        POLICIES.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// The kernel's number; `None` for [`SchedPolicy::Unknown`].
    pub fn number(self) -> Option<u32> {
        POLICIES.iter().find(|row| row.0 == self).map(|row| row.1)
    }

    /// The kernel's name: "SCHED_FIFO"; "unknown" for [`SchedPolicy::Unknown`].
    pub fn name(self) -> &'static str {
        POLICIES.iter().find(|row| row.0 == self).map_or("unknown", |row| row.2)
    }
}

/// A workqueue that has a directory in /sys/bus/workqueue/devices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Workqueue {
    /// Name of the workqueue: "writeback".
    pub name: String,
    /// CPUs in its file cpumask.
    pub cpus: Reading<CpuSet>,
}
