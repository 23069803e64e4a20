//! Which CPUs are measured when the user names none.

use lowlat_measure::affinity;
use lowlat_model::{CpuSet, HostSnapshot};

/// The CPUs of a run, and what to say about the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The CPUs.
    pub cpus: CpuSet,
    /// Whether all of them are isolated by the kernel, so that quiet is claimed of them.
    pub is_isolated: bool,
    /// A sentence for the document when the choice is not the user's and needs explaining.
    pub note: Option<String>,
}

/// The CPUs named, else the isolated ones that this process can run on, else all that it may use.
pub fn choose(named: Option<&CpuSet>, snapshot: &HostSnapshot) -> Chosen {
    let isolated = isolated_by_kernel(snapshot);
    if let Some(cpus) = named {
        let is_isolated = !cpus.is_empty() && cpus.is_subset(&isolated);
        return Chosen { cpus: cpus.clone(), is_isolated, note: None };
    }
    let usable = affinity::settable(&isolated).unwrap_or_default();
    if !usable.is_empty() {
        let left = isolated.difference(&usable);
        let note = (!left.is_empty()).then(|| {
            format!("{left:#}: isolated too, but outside of this process's cpuset, so not measured.")
        });
        return Chosen { cpus: usable, is_isolated: true, note };
    }
    let allowed = snapshot.tasks.allowed_cpus.known().cloned();
    Chosen {
        cpus: allowed.unwrap_or_else(|| snapshot.topology.online.clone()),
        is_isolated: false,
        note: Some(
            "No CPU of this host is isolated, so every CPU that this process may use was measured; lowlat cpus isolated \
             tells which ones to isolate."
                .to_owned(),
        ),
    }
}

/// CPUs that the kernel keeps ordinary threads from: by isolcpus= or by an isolated cpuset partition; where there are
/// none, those that it keeps the tick from.
fn isolated_by_kernel(snapshot: &HostSnapshot) -> CpuSet {
    let mut isolated = snapshot.topology.isolated.known().cloned().unwrap_or_default();
    let partitions =
        snapshot.services.cpuset_partitions.iter().filter(|partition| partition.state == "isolated");
    isolated.extend(partitions.filter_map(|partition| partition.cpus.known()).flat_map(CpuSet::iter));
    if isolated.is_empty() {
        // A host set up by the guide has no isolcpus=: its quiet CPUs are those without a tick.
        isolated = snapshot.topology.nohz_full.known().cloned().unwrap_or_default();
    }
    isolated
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_model::{Reading, snapshot::CpusetPartition};

    fn host(isolated: &str) -> HostSnapshot {
        let mut host = HostSnapshot::default();
        host.topology.isolated = Reading::Known(CpuSet::parse_list(isolated).unwrap());
        host.topology.online = CpuSet::parse_list("0-7").unwrap();
        host.tasks.allowed_cpus = Reading::Known(CpuSet::parse_list("0-3").unwrap());
        host
    }

    #[test]
    fn named_cpus_are_taken_as_they_are() {
        let named = CpuSet::parse_list("2-3").unwrap();
        let chosen = choose(Some(&named), &host("2-7"));
        assert_eq!((chosen.cpus.to_list().as_str(), chosen.is_isolated, chosen.note), ("2-3", true, None));
        assert!(!choose(Some(&named), &host("3-7")).is_isolated);
    }

    #[test]
    fn a_host_without_isolation_is_measured_as_it_is() {
        let chosen = choose(None, &host(""));
        assert_eq!((chosen.cpus.to_list().as_str(), chosen.is_isolated), ("0-3", false));
        assert!(chosen.note.unwrap().contains("No CPU of this host is isolated"));
    }

    #[test]
    fn a_host_set_up_by_the_guide_has_cpus_without_a_tick() {
        let mut host = host("");
        host.topology.nohz_full = Reading::Known(CpuSet::of(0));
        let chosen = choose(None, &host);
        assert_eq!((chosen.cpus, chosen.is_isolated), (CpuSet::of(0), true));
    }

    #[test]
    fn an_isolated_partition_counts() {
        let mut host = host("");
        host.services.cpuset_partitions.push(CpusetPartition {
            group: "/trading".into(),
            state: "isolated".into(),
            cpus: Reading::Known(CpuSet::of(0)),
        });
        assert_eq!(choose(None, &host).cpus, CpuSet::of(0), "the one this test can run on");
        assert!(choose(Some(&CpuSet::of(0)), &host).is_isolated);
    }
}
