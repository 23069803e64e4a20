//! Which CPUs keep house and which are isolated: a pure, explained choice.

mod choose;

#[cfg(test)]
mod tests;

use crate::{CpuSet, HostSnapshot, Role};
use serde::{Deserialize, Serialize};

/// The choice of CPUs, with the steps that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Allocation {
    /// CPUs for the kernel, services and interrupts.
    pub housekeeping: CpuSet,
    /// CPUs for trading threads. Empty only on a host of one CPU.
    pub isolated: CpuSet,
    /// The isolated CPUs on the nodes of the trading NICs: the first to use for threads that touch the network.
    #[serde(default)]
    pub isolated_near_nics: CpuSet,
    /// What was decided and why, one sentence a step.
    pub steps: Vec<String>,
    /// What the user should know: too few CPUs, shared caches, split cores. One sentence each.
    pub warnings: Vec<String>,
}

impl Allocation {
    /// Chooses CPUs for a host and a role. CPUs that the role names are taken as they are; the rest follows these rules:
    ///
    /// 1. Offline CPUs take no part.
    /// 2. Housekeeping gets the first core of every package, and of every NUMA node with CPUs and memory. "First" is
    ///    the core that holds the lowest CPU of the group as the kernel reports it.
    /// 3. SMT siblings stay on one side.
    /// 4. Housekeeping grows to its whole cluster, then to its whole last-level cache, where that takes at most a
    ///    quarter of the cores of the node; otherwise a warning names the isolated CPUs that share it.
    /// 5. No side is empty when the host has two CPUs. When rule 2 would leave nothing to isolate, housekeeping
    ///    shrinks to one core, away from the trading NICs where there is a choice.
    pub fn choose(host: &HostSnapshot, role: &Role) -> Self {
        choose::choose(host, role)
    }
}
