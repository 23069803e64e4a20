//! Judges if the kernel spreads work over clusters.

use lowlat_host::{CpuSet, HostSnapshot, Reading, kernel_version::KernelVersion};

/// First version with a scheduling domain for clusters (66558b730f25).
const VERSION_MIN: KernelVersion = KernelVersion::new(5, 16);
/// First version in which hybrid x86 processors have that domain too; cabdc3a8475b left it out.
const HYBRID_VERSION_MIN: KernelVersion = KernelVersion::new(6, 6);
const OPTION: &str = "SCHED_CLUSTER";
/// Name and flag of the domain.
const DOMAIN: &str = "CLS";
const FLAG: &str = "SD_CLUSTER";

/// Load balancing by the scheduler between the clusters of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spreading {
    /// The host has no clusters.
    NoClusters,
    Yes,
    No,
    Unknown,
}

/// The judgement with its reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelView {
    pub spreading: Spreading,
    /// The reason, in one sentence.
    pub why: String,
    /// Other facts that move threads or keep them in place. One sentence each.
    pub notes: Vec<String>,
}

pub fn kernel_view(host: &HostSnapshot) -> KernelView {
    let (spreading, why) = spreading(host);
    KernelView { spreading, why, notes: notes(host) }
}

fn spreading(host: &HostSnapshot) -> (Spreading, String) {
    let clusters: Vec<&CpuSet> = host.topology.clusters.iter().map(|cluster| &cluster.cpus).collect();
    if clusters.is_empty() {
        let why = "No group of cores below a package shares a second-level cache.".to_owned();
        return (Spreading::NoClusters, why);
    }
    if let Some(name) = host.scheduler.loaded_ext() {
        let why =
            format!("The BPF scheduler {name} is loaded (sched_ext) and chooses CPUs instead of the kernel.");
        return (Spreading::Unknown, why);
    }
    let domains = by_spans(host, &clusters).or_else(|| by_names(host, &clusters));
    domains.unwrap_or_else(|| by_build(host, &clusters))
}

/// Judges by the CPUs of the scheduling domains.
fn by_spans(host: &HostSnapshot, clusters: &[&CpuSet]) -> Option<(Spreading, String)> {
    let domains = host.scheduler.domains.known().filter(|domains| !domains.is_empty())?;
    let isolated = host.cpus_isolated();
    // The kernel drops a domain of one CPU.
    let mut open = clusters.iter().map(|cluster| cluster.difference(&isolated)).filter(|cpus| cpus.len() > 1);
    let first = open.clone().next()?;
    if let Some(found) = open.find_map(|cpus| domains.iter().find(|domain| domain.cpus == cpus)) {
        let name = found.name.as_ref().map_or_else(String::new, |name| format!(" {name}"));
        let why = format!("{:#} have a scheduling domain{name} (/proc/schedstat).", found.cpus);
        return Some((Spreading::Yes, why));
    }
    let why =
        format!("No scheduling domain has just the CPUs of a cluster, such as {first} (/proc/schedstat).");
    Some((Spreading::No, why))
}

/// Judges by the names of the scheduling domains.
fn by_names(host: &HostSnapshot, clusters: &[&CpuSet]) -> Option<(Spreading, String)> {
    let domains = host.scheduler.named_domains.known().filter(|domains| !domains.is_empty())?;
    let is_cluster = |flags: &Reading<Vec<String>>| {
        flags.known().is_some_and(|flags| flags.iter().any(|flag| flag == FLAG))
    };
    if let Some(found) = domains.iter().find(|domain| domain.name == DOMAIN || is_cluster(&domain.flags)) {
        let why = format!("{:#} have a scheduling domain {} (debugfs).", found.cpus, found.name);
        return Some((Spreading::Yes, why));
    }
    if are_llcs(host, clusters) {
        return None;
    }
    let names: Vec<&str> = domains.iter().map(|domain| domain.name.as_str()).collect();
    Some((
        Spreading::No,
        format!("The scheduling domains are {}, without {DOMAIN} (debugfs).", names.join(", ")),
    ))
}

/// Judges by the kernel's configuration and version.
fn by_build(host: &HostSnapshot, clusters: &[&CpuSet]) -> (Spreading, String) {
    if are_llcs(host, clusters) {
        let why =
            "Each cluster has its own last-level cache, between which every kernel balances.".to_owned();
        return (Spreading::Yes, why);
    }
    let version = host.kernel.version.known().copied();
    let option = host.kernel.config_option(OPTION);
    let is_hybrid = host.kernel.is_x86() == Some(true) && host.topology.core_types.len() > 1;
    match (&option, version) {
        (Reading::Known(None), _) => {
            (Spreading::No, format!("The kernel was built without CONFIG_{OPTION}."))
        }
        (_, Some(version)) if is_hybrid && version < HYBRID_VERSION_MIN => {
            let why = format!(
                "Linux {version} leaves the domain of clusters out on hybrid x86 processors; {HYBRID_VERSION_MIN} brought it back."
            );
            (Spreading::No, why)
        }
        (Reading::Known(Some(_)), _) => {
            let why = format!(
                "The kernel was built with CONFIG_{OPTION}. It does not show its scheduling domains, which would prove it."
            );
            (Spreading::Yes, why)
        }
        (_, Some(version)) if version < VERSION_MIN => {
            let why = format!("Linux {version} is older than {VERSION_MIN}, which brought it.");
            (Spreading::No, why)
        }
        _ => (
            Spreading::Unknown,
            "The kernel shows neither its configuration nor its scheduling domains.".to_owned(),
        ),
    }
}

/// True if every cluster has a private last-level cache.
fn are_llcs(host: &HostSnapshot, clusters: &[&CpuSet]) -> bool {
    let llcs = host.topology.llcs();
    clusters.iter().all(|cluster| llcs.iter().any(|llc| llc.cpus == **cluster))
}

fn notes(host: &HostSnapshot) -> Vec<String> {
    let mut notes = Vec::new();
    let balancing = host.scheduler.llc_balancing.known().and_then(|files| files.get("enabled"));
    if balancing.is_some_and(|enabled| matches!(enabled.text(), "1" | "Y")) {
        notes.push(
            "Cache-aware scheduling is on: threads of one process are drawn to one last-level cache."
                .to_owned(),
        );
    }
    let isolated = host.cpus_isolated();
    if !isolated.is_empty() {
        notes.push(format!(
            "The scheduler balances nothing on {isolated:#}, which are isolated: pin threads there."
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::{
        snapshot::{NamedDomain, SchedDomain},
        topology::{Cache, CoreType, Group},
    };
    use std::collections::BTreeMap;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    /// Two clusters of four cores under one last-level cache.
    fn host(version: (u16, u16), option: Option<&str>) -> HostSnapshot {
        let mut host = HostSnapshot::default();
        host.topology.online = set("0-7");
        host.topology.clusters = ["0-3", "4-7"].map(|list| Group { id: 0, cpus: set(list) }).into();
        host.topology.caches = vec![Cache { level: 3, cpus: set("0-7"), ..Cache::default() }];
        host.kernel.machine = Reading::Known("x86_64".into());
        host.kernel.version = Reading::Known(KernelVersion::new(version.0, version.1));
        let option = option.map(|value| (OPTION.to_owned(), value.to_owned()));
        host.kernel.config = Reading::Known(BTreeMap::from_iter(option));
        host
    }

    fn domain(name: &str, cpus: &str) -> SchedDomain {
        SchedDomain { level: 0, name: Some(name.into()), cpus: set(cpus) }
    }

    fn judged(host: &HostSnapshot) -> Spreading {
        kernel_view(host).spreading
    }

    #[test]
    fn domains_count_more_than_the_build() {
        let mut spreads = host((5, 14), None);
        assert_eq!(judged(&spreads), Spreading::No);
        spreads.scheduler.domains = Reading::Known(vec![domain("CLS", "0-3"), domain("PKG", "0-7")]);
        assert_eq!(judged(&spreads), Spreading::Yes, "a vendor's kernel has it");
        assert!(kernel_view(&spreads).why.contains("CPUs 0-3 have a scheduling domain CLS"));
        let mut packs = host((6, 12), Some("y"));
        packs.scheduler.domains = Reading::Known(vec![domain("MC", "0-7")]);
        assert_eq!(judged(&packs), Spreading::No);
        packs.scheduler.domains = Reading::Absent;
        packs.scheduler.named_domains =
            Reading::Known(vec![NamedDomain { name: "MC".into(), ..NamedDomain::default() }]);
        assert_eq!(judged(&packs), Spreading::No);
    }

    #[test]
    fn isolated_cpus_are_missing_from_domains() {
        let mut host = host((6, 12), Some("y"));
        host.topology.isolated = Reading::Known(set("1,5-7"));
        host.scheduler.domains = Reading::Known(vec![domain("CLS", "0,2-3"), domain("MC", "0,2-4")]);
        let view = kernel_view(&host);
        assert_eq!(view.spreading, Spreading::Yes, "{view:?}");
        assert!(view.notes[0].contains("CPUs 1,5-7"), "{view:?}");
    }

    #[test]
    fn builds_are_judged_by_option_version_and_processor() {
        assert_eq!(judged(&host((6, 1), Some("y"))), Spreading::Yes);
        assert_eq!(judged(&host((6, 1), None)), Spreading::No);
        let mut hybrid = host((6, 1), Some("y"));
        hybrid.topology.core_types = vec![CoreType::default(), CoreType::default()];
        assert_eq!(judged(&hybrid), Spreading::No);
        hybrid.kernel.version = Reading::Known(HYBRID_VERSION_MIN);
        assert_eq!(judged(&hybrid), Spreading::Yes);
        let mut silent = host((6, 1), None);
        silent.kernel.config = Reading::Denied;
        assert_eq!(judged(&silent), Spreading::Unknown);
        silent.kernel.version = Reading::Known(KernelVersion::new(5, 10));
        assert_eq!(judged(&silent), Spreading::No);
    }

    #[test]
    fn other_schedulers_and_hosts_without_clusters_are_named() {
        let mut loaded = host((6, 12), Some("y"));
        loaded.scheduler.ext_state = Reading::Known("enabled".into());
        loaded.scheduler.ext_scheduler = Reading::Known("scx_lavd".into());
        assert_eq!(judged(&loaded), Spreading::Unknown);
        assert!(kernel_view(&loaded).why.contains("scx_lavd"));
        loaded.topology.clusters.clear();
        assert_eq!(judged(&loaded), Spreading::NoClusters);
        let mut chiplets = host((5, 10), None);
        chiplets.topology.caches =
            ["0-3", "4-7"].map(|list| Cache { level: 3, cpus: set(list), ..Cache::default() }).into();
        assert_eq!(judged(&chiplets), Spreading::Yes);
        let enabled = BTreeMap::from([("enabled".to_owned(), Reading::Known("1".to_owned()))]);
        chiplets.scheduler.llc_balancing = Reading::Known(enabled);
        assert!(kernel_view(&chiplets).notes[0].starts_with("Cache-aware scheduling is on"));
    }
}
