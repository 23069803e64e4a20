//! Chooses housekeeping and isolated CPUs: pure, and with an explanation.

mod choose;

#[cfg(test)]
mod tests;

use crate::{CpuSet, HostSnapshot, Role};
use serde::{Deserialize, Serialize};

/// The choice of CPUs, with the steps that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Allocation {
    /// CPUs for the kernel, services and interrupts.
    pub housekeeping: CpuSet,
    /// CPUs for trading threads. Empty only on a host with one CPU.
    pub isolated: CpuSet,
    /// The isolated CPUs on the nodes of the trading NICs: the first to use for threads that use the network.
    pub isolated_near_nics: CpuSet,
    /// The decisions and their reasons, one sentence per step.
    pub steps: Vec<String>,
    /// Warnings for the user: too few CPUs, shared caches, split cores. One sentence each.
    pub warnings: Vec<String>,
}

impl Allocation {
    /// Chooses CPUs for a host and a role. CPUs that the role names are used as they are. The other CPUs
    /// follow these rules:
    ///
    /// 1. Offline CPUs are ignored.
    /// 2. Housekeeping gets the first core of every package, and of every NUMA node with CPUs and memory.
    ///    "First" is the core with the lowest CPU of the group, as the kernel reports it. On a hybrid processor
    ///    housekeeping gets the first core of the host and the efficiency cores, low-power ones included.
    /// 3. SMT siblings stay on one side.
    /// 4. Housekeeping grows to its whole cluster, then to its whole last-level cache, if that takes at most
    ///    a quarter of the cores in the node. Otherwise a warning names the isolated CPUs that share it.
    /// 5. No side is empty on a host with two or more CPUs. If rule 2 would leave nothing to isolate,
    ///    housekeeping shrinks to one core, away from the trading NICs if there is a choice.
    pub fn choose(host: &HostSnapshot, role: &Role) -> Self {
        choose::choose(host, role)
    }
}
