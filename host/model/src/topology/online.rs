//! The online CPUs.

use super::RawTopology;
use crate::CpuSet;

/// The online CPUs: the kernel's own list, otherwise those that are described and not switched off. Lists
/// with CPUs beyond [`crate::CPU_ID_MAX`] are unparsable.
pub(super) fn online(raw: &RawTopology, oddities: &mut Vec<String>) -> CpuSet {
    match raw.online.known() {
        Some(listed) if !listed.is_empty() => {
            let switched_off = switched_off(raw).intersection(listed);
            if !switched_off.is_empty() {
                oddities.push(format!(
                    "{switched_off:#}: in the kernel's list of online CPUs, but switched off in its own \
                     file; the list is used."
                ));
            }
            listed.clone()
        }
        _ => {
            if let Some(why) = raw.online.missing_in_words() {
                if !raw.cpus.is_empty() {
                    oddities.push(format!(
                        "The kernel's list of online CPUs is {why}; the CPUs that it describes are used."
                    ));
                }
            } else {
                oddities.push(
                    "The kernel's list of online CPUs is empty; the CPUs that it describes are used.".into(),
                );
            }
            described(raw)
        }
    }
}

fn switched_off(raw: &RawTopology) -> CpuSet {
    raw.cpus.iter().filter(|(_, cpu)| cpu.is_online.known() == Some(&false)).map(|(id, _)| *id).collect()
}

/// The kernel removes the topology directory of a CPU that goes offline. Kernels that describe no locations
/// have none at all, so a missing one is meaningful only beside others.
fn described(raw: &RawTopology) -> CpuSet {
    let with_topology: CpuSet =
        raw.cpus.iter().filter(|(_, cpu)| cpu.has_topology).map(|(id, _)| *id).collect();
    let all: CpuSet = raw.cpus.keys().copied().collect();
    let known = if with_topology.is_empty() { all } else { with_topology };
    known.difference(&switched_off(raw))
}

/// The CPUs that are plugged in but not running.
pub(super) fn offline(raw: &RawTopology, online: &CpuSet) -> CpuSet {
    let described = raw.cpus.keys().copied().collect();
    raw.present.known().unwrap_or(&described).difference(online)
}
