//! Kernel threads and workqueues: the kernel's own work that can land on an isolated CPU.

use crate::{CpuSet, Reading};
use serde::{Deserialize, Serialize};

/// Kernel threads, workqueues, and where this process may run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TaskFacts {
    /// Kernel threads, by pid.
    pub kernel_threads: Vec<KernelThread>,
    /// Workqueues with attributes in sysfs.
    pub workqueues: Vec<Workqueue>,
    /// /sys/devices/virtual/workqueue/cpumask: where unbound work may go.
    pub workqueue_cpus: Reading<CpuSet>,
    /// CPUs that the reading process may use.
    pub allowed_cpus: Reading<CpuSet>,
}

/// One kernel thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelThread {
    /// Process id.
    pub pid: u32,
    /// Name: "ksoftirqd/3".
    pub comm: String,
    /// CPUs it may use.
    pub cpus_allowed: Reading<CpuSet>,
    /// Scheduling policy.
    pub policy: SchedPolicy,
    /// Real-time priority, 1 to 99, or 0.
    pub rt_priority: u32,
    /// Whether the kernel forbids changing its affinity (PF_NO_SETAFFINITY).
    pub is_bound: bool,
}

/// Scheduling policies of Linux (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchedPolicy {
    /// SCHED_OTHER.
    Other,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_EXT.
    Ext,
    /// A number this version does not know.
    Unknown,
}

impl SchedPolicy {
    /// The policy of the kernel's number (field 41 of /proc/PID/stat).
    pub fn from_number(number: u32) -> Self {
        match number {
            0 => Self::Other,
            1 => Self::Fifo,
            2 => Self::Rr,
            3 => Self::Batch,
            5 => Self::Idle,
            6 => Self::Deadline,
            7 => Self::Ext,
            _ => Self::Unknown,
        }
    }
}

/// One workqueue of /sys/bus/workqueue/devices.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Workqueue {
    /// "writeback".
    pub name: String,
    /// Its cpumask.
    pub cpus: Reading<CpuSet>,
}
