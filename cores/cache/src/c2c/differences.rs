//! Comparison of a survey with the kernel's topology.

use super::record::C2cRecord;
use lowlat_host::{CpuSet, topology::Topology};
use std::collections::BTreeSet;

/// A level of the kernel's topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    /// Word for one group: "core".
    pub one: &'static str,
    /// Word for several groups: "cores".
    pub many: &'static str,
}

const CORE: Kind = Kind { one: "core", many: "cores" };
const CLUSTER: Kind = Kind { one: "cluster", many: "clusters" };
const LLC: Kind = Kind { one: "last-level cache", many: "last-level caches" };
const NODE: Kind = Kind { one: "NUMA node", many: "NUMA nodes" };
const PACKAGE: Kind = Kind { one: "package", many: "packages" };

/// The kernel's groups, finest first, of those kinds that have groups of several CPUs.
pub fn partitions(topology: &Topology) -> Vec<(Kind, Vec<&CpuSet>)> {
    let kinds = [
        (CORE, topology.cores.iter().map(|core| &core.cpus).collect::<Vec<_>>()),
        (CLUSTER, topology.clusters.iter().map(|cluster| &cluster.cpus).collect()),
        (LLC, topology.llcs().into_iter().map(|cache| &cache.cpus).collect()),
        (NODE, topology.nodes.iter().map(|node| &node.cpus).filter(|cpus| !cpus.is_empty()).collect()),
        (PACKAGE, topology.packages.iter().map(|package| &package.cpus).collect()),
    ];
    kinds.into_iter().filter(|(_, groups)| groups.iter().any(|group| group.len() > 1)).collect()
}

impl C2cRecord {
    /// Returns the kernel's kind of the groups that a level adds to the finer one: "core". `None` if the kernel has no
    /// such groups.
    pub fn kind_of(&self, level: usize, topology: &Topology) -> Option<Kind> {
        let groups = |level: usize| self.levels.get(level).map(|level| several(level.groups.iter().cloned()));
        let finer = level.checked_sub(1).and_then(groups).unwrap_or_default();
        let new: BTreeSet<_> = groups(level)?.difference(&finer).cloned().collect();
        let has_all = |known: &[&CpuSet]| new.is_subset(&several(restricted(known, &self.cpus)));
        let mut kinds = partitions(topology).into_iter();
        kinds.find(|(_, known)| !new.is_empty() && has_all(known)).map(|(kind, _)| kind)
    }
}

/// Groups of at least two CPUs.
fn several(groups: impl IntoIterator<Item = CpuSet>) -> BTreeSet<Vec<u32>> {
    groups.into_iter().filter(|group| group.len() > 1).map(|group| group.iter().collect()).collect()
}

fn restricted(groups: &[&CpuSet], cpus: &CpuSet) -> Vec<CpuSet> {
    groups.iter().map(|group| group.intersection(cpus)).collect()
}

/// Compares the groups that were measured with the kernel's. One sentence for each level that differs.
pub fn differences(record: &C2cRecord, topology: &Topology) -> Vec<String> {
    // The topology of the host is not known.
    if topology.online.is_empty() {
        return Vec::new();
    }
    let known = partitions(topology).into_iter();
    let not_units =
        known.filter_map(|(kind, groups)| not_units(record, kind, &restricted(&groups, &record.cpus)));
    not_units.chain(unknown(record, topology)).collect()
}

/// Groups of the kernel whose CPUs are as far from each other as from CPUs outside.
fn not_units(record: &C2cRecord, kind: Kind, groups: &[CpuSet]) -> Option<String> {
    let torn = groups.iter().filter(|group| group.len() > 1).filter_map(|group| {
        let around = |level: &super::Level| level.groups.iter().find(|of| group.is_subset(of)).cloned();
        let (place, around) =
            record.levels.iter().enumerate().find_map(|(place, level)| Some((place, around(level)?)))?;
        (around != *group).then_some((group, place))
    });
    let torn: Vec<(&CpuSet, usize)> = torn.collect();
    let (group, place) = torn.first()?;
    let apart = record.levels.get(*place)?.median_ns;
    let these = match torn.len() {
        1 => format!("The kernel reports CPUs {} as one {}", shortened(group), kind.one),
        count => format!("The kernel reports {count} {}, such as CPUs {}", kind.many, shortened(group)),
    };
    let Some(finer) = place.checked_sub(1).and_then(|place| record.levels.get(place)) else {
        return Some(format!(
            "{these}, but measured, CPUs of one are as far apart as CPUs of different ones: {apart:.0} ns."
        ));
    };
    let parts: Vec<CpuSet> =
        finer.groups.iter().map(|of| of.intersection(group)).filter(|part| !part.is_empty()).collect();
    Some(format!(
        "{these}, but measured, these CPUs are {} groups ({}): {:.0} ns inside, {apart:.0} ns between them and to other CPUs.",
        parts.len(),
        sample(&parts),
        finer.median_ns,
    ))
}

/// Groups by measurement of which the kernel knows nothing.
fn unknown(record: &C2cRecord, topology: &Topology) -> Vec<String> {
    let last = record.levels.len().saturating_sub(1);
    let sentence = |(place, level): (usize, &super::Level)| {
        let groups: Vec<CpuSet> = level.groups.iter().filter(|group| group.len() > 1).cloned().collect();
        let next = record.levels.get(place + 1)?.median_ns;
        let is_known = record.kind_of(place, topology).is_some();
        (!is_known && !groups.is_empty()).then(|| {
            format!(
                "The kernel knows no level of {}: {:.0} ns inside, {next:.0} ns to others.",
                sample(&groups),
                level.median_ns
            )
        })
    };
    record.levels.iter().enumerate().take(last).filter_map(sentence).collect()
}

/// Lists the first groups, each shortened.
fn sample(groups: &[CpuSet]) -> String {
    let shown: Vec<String> = groups.iter().take(3).map(shortened).collect();
    let rest = groups.len().saturating_sub(shown.len());
    let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{more}", shown.join(" | "))
}

/// A list of CPUs that fits into a sentence.
fn shortened(cpus: &CpuSet) -> String {
    const CHARS_MAX: usize = 32;
    let list = cpus.to_string();
    let cut = list.char_indices().take(CHARS_MAX).filter(|(_, char)| *char == ',').last();
    match cut {
        Some((place, _)) if list.len() > CHARS_MAX => format!("{},…", list.get(..place).unwrap_or_default()),
        _ => list,
    }
}
