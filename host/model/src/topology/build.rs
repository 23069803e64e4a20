//! Derives the topology from the raw facts. Pure and total: there is a result for any file contents.

use super::{Counts, RawTopology, Topology, levels, nodes, online};
use crate::{CpuSet, Reading, Unparsable};

/// Maximum number of unparsable files that are listed; a broken tree must not fill the report.
const UNPARSABLE_TOLD_MAX: usize = 8;

impl Topology {
    /// Derives groups, caches and nodes. If files contradict each other, the groups keep the guarantees of
    /// [`Topology`], and [`Topology::oddities`] says what was ignored.
    pub fn build(raw: &RawTopology) -> Self {
        let mut oddities = raw.notes.clone();
        oddities.extend(unparsable(raw));
        let online = online::online(raw, &mut oddities);
        if online.is_empty() {
            oddities.push("No CPU is described, neither in /sys/devices/system/cpu nor in /proc.".into());
        }
        let (packages, dies, cores) = levels::hierarchy(raw, &online, &mut oddities);
        let mut topology = Self {
            caches: levels::caches(raw, &online, &mut oddities),
            nodes: nodes::nodes(raw, &online, &mut oddities),
            core_types: levels::core_types(raw, &online, &mut oddities),
            offline: online::offline(raw, &online),
            possible: raw.possible.clone(),
            present: raw.present.clone(),
            isolated: raw.isolated.clone(),
            nohz_full: raw.nohz_full.clone(),
            packages,
            dies,
            cores,
            online,
            ..Self::default()
        };
        let l2s: Vec<_> = topology.l2s().collect();
        topology.clusters =
            levels::clusters(raw, &topology.online, &topology.packages, &topology.cores, &l2s, &mut oddities);
        topology.counts = topology.count();
        oddities.extend(impossible(&topology));
        topology.oddities = oddities;
        topology
    }

    fn count(&self) -> Counts {
        Counts {
            packages: self.packages.len(),
            numa_nodes: self.nodes.len(),
            llcs: self.llcs().len(),
            l2_groups: self.l2s().count(),
            cores: self.cores.len(),
            pus: self.online.len(),
        }
    }
}

/// Online CPUs that cannot exist according to the kernel's own lists.
fn impossible(topology: &Topology) -> Option<String> {
    let possible: &CpuSet = topology.possible.known()?;
    let impossible = topology.online.difference(possible);
    (!impossible.is_empty())
        .then(|| format!("{impossible:#}: online, but not among the possible {possible:#}."))
}

/// Unparsable files, the first ones in full.
fn unparsable(raw: &RawTopology) -> Vec<String> {
    let mut why: Vec<&Unparsable> = Vec::new();
    for set in [&raw.possible, &raw.present, &raw.online, &raw.isolated, &raw.nohz_full] {
        why.extend(why_not(set));
    }
    for cpu in raw.cpus.values() {
        for id in [&cpu.package_id, &cpu.die_id, &cpu.cluster_id, &cpu.core_id] {
            why.extend(why_not(id));
        }
        for set in [&cpu.package_cpus, &cpu.die_cpus, &cpu.cluster_cpus, &cpu.core_cpus] {
            why.extend(why_not(set));
        }
        why.extend(why_not(&cpu.is_online).into_iter().chain(why_not(&cpu.capacity)));
        why.extend(cpu.caches.iter().filter_map(|cache| why_not(&cache.cpus)));
    }
    for node in raw.nodes.values() {
        why.extend(why_not(&node.cpus).into_iter().chain(why_not(&node.memory_bytes)));
        why.extend(why_not(&node.distances));
    }
    why.extend(raw.memory_tiers.values().chain(raw.core_types.values()).filter_map(why_not));
    let mut told: Vec<String> = why.iter().take(UNPARSABLE_TOLD_MAX).map(|why| format!("{why}.")).collect();
    if let Some(more) = why.len().checked_sub(UNPARSABLE_TOLD_MAX + 1) {
        told.push(format!("{} more files of the topology are unparsable.", more + 1));
    }
    told
}

fn why_not<T>(reading: &Reading<T>) -> Option<&Unparsable> {
    match reading {
        Reading::Unparsable(why) => Some(why),
        _ => None,
    }
}
