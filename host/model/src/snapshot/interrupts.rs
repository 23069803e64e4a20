//! Device interrupts, their affinities and counts.

use crate::{CpuId, CpuSet, Reading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InterruptFacts {
    /// Numbered interrupts, in ascending order.
    pub irqs: Vec<Irq>,
    /// /proc/irq/default_smp_affinity: the CPUs for new interrupts.
    pub default_affinity: Reading<CpuSet>,
    /// Architecture interrupts of /proc/interrupts: "LOC", "RES", "CAL", "NMI", …
    pub vectors: Vec<Counter>,
    /// /proc/softirqs: "TIMER", "NET_RX", "RCU", …
    pub softirqs: Vec<Counter>,
}

/// A numbered interrupt, as in /proc/irq.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Irq {
    pub number: u32,
    /// Chip, hardware number and trigger as in /proc/interrupts: "PCI-MSI-0000:01:00.0 1-edge".
    pub chip: String,
    /// Handlers' names: "nvme0q3"; empty if there are none.
    pub actions: Vec<String>,
    /// CPUs that it may use (smp_affinity_list).
    pub affinity: Reading<CpuSet>,
    /// CPUs that it uses (effective_affinity_list).
    pub effective_affinity: Reading<CpuSet>,
    /// True if the kernel manages the affinity, so that users cannot change it; known only from debugfs irq/irqs.
    pub is_managed: Reading<bool>,
    /// NUMA node of the device, -1 if it has none.
    pub node: Reading<i32>,
    /// Interrupts since boot by CPU; CPUs with none are left out.
    pub count_by_cpu: BTreeMap<CpuId, u64>,
}

impl Irq {
    /// Number and name for display: "47 nvme0q3".
    pub fn label(&self) -> String {
        if self.actions.is_empty() {
            self.number.to_string()
        } else {
            format!("{} {}", self.number, self.actions.join("+"))
        }
    }

    /// The CPUs that it actually uses: the effective affinity, or the requested one if the kernel does not distinguish
    /// them.
    pub fn goes_to(&self) -> Reading<CpuSet> {
        if self.effective_affinity.is_absent() {
            self.affinity.clone()
        } else {
            self.effective_affinity.clone()
        }
    }

    /// True if the kernel manages it. Without debugfs, the queues of two kinds of disks count as managed, because their
    /// drivers request that: for NVMe all but the admin queue, number 0 (Linux 4.8), and for virtio-blk those with
    /// separate interrupts (Linux 4.11).
    pub fn counts_as_managed(&self) -> bool {
        let by_name = || self.actions.iter().any(|action| is_disk_queue(action));
        self.is_managed.known().copied().unwrap_or_else(by_name)
    }
}

/// Matches names such as "nvme0q1" and "virtio1-req.0".
fn is_disk_queue(action: &str) -> bool {
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let nvme = action.strip_prefix("nvme").and_then(|rest| rest.split_once('q'));
    let virtio = action.strip_prefix("virtio").and_then(|rest| rest.split_once("-req."));
    nvme.is_some_and(|(disk, queue)| is_number(disk) && queue.parse::<u32>().is_ok_and(|n| n > 0))
        || virtio.is_some_and(|(device, queue)| is_number(device) && is_number(queue))
}

/// A named counter per CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counter {
    /// The kernel's short name: "LOC".
    pub name: String,
    /// The kernel's long name: "Local timer interrupts"; empty for softirqs.
    pub description: String,
    /// Events since boot by CPU; CPUs with none are left out.
    pub count_by_cpu: BTreeMap<CpuId, u64>,
}

#[cfg(test)]
mod tests {
    use super::is_disk_queue;

    #[test]
    fn queues_of_disks_are_known_by_name() {
        for name in ["nvme0q1", "nvme12q64", "virtio1-req.0", "virtio10-req.15"] {
            assert!(is_disk_queue(name), "{name}");
        }
        // The admin queue, 9p's one queue, a request queue with a shared interrupt, a NIC's.
        for name in
            ["nvme0q0", "nvmeq1", "virtio2-requests", "virtio1-virtqueues", "virtio0-input.0", "virtio-req.1"]
        {
            assert!(!is_disk_queue(name), "{name}");
        }
    }
}
