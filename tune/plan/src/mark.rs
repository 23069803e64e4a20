//! The marks that bind a saved plan to its host.

use lowlat_host::{HostSnapshot, Reading, Topology, digest};
use serde::{Deserialize, Serialize};

/// The marks of the host that a plan was made for. If they differ from the host's, the plan is for another
/// host, or the host's hardware or kernel has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostMark {
    /// [`digest()`] of /etc/machine-id; documents do not contain the ID itself, as machine-id(5) requires.
    pub machine_id_digest: Reading<String>,
    /// System manufacturer and product (SMBIOS type 1).
    pub system: Reading<String>,
    pub kernel_release: Reading<String>,
    /// [`digest()`] of CPUs, packages, nodes, cores and last-level caches.
    pub topology_digest: String,
}

impl HostMark {
    /// The marks of a host.
    pub fn of(host: &HostSnapshot) -> Self {
        let firmware = &host.firmware;
        let product = firmware.system_product.text();
        Self {
            // A redacted capture contains placeholders instead of the host's ID.
            machine_id_digest: if host.origin.is_redacted {
                Reading::Absent
            } else {
                host.kernel.machine_id_digest.clone()
            },
            system: firmware
                .system_vendor
                .clone()
                .map(|vendor| format!("{vendor} {product}").trim_end().to_owned()),
            kernel_release: host.kernel.release.clone(),
            topology_digest: topology_digest(&host.topology),
        }
    }

    /// True if the other marks belong to another machine: the IDs differ, or the manufacturer or product. Marks that
    /// are unknown on either side are not compared.
    pub fn is_other_machine(&self, other: &Self) -> bool {
        let differ = |a: &Reading<String>, b: &Reading<String>| a.is_known() && b.is_known() && a != b;
        differ(&self.machine_id_digest, &other.machine_id_digest) || differ(&self.system, &other.system)
    }
}

/// The digest of CPUs and their groups. It changes if a CPU goes offline or the memory layout changes.
fn topology_digest(topology: &Topology) -> String {
    let groups = |groups: &[lowlat_host::topology::Group]| {
        groups.iter().map(|group| group.cpus.to_list()).collect::<Vec<_>>().join(" ")
    };
    let nodes = topology.nodes.iter().map(|node| format!("{}:{}", node.id, node.cpus.to_list()));
    let llcs = topology.llcs().into_iter().map(|llc| llc.cpus.to_list());
    digest(&format!(
        "{}|{}|{}|{}|{}",
        topology.online.to_list(),
        groups(&topology.packages),
        groups(&topology.cores),
        nodes.collect::<Vec<_>>().join(" "),
        llcs.collect::<Vec<_>>().join(" "),
    ))
}
