//! Choice of the CPUs to measure when the user names none.

use anyhow::bail;
use lowlat_host::{CpuSet, HostSnapshot, snapshot::CpusetPartition};
use lowlat_host_run::affinity;

/// CPUs of a run, and a note on the choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub cpus: CpuSet,
    /// True if the kernel isolates all of them, so that they are expected to be quiet.
    pub is_isolated: bool,
    /// Sentence for the document if lowlat made the choice and it needs explaining.
    pub note: Option<String>,
}

/// Returns the named CPUs, else those that somebody bound this process to, else the isolated ones that it can run on,
/// else all of them. `of_role` are those that a role isolates.
///
/// # Errors
/// Fails if the host isolates CPUs and this process can run on none of them, rather than measure others instead.
pub fn isolated_first(
    named: Option<&CpuSet>,
    of_role: Option<&CpuSet>,
    snapshot: &HostSnapshot,
) -> anyhow::Result<Chosen> {
    let bound = named.is_none().then(|| bound(snapshot)).flatten();
    bound.map_or_else(|| choose_isolated(named, of_role, snapshot, &settable), Ok)
}

/// The CPUs that somebody bound this process to, as `taskset -c 1 lowlat jitter` does.
pub fn bound(snapshot: &HostSnapshot) -> Option<Chosen> {
    let isolated = isolated_by_kernel(snapshot);
    let cpus = affinity::chosen(&snapshot.topology.online, &isolated)?;
    let note = Some(format!(
        "{cpus:#}: measured because this process was bound to it (taskset, numactl or its unit)."
    ));
    Some(Chosen { is_isolated: cpus.is_subset(&isolated), cpus, note })
}

/// Returns the named CPUs, else all that this process can run on, isolated or not.
pub fn all(named: Option<&CpuSet>, snapshot: &HostSnapshot) -> Chosen {
    let bound = named.is_none().then(|| bound(snapshot)).flatten();
    bound.unwrap_or_else(|| choose_all(named, snapshot, &settable))
}

/// Returns the named CPUs, else the isolated ones, else all, for a watch that runs on none of them.
pub fn watched(named: Option<&CpuSet>, of_role: Option<&CpuSet>, snapshot: &HostSnapshot) -> Chosen {
    let isolated = isolated(of_role, snapshot).intersection(&snapshot.topology.online);
    let cpus = match named {
        Some(cpus) => cpus.clone(),
        None if isolated.is_empty() => snapshot.topology.online.clone(),
        None => isolated.clone(),
    };
    let is_isolated = !cpus.is_empty() && cpus.is_subset(&isolated_by_kernel(snapshot));
    Chosen { cpus, is_isolated, note: None }
}

/// Returns those of the watched CPUs that are expected to be quiet: the isolated ones, else those that the user named.
pub fn quiet(watched: &CpuSet, is_named: bool, of_role: Option<&CpuSet>, snapshot: &HostSnapshot) -> CpuSet {
    let isolated = isolated(of_role, snapshot).intersection(watched);
    if isolated.is_empty() && is_named { watched.clone() } else { isolated }
}

/// Moves this thread, and those that it starts later, off the measured CPUs, if another CPU is left. A process that was
/// bound to the measured CPUs leaves them too.
pub fn step_aside(measured: &CpuSet, snapshot: &HostSnapshot) {
    let mut rest = affinity::current().map(|now| now.difference(measured)).unwrap_or_default();
    if rest.is_empty() {
        rest = settable(&snapshot.topology.online).difference(&measured.union(&isolated_by_kernel(snapshot)));
    }
    if !rest.is_empty() {
        // If the kernel refuses, the run itself reports the consequence.
        let _ = affinity::pin_to(&rest);
    }
}

/// Returns those of `cpus` that this process can run on. Its affinity mask is no answer: it contains offline CPUs, and
/// isolcpus= removes the isolated ones from it.
fn settable(cpus: &CpuSet) -> CpuSet {
    // Without an answer, try all; the run names those that it cannot use.
    affinity::settable(cpus).unwrap_or_else(|_| cpus.clone())
}

fn choose_isolated(
    named: Option<&CpuSet>,
    of_role: Option<&CpuSet>,
    snapshot: &HostSnapshot,
    settable: &impl Fn(&CpuSet) -> CpuSet,
) -> anyhow::Result<Chosen> {
    let isolated = isolated(of_role, snapshot);
    if named.is_some() || isolated.is_empty() {
        let note = "This host isolates no CPU, so every CPU that this process may use was measured. `lowlat cpus isolated` \
                    shows which to isolate.";
        let chosen = choose_all(named, snapshot, settable);
        return Ok(Chosen { note: named.is_none().then(|| note.to_owned()), ..chosen });
    }
    let cpus = settable(&isolated);
    if cpus.is_empty() {
        bail!(
            "cannot measure the isolated {isolated:#}: offline or outside this process's cpuset\nhint: start lowlat from a \
             cgroup whose cpuset.cpus contains them{}, or name CPUs with --cpus",
            partitions(snapshot)
        );
    }
    let open = cpus.difference(&isolated_by_kernel(snapshot));
    let is_open = format!("{open:#}: isolated by the role, but not by the kernel.");
    let note = if open.is_empty() { left_out(&isolated, &cpus) } else { Some(is_open) };
    Ok(Chosen { note, cpus, is_isolated: open.is_empty() })
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

/// Returns a sentence on isolated CPUs that are not measured.
fn left_out(isolated: &CpuSet, measured: &CpuSet) -> Option<String> {
    let left = isolated.difference(measured);
    (!left.is_empty())
        .then(|| format!("{left:#}: isolated, but not measured: offline or outside this process's cpuset."))
}

/// Returns the cgroups with isolated CPUs in parentheses, or an empty string if there are none.
fn partitions(snapshot: &HostSnapshot) -> String {
    let groups: Vec<&str> = isolated_partitions(snapshot).map(|partition| partition.group.as_str()).collect();
    if groups.is_empty() { String::new() } else { format!(" ({})", groups.join(", ")) }
}

fn isolated_partitions(snapshot: &HostSnapshot) -> impl Iterator<Item = &CpusetPartition> {
    snapshot.services.cpuset_partitions.iter().filter(|partition| partition.is_isolated())
}

/// Returns the CPUs that the role isolates, else those that the kernel isolates.
fn isolated(of_role: Option<&CpuSet>, snapshot: &HostSnapshot) -> CpuSet {
    of_role.cloned().unwrap_or_else(|| isolated_by_kernel(snapshot))
}

/// Returns the CPUs that isolcpus= or an isolated cpuset partition keeps free of ordinary threads. If there are none,
/// returns the tickless CPUs.
fn isolated_by_kernel(snapshot: &HostSnapshot) -> CpuSet {
    let mut isolated = snapshot.cpus_isolated();
    if isolated.is_empty() {
        // A host set up by the guide has no isolcpus=: its quiet CPUs are the tickless ones.
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

    /// Eight of twelve CPUs online; the process's mask reflects isolcpus= and offline CPUs.
    fn host(isolated: &str) -> HostSnapshot {
        let mut host = HostSnapshot::default();
        host.topology.isolated = Reading::Known(set(isolated));
        host.topology.online = set("0-7");
        host.tasks.allowed_cpus = Reading::Known(set("0-11").difference(&set(isolated)));
        host
    }

    /// A cpuset of these CPUs.
    fn inside(cpuset: &str) -> impl Fn(&CpuSet) -> CpuSet {
        let cpuset = set(cpuset);
        move |cpus| cpus.intersection(&cpuset)
    }

    fn isolated(host: &HostSnapshot, cpuset: &str) -> (String, bool, Option<String>) {
        let chosen = choose_isolated(None, None, host, &inside(cpuset)).unwrap();
        (chosen.cpus.to_list(), chosen.is_isolated, chosen.note)
    }

    #[test]
    fn named_cpus_are_used_unchanged() {
        let named = set("2-3");
        for chosen in
            [isolated_first(Some(&named), None, &host("2-7")).unwrap(), all(Some(&named), &host("2-7"))]
        {
            assert_eq!(
                (chosen.cpus.to_list().as_str(), chosen.is_isolated, chosen.note),
                ("2-3", true, None)
            );
        }
        assert!(!isolated_first(Some(&named), None, &host("3-7")).unwrap().is_isolated);
    }

    #[test]
    fn isolated_cpus_come_first() {
        assert_eq!(isolated(&host("2-7"), "0-7"), ("2-7".into(), true, None));
        let (cpus, _, note) = isolated(&host("2-7"), "0-5");
        assert_eq!(cpus, "2-5");
        assert!(note.unwrap().starts_with("CPUs 6-7: isolated, but not measured"));
    }

    #[test]
    fn a_role_comes_before_what_the_kernel_isolates() {
        let role = set("3-4");
        let chosen = choose_isolated(None, Some(&role), &host("2-7"), &inside("0-7")).unwrap();
        assert_eq!((chosen.cpus.to_list().as_str(), chosen.is_isolated, chosen.note), ("3-4", true, None));
        let chosen = choose_isolated(None, Some(&role), &host("4-7"), &inside("0-7")).unwrap();
        assert_eq!((chosen.cpus.to_list().as_str(), chosen.is_isolated), ("3-4", false));
        assert_eq!(chosen.note.unwrap(), "CPU 3: isolated by the role, but not by the kernel.");
        let watched = watched(None, Some(&role), &host(""));
        assert_eq!((watched.cpus.to_list().as_str(), watched.is_isolated), ("3-4", false));
        assert_eq!(quiet(&set("0-7"), false, Some(&role), &host("")), role);
    }

    #[test]
    fn a_host_without_isolation_is_measured_on_all_cpus() {
        let (cpus, is_isolated, note) = isolated(&host(""), "0-3");
        assert_eq!((cpus.as_str(), is_isolated), ("0-3", false));
        assert!(note.unwrap().contains("This host isolates no CPU"));
    }

    #[test]
    fn all_means_every_online_cpu_isolated_or_not() {
        let chosen = choose_all(None, &host("2-7"), &inside("0-63"));
        assert_eq!((chosen.cpus.to_list().as_str(), chosen.is_isolated, chosen.note), ("0-7", false, None));
        let chosen = choose_all(None, &host("2-7"), &inside("0-3"));
        assert_eq!(chosen.cpus.to_list(), "0-3");
        assert!(chosen.note.unwrap().starts_with("CPUs 4-7: isolated, but"));
    }

    #[test]
    fn tickless_cpus_count_as_isolated_on_a_host_set_up_by_the_guide() {
        let mut host = host("");
        host.topology.nohz_full = Reading::Known(set("4-7"));
        assert_eq!(isolated(&host, "0-7"), ("4-7".into(), true, None));
    }

    #[test]
    fn an_isolated_partition_counts_as_isolated() {
        let mut host = host("");
        host.services.cpuset_partitions.push(CpusetPartition {
            group: "/trading".into(),
            state: "isolated".into(),
            cpus: Reading::Known(set("4-7")),
        });
        assert_eq!(isolated(&host, "0-7"), ("4-7".into(), true, None));
        assert!(all(Some(&set("4")), &host).is_isolated);
        let outside = choose_isolated(None, None, &host, &inside("0-3")).unwrap_err().to_string();
        assert!(
            outside.contains("the isolated CPUs 4-7: offline or") && outside.contains("(/trading)"),
            "{outside}"
        );
    }

    #[test]
    fn isolated_cpus_are_watched_and_expected_to_be_quiet() {
        let watch = |named: Option<&str>, host: &HostSnapshot| {
            let named = named.map(set);
            let chosen = watched(named.as_ref(), None, host);
            let quiet = quiet(&chosen.cpus, named.is_some(), None, host);
            (chosen.cpus.to_list(), chosen.is_isolated, quiet.to_list())
        };
        let shown = |cpus: &str, is_isolated, quiet: &str| (cpus.to_owned(), is_isolated, quiet.to_owned());
        assert_eq!(watch(None, &host("2-9")), shown("2-7", true, "2-7"));
        assert_eq!(watch(None, &host("")), shown("0-7", false, ""), "nothing is expected to be quiet");
        assert_eq!(watch(Some("3"), &host("")), shown("3", false, "3"));
        assert_eq!(watch(Some("1-3"), &host("2-7")), shown("1-3", false, "2-3"));
    }

    #[test]
    fn offline_cpus_are_left_out_on_the_running_kernel() {
        let online = affinity::current().unwrap();
        let mut host = host("");
        host.topology.online = online.clone();
        host.topology.online.insert(60_000);
        assert_eq!(all(None, &host).cpus, online);
    }
}
