//! The facts read from a host, each a [`Reading`], without judgement.
//!
//! There are two kinds of facts. *Structured* facts (topology, interrupts, NICs, …) have their own readers.
//! *Knobs* are single small files that settings of the catalogue name in `reads`. They are kept by path in
//! [`HostSnapshot::files`], so that a new setting needs no new reader.

mod cpu;
mod interrupts;
mod kernel;
mod memory;
mod nic;
mod scheduler;
mod services;
mod tasks;

pub use cpu::{CpuFacts, CpuFreq, IdleState};
pub use interrupts::{Counter, InterruptFacts, Irq};
pub use kernel::{Assignment, KNOWN_BEFORE_BOOT, KernelFacts};
pub use memory::{HugePages, MemoryFacts, MemoryModule, Swap};
pub use nic::{
    Channels, Coalescing, Disk, Eee, Fec, Napi, NapiField, Nic, Pause, PcieLink, PcieTransfers, QueueMask,
    Rings, Timestamping,
};
pub use scheduler::{NamedDomain, SchedDomain, SchedulerFacts};
pub use services::{
    CpusetPartition, IrqbalanceFacts, ProcessCpus, Service, ServiceFacts, ServiceSource, TunedFacts,
};
pub use tasks::{KernelThread, SchedPolicy, TaskFacts, Workqueue};

use crate::{Reading, topology::Topology};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Everything read from one host at one time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HostSnapshot {
    /// Version of this document's format; increases when a field changes its meaning.
    pub schema_version: u32,
    pub origin: Origin,
    /// Packages, nodes, caches, clusters, cores.
    pub topology: Topology,
    /// Processor model, clocks, frequency and idle states.
    pub cpu: CpuFacts,
    /// Memory, huge pages, swap, modules.
    pub memory: MemoryFacts,
    pub firmware: FirmwareFacts,
    /// Kernel release, command line, configuration.
    pub kernel: KernelFacts,
    pub interrupts: InterruptFacts,
    /// The scheduler's domains and balancing.
    #[serde(default, skip_serializing_if = "SchedulerFacts::is_unread")]
    pub scheduler: SchedulerFacts,
    pub tasks: TaskFacts,
    /// Services, tuned, irqbalance, control groups.
    pub services: ServiceFacts,
    pub nics: Vec<Nic>,
    /// Network stacks that bypass the kernel's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bypasses: Vec<Bypass>,
    /// Block devices.
    pub disks: Vec<Disk>,
    pub virtualization: Virtualization,
    /// Small files that settings name, by path below the root, without trailing white space. A missing file
    /// is kept as `Absent`; a glob without matches leaves no entry.
    pub files: BTreeMap<String, Reading<String>>,
    /// Directories and files that were not read although their entries make up a list above: that list being empty
    /// does not mean that the host has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unread: BTreeMap<String, Reading<()>>,
}

impl HostSnapshot {
    /// The [`HostSnapshot::schema_version`] of new snapshots.
    pub const SCHEMA_VERSION: u32 = 1;

    /// Returns `list`, made from the entries at `place`, or the failed reading if `place` was not read.
    pub fn listed<T>(&self, place: &str, list: T) -> Reading<T> {
        self.unread.get(place).map_or(Reading::Known(()), Clone::clone).map(|()| list)
    }

    /// The knob at `path`; `Absent` if nothing was read there.
    pub fn file(&self, path: &str) -> Reading<String> {
        self.files.get(path).cloned().unwrap_or_default()
    }

    /// The interfaces that carry the traffic of these: the lowest ones below a bond, bridge, VLAN or macvlan.
    pub fn carriers_of(&self, names: &[String]) -> BTreeSet<String> {
        let (mut seen, mut carriers) = (BTreeSet::new(), BTreeSet::new());
        let mut open = names.to_vec();
        while let Some(name) = open.pop() {
            if !seen.insert(name.clone()) {
                continue;
            }
            match self.nics.iter().find(|nic| nic.name == name).filter(|nic| !nic.lower.is_empty()) {
                Some(nic) => open.extend(nic.lower.iter().cloned()),
                None => drop(carriers.insert(name)),
            }
        }
        carriers
    }

    /// The knobs whose path matches a glob with `*` inside path components, in path order.
    pub fn files_matching<'a>(
        &'a self,
        glob: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a Reading<String>)> + 'a {
        let prefix = &glob[..glob.find('*').unwrap_or(glob.len())];
        self.files
            .range(prefix.to_owned()..)
            .take_while(move |(path, _)| path.starts_with(prefix))
            .filter(move |(path, _)| glob_matches(glob, path))
            .map(|(path, reading)| (path.as_str(), reading))
    }

    /// The sysctl `key` (`kernel.numa_balancing`), read from `/proc/sys`.
    pub fn sysctl(&self, key: &str) -> Reading<String> {
        self.file(&sysctl_path(key))
    }
}

/// The file of a sysctl key: dots separate the components, as in sysctl(8).
pub fn sysctl_path(key: &str) -> String {
    format!("/proc/sys/{}", key.replace('.', "/"))
}

/// The sysctl that the kernel sets to 0 when the one at `path` is changed, both given by their files. A limit
/// of dirty memory is either a share or a number of bytes, and the last one written applies
/// (Documentation/admin-guide/sysctl/vm.rst).
pub fn sysctl_zeroed_with(path: &str) -> Option<&'static str> {
    match path {
        "/proc/sys/vm/dirty_ratio" => Some("/proc/sys/vm/dirty_bytes"),
        "/proc/sys/vm/dirty_background_ratio" => Some("/proc/sys/vm/dirty_background_bytes"),
        _ => None,
    }
}

/// True if `path` matches `glob`, where `*` matches any run of characters within one component.
pub fn glob_matches(glob: &str, path: &str) -> bool {
    let (mut wanted, mut found) = (glob.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(w), Some(f)) if component_matches(w, f) => {}
            _ => return false,
        }
    }
}

/// True if one path component matches a pattern with `*`.
pub fn component_matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut tail) = name.strip_prefix(head) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or("");
    for piece in pieces {
        match tail.find(piece) {
            Some(at) => tail = &tail[at + piece.len()..],
            None => return false,
        }
    }
    tail.len() >= last.len() && tail.ends_with(last)
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Origin {
    /// Live host, directory or capture file.
    pub kind: OriginKind,
    /// The root that the user named: `/`, a directory, a capture file.
    pub label: String,
    /// True if hostnames, MACs, serials and UUIDs were removed when it was captured.
    pub is_redacted: bool,
    /// True if it was read as root; otherwise some facts are denied.
    pub is_privileged: bool,
}

/// The kinds of roots a snapshot can be read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OriginKind {
    /// The host that lowlat runs on.
    #[default]
    Live,
    /// A directory with a tree such as `proc/` and `sys/`.
    Directory,
    /// A capture file or another archive of such a tree.
    Capture,
}

/// The firmware's description of itself and of the machine (SMBIOS types 0, 1, 2).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FirmwareFacts {
    /// BIOS vendor (type 0): "HPE".
    pub bios_vendor: Reading<String>,
    /// BIOS version (type 0): "A42".
    pub bios_version: Reading<String>,
    /// BIOS release date as written (type 0): "04/29/2020".
    pub bios_date: Reading<String>,
    /// BIOS revision (type 0): "1.24".
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub bios_revision: Reading<String>,
    /// Firmware revision of the embedded or management controller (type 0, else its IPMI driver): iLO's "2.30".
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub controller_revision: Reading<String>,
    /// System manufacturer (SMBIOS type 1).
    pub system_vendor: Reading<String>,
    /// System product name (type 1): "ProLiant DL385 Gen10 Plus".
    pub system_product: Reading<String>,
    /// Base board (type 2): manufacturer and product.
    pub board: Reading<String>,
    /// Version of the SMBIOS tables: "3.2".
    pub smbios_version: Reading<String>,
    /// True if the host was booted through UEFI (/sys/firmware/efi exists).
    pub is_uefi: Reading<bool>,
    /// True if UEFI Secure Boot is on.
    pub secure_boot: Reading<bool>,
    /// Number of IOMMUs that the kernel uses (/sys/class/iommu); `Known(0)` if the class is empty.
    pub iommu_count: Reading<u32>,
}

/// One network stack and what shows that it is installed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Bypass {
    /// "Onload", "VMA", "XLIO", "exasock", "TCPDirect".
    pub name: String,
    /// Its library, program or kernel module: "/usr/lib64/libonload.so". Absent if it is not installed.
    pub found: Reading<String>,
    /// Version: of the loaded kernel module, otherwise from the name of the library's file.
    pub version: Reading<String>,
    /// True if its kernel module is loaded; absent for a stack without one.
    pub is_loaded: Reading<bool>,
}

/// The hypervisor, if any, and the time that it took from the host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Virtualization {
    /// True if the host is a virtual machine: from the `hypervisor` CPU flag on x86; elsewhere from a device tree's
    /// hypervisor node, the platform `linux,dummy-virt`, or the vendor's name in SMBIOS.
    pub is_virtual: Reading<bool>,
    /// The hypervisor's name, if known: "KVM", "VMware", "Xen", "Microsoft", "QEMU (TCG)".
    pub hypervisor: Reading<String>,
    /// Time in which the hypervisor ran something else, since boot, per CPU in clock ticks (`/proc/stat`,
    /// "steal").
    pub steal_ticks: BTreeMap<u32, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_within_components() {
        assert!(glob_matches("/sys/devices/system/cpu/cpu*/online", "/sys/devices/system/cpu/cpu12/online"));
        assert!(!glob_matches("/sys/cpu*/online", "/sys/cpu1/x/online"));
        assert!(glob_matches("/a/*-b-*", "/a/x-b-"));
        assert!(!glob_matches("/a/ab*ba", "/a/aba"));
        assert!(glob_matches("/a", "/a"));
    }

    #[test]
    fn files_matching_starts_at_the_fixed_prefix() {
        let mut host = HostSnapshot::default();
        for cpu in [0, 1, 10] {
            host.files.insert(format!("/sys/cpu{cpu}/governor"), Reading::Known("powersave".into()));
        }
        host.files.insert("/sys/cpux".into(), Reading::Absent);
        assert_eq!(host.files_matching("/sys/cpu*/governor").count(), 3);
    }
}
