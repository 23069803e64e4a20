//! Which CPUs are measured when the user names none.

use anyhow::bail;
use lowlat_host::{CpuSet, HostSnapshot, snapshot::CpusetPartition};
use lowlat_measure::affinity;

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

/// The CPUs named, else the isolated ones that this process can run on, else all of them.
///
/// # Errors
/// The host isolates CPUs, and this process can run on none of them: others would be taken for them.
pub fn isolated_first(named: Option<&CpuSet>, snapshot: &HostSnapshot) -> anyhow::Result<Chosen> {
    choose_isolated(named, snapshot, &settable)
}

/// The CPUs named, else all that this process can run on, isolated or not.
pub fn all(named: Option<&CpuSet>, snapshot: &HostSnapshot) -> Chosen {
    choose_all(named, snapshot, &settable)
}

/// Those of `cpus` on which this process can run. Its own mask does not tell: it holds CPUs that are offline, and
/// isolcpus= takes the isolated ones out of it.
fn settable(cpus: &CpuSet) -> CpuSet {
    // Without an answer all are tried, and what the run can't have it names.
    affinity::settable(cpus).unwrap_or_else(|_| cpus.clone())
}

fn choose_isolated(
    named: Option<&CpuSet>,
    snapshot: &HostSnapshot,
    settable: &impl Fn(&CpuSet) -> CpuSet,
) -> anyhow::Result<Chosen> {
    let isolated = isolated_by_kernel(snapshot);
    if named.is_some() || isolated.is_empty() {
        let note = "No CPU of this host is isolated, so every CPU that this process may use was measured; lowlat cpus \
                    isolated tells which ones to isolate.";
        let chosen = choose_all(named, snapshot, settable);
        return Ok(Chosen { note: named.is_none().then(|| note.to_owned()), ..chosen });
    }
    let cpus = settable(&isolated);
    if cpus.is_empty() {
        bail!(
            "{isolated:#}: isolated, but offline or outside of this process's cpuset; start lowlat from a cgroup whose \
             cpuset.cpus holds them{}, or name CPUs to measure with --cpus",
            partitions(snapshot)
        );
    }
    Ok(Chosen { note: left_out(&isolated, &cpus), cpus, is_isolated: true })
}

fn choose_all(
    named: Option<&CpuSet>,
    snapshot: &HostSnapshot,
    settable: &impl Fn(&CpuSet) -> CpuSet,
) -> Chosen {
    let isolated = isolated_by_kernel(snapshot);
    if let Some(cpus) = named {
        let is_isolated = !cpus.is_empty() && cpus.is_subset(&isolated);
        return Chosen { cpus: cpus.clone(), is_isolated, note: None };
    }
    let cpus = settable(&snapshot.topology.online);
    Chosen { note: left_out(&isolated, &cpus), cpus, is_isolated: false }
}

/// A sentence on isolated CPUs that are not measured.
fn left_out(isolated: &CpuSet, measured: &CpuSet) -> Option<String> {
    let left = isolated.difference(measured);
    (!left.is_empty()).then(|| {
        format!("{left:#}: isolated, but offline or outside of this process's cpuset, so not measured.")
    })
}

/// The groups that hold isolated CPUs, in words; nothing where there is none.
fn partitions(snapshot: &HostSnapshot) -> String {
    let groups: Vec<&str> = isolated_partitions(snapshot).map(|partition| partition.group.as_str()).collect();
    if groups.is_empty() { String::new() } else { format!(" ({})", groups.join(", ")) }
}

fn isolated_partitions(snapshot: &HostSnapshot) -> impl Iterator<Item = &CpusetPartition> {
    snapshot.services.cpuset_partitions.iter().filter(|partition| partition.is_isolated())
}

/// CPUs that the kernel keeps ordinary threads from: by isolcpus= or by an isolated cpuset partition; where there are
/// none, those that it keeps the tick from.
fn isolated_by_kernel(snapshot: &HostSnapshot) -> CpuSet {
    let mut isolated = snapshot.cpus_isolated();
    if isolated.is_empty() {
        // A host set up by the guide has no isolcpus=: its quiet CPUs are those without a tick.
        isolated = snapshot.topology.nohz_full.known().cloned().unwrap_or_default();
    }
    isolated
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::Reading;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    /// Eight CPUs online of twelve; the mask of the process is what isolcpus= and offline CPUs make of it.
    fn host(isolated: &str) -> HostSnapshot {
        let mut host = HostSnapshot::default();
        host.topology.isolated = Reading::Known(set(isolated));
        host.topology.online = set("0-7");
        host.tasks.allowed_cpus = Reading::Known(set("0-11").difference(&set(isolated)));
        host
    }

    /// A cpuset that holds these CPUs.
    fn inside(cpuset: &str) -> impl Fn(&CpuSet) -> CpuSet {
        let cpuset = set(cpuset);
        move |cpus| cpus.intersection(&cpuset)
    }

    fn isolated(host: &HostSnapshot, cpuset: &str) -> (String, bool, Option<String>) {
        let chosen = choose_isolated(None, host, &inside(cpuset)).unwrap();
        (chosen.cpus.to_list(), chosen.is_isolated, chosen.note)
    }

    #[test]
    fn named_cpus_are_taken_as_they_are() {
        let named = set("2-3");
        for chosen in [isolated_first(Some(&named), &host("2-7")).unwrap(), all(Some(&named), &host("2-7"))] {
            assert_eq!(
                (chosen.cpus.to_list().as_str(), chosen.is_isolated, chosen.note),
                ("2-3", true, None)
            );
        }
        assert!(!isolated_first(Some(&named), &host("3-7")).unwrap().is_isolated);
    }

    #[test]
    fn isolated_cpus_come_first() {
        assert_eq!(isolated(&host("2-7"), "0-7"), ("2-7".into(), true, None));
        let (cpus, _, note) = isolated(&host("2-7"), "0-5");
        assert_eq!(cpus, "2-5");
        assert!(note.unwrap().starts_with("CPUs 6-7: isolated, but offline or outside"));
    }

    #[test]
    fn a_host_without_isolation_is_measured_as_it_is() {
        let (cpus, is_isolated, note) = isolated(&host(""), "0-3");
        assert_eq!((cpus.as_str(), is_isolated), ("0-3", false));
        assert!(note.unwrap().contains("No CPU of this host is isolated"));
    }

    #[test]
    fn all_are_those_online_isolated_or_not() {
        let chosen = choose_all(None, &host("2-7"), &inside("0-63"));
        assert_eq!((chosen.cpus.to_list().as_str(), chosen.is_isolated, chosen.note), ("0-7", false, None));
        let chosen = choose_all(None, &host("2-7"), &inside("0-3"));
        assert_eq!(chosen.cpus.to_list(), "0-3");
        assert!(chosen.note.unwrap().starts_with("CPUs 4-7: isolated, but"));
    }

    #[test]
    fn a_host_set_up_by_the_guide_has_cpus_without_a_tick() {
        let mut host = host("");
        host.topology.nohz_full = Reading::Known(set("4-7"));
        assert_eq!(isolated(&host, "0-7"), ("4-7".into(), true, None));
    }

    #[test]
    fn an_isolated_partition_counts() {
        let mut host = host("");
        host.services.cpuset_partitions.push(CpusetPartition {
            group: "/trading".into(),
            state: "isolated".into(),
            cpus: Reading::Known(set("4-7")),
        });
        assert_eq!(isolated(&host, "0-7"), ("4-7".into(), true, None));
        assert!(all(Some(&set("4")), &host).is_isolated);
        let outside = choose_isolated(None, &host, &inside("0-3")).unwrap_err().to_string();
        assert!(outside.contains("CPUs 4-7: isolated, but") && outside.contains("(/trading)"), "{outside}");
    }

    #[test]
    fn the_running_kernel_is_asked() {
        let online = affinity::current().unwrap();
        let mut host = host("");
        host.topology.online = online.clone();
        host.topology.online.insert(60_000);
        assert_eq!(all(None, &host).cpus, online);
    }
}
