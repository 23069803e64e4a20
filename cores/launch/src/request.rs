//! The user's request.

use crate::{Accelerator, Place, ThreadMap};
use lowlat_host::{CpuSet, snapshot::SchedPolicy};
use std::num::NonZeroU32;

/// Way in which the command waits for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Busy-waits: each thread needs a CPU of its own.
    #[default]
    Spin,
    /// Sleeps until an interrupt: threads may share CPUs.
    Interrupt,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CpuChoice {
    List(CpuSet),
    /// One per busy thread, chosen by this rule.
    Place(Place),
}

/// Memory policy of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryPolicy {
    /// The kernel's default policy, which it inherits.
    #[default]
    Inherited,
    /// Each thread allocates on the node of its CPU (MPOL_LOCAL).
    Local,
    /// Only on this NUMA node (MPOL_BIND).
    Node(u32),
}

/// Everything that the user asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub mode: Mode,
    /// Network acceleration; `None` uses the kernel's sockets.
    pub accelerator: Option<Accelerator>,
    pub cpus: CpuChoice,
    /// Number of busy threads; `None` is one, or as many as appear under a rule of clusters.
    pub thread_count: Option<NonZeroU32>,
    /// Number of copies of the command, one to a CPU; `None` runs one command whose threads are placed.
    pub copies: Option<NonZeroU32>,
    /// Scheduling policy with its real-time priority; `None` inherits.
    pub policy: Option<(SchedPolicy, u32)>,
    pub memory: MemoryPolicy,
    /// True if malloc uses huge pages.
    pub has_huge_pages: bool,
    /// True if all CPUs stay out of idle states while the command runs.
    pub is_awake: bool,
    /// CPUs of threads by name.
    pub thread_map: ThreadMap,
}

impl Request {
    /// Returns the number of CPUs that must run something at any time.
    pub fn busy_count(&self) -> u32 {
        self.copies.or(self.thread_count).map_or(1, NonZeroU32::get)
    }

    /// True if threads are placed on as many CPUs as they need, whatever their number.
    pub fn is_open_ended(&self) -> bool {
        let by_clusters = matches!(self.cpus, CpuChoice::Place(Place::ClusterSpread | Place::ClusterPack));
        by_clusters && self.copies.or(self.thread_count).is_none()
    }
}
