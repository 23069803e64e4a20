//! What a saved plan is bound to.

use crate::{HostSnapshot, Reading, Topology};
use serde::{Deserialize, Serialize};

/// The marks of the host that a plan was made for. A plan whose marks differ from the host's is for another host, or
/// the host has changed underneath.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostMark {
    /// [`digest`] of /etc/machine-id; the id itself is kept off documents, as machine-id(5) asks.
    pub machine_id_digest: Reading<String>,
    /// System manufacturer and product (SMBIOS type 1).
    pub system: Reading<String>,
    /// Kernel release.
    pub kernel_release: Reading<String>,
    /// [`digest`] of CPUs, packages, nodes, cores and last-level caches.
    pub topology_digest: String,
}

impl HostMark {
    /// The marks of a host.
    pub fn of(host: &HostSnapshot) -> Self {
        let firmware = &host.firmware;
        let product = firmware.system_product.text();
        Self {
            // A redacted capture holds no id of the host, only its blanks.
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
}

/// CPUs and their groups as text, digested: a CPU that goes off, or another memory layout, gives another digest.
fn topology_digest(topology: &Topology) -> String {
    let groups = |groups: &[crate::topology::Group]| {
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

/// A 64-bit FNV-1a digest in hexadecimal: tells values apart, and is no protection against somebody who forges one.
pub fn digest(text: &str) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = text.bytes().fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_published_one() {
        // Test vectors of FNV-1a, 64 bits.
        assert_eq!(digest(""), "cbf29ce484222325");
        assert_eq!(digest("a"), "af63dc4c8601ec8c");
        assert_eq!(digest("foobar"), "85944171f73967e8");
    }
}
