//! The order in which a rule fills CPUs.

use lowlat_host::{CpuId, CpuSet, topology::Topology};
use std::collections::BTreeMap;

/// Rule by which CPUs are chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// As far apart as possible: over NUMA nodes, then last-level caches, then clusters.
    Spread,
    /// As close together as possible: one cluster, then one last-level cache, then one NUMA node.
    Compact,
    /// On the NUMA node of this interface, close together.
    Near(String),
    /// One per cluster of the host before a second in any, over NUMA nodes and last-level caches in turn.
    ClusterSpread,
    /// Fills a cluster before the next.
    ClusterPack,
}

impl Place {
    /// Parses "spread", "compact", "near:eth0", "cluster-spread" or "cluster-pack".
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "spread" => Some(Self::Spread),
            "compact" => Some(Self::Compact),
            "cluster-spread" => Some(Self::ClusterSpread),
            "cluster-pack" => Some(Self::ClusterPack),
            _ => {
                text.strip_prefix("near:").filter(|name| !name.is_empty()).map(|name| Self::Near(name.into()))
            }
        }
    }
}

/// Levels of a CPU, widest first: NUMA node, last-level cache, cluster. A CPU outside every group of a level gets a
/// group with those like it.
type Path = [usize; 3];

/// Returns `cpus` in the order in which a rule fills them. SMT siblings come last under every rule: the first CPUs of
/// the result are on different cores.
pub fn order(place: &Place, topology: &Topology, cpus: &CpuSet) -> Vec<CpuId> {
    // By the number of earlier CPUs on the same core, then in the same cluster where each cluster gets one first.
    let mut by_rank: BTreeMap<(usize, usize), Vec<(Path, CpuId)>> = BTreeMap::new();
    let mut in_cluster: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for cpu in cpus.iter() {
        let siblings = topology.siblings(cpu).intersection(cpus);
        let rank = siblings.iter().take_while(|sibling| *sibling != cpu).count();
        let path = path(topology, cpu);
        let [.., cluster] = path;
        let mut turn = 0;
        // A CPU outside every cluster shares its second-level cache with no other core.
        if *place == Place::ClusterSpread && cluster > 0 {
            let earlier = in_cluster.entry((rank, cluster)).or_default();
            turn = *earlier;
            *earlier += 1;
        }
        by_rank.entry((rank, turn)).or_default().push((path, cpu));
    }
    let mut ordered = Vec::new();
    for mut rank in by_rank.into_values() {
        rank.sort_unstable();
        let dealt_from = match place {
            Place::Spread | Place::ClusterSpread => 0,
            Place::Compact | Place::Near(_) | Place::ClusterPack => 3,
        };
        ordered.extend(deal(rank, dealt_from, 0));
    }
    ordered
}

/// Flattens sorted CPUs level by level: groups of levels from `dealt_from` on take turns, those above come one after
/// the other.
fn deal(cpus: Vec<(Path, CpuId)>, dealt_from: usize, level: usize) -> Vec<CpuId> {
    if level == 3 {
        return cpus.into_iter().map(|(_, cpu)| cpu).collect();
    }
    let mut groups: BTreeMap<usize, Vec<(Path, CpuId)>> = BTreeMap::new();
    for cpu in cpus {
        groups.entry(cpu.0[level]).or_default().push(cpu);
    }
    let groups: Vec<Vec<CpuId>> =
        groups.into_values().map(|group| deal(group, dealt_from, level + 1)).collect();
    if level < dealt_from {
        return groups.into_iter().flatten().collect();
    }
    let longest = groups.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest).flat_map(|turn| groups.iter().filter_map(move |group| group.get(turn).copied())).collect()
}

fn path(topology: &Topology, cpu: CpuId) -> Path {
    [
        place(topology.nodes.iter().map(|node| &node.cpus), cpu),
        place(topology.llcs().into_iter().map(|cache| &cache.cpus), cpu),
        place(topology.clusters.iter().map(|group| &group.cpus), cpu),
    ]
}

fn place<'a>(mut groups: impl Iterator<Item = &'a CpuSet>, cpu: CpuId) -> usize {
    groups.position(|group| group.contains(cpu)).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{host, set};
    use lowlat_host::topology::{Cache, CacheKind, Group, Node};
    use proptest::prelude::*;

    const RULES: [Place; 4] = [Place::Spread, Place::Compact, Place::ClusterSpread, Place::ClusterPack];

    fn ordered(place: &Place, cpus: &str) -> Vec<u32> {
        order(place, &host().topology, &set(cpus))
    }

    // The host: two nodes with one last-level cache each, two clusters of two cores in each, two CPUs in each core.
    // CPUs 0-7 are the first of each core, 8-15 their siblings.
    #[test]
    fn rules_fill_cores_in_their_order() {
        assert_eq!(ordered(&Place::Spread, "0-7"), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(ordered(&Place::Compact, "0-7"), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(ordered(&Place::ClusterSpread, "0-7"), [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(ordered(&Place::ClusterPack, "2-7"), [2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn clusters_get_one_each_before_a_second_even_if_nodes_get_unequal_shares() {
        // Node 0 offers two clusters, node 1 both CPUs of one.
        assert_eq!(ordered(&Place::Spread, "0,2,4-5"), [0, 4, 2, 5]);
        assert_eq!(ordered(&Place::ClusterSpread, "0-2,4-5"), [0, 4, 2, 1, 5]);
        assert_eq!(ordered(&Place::ClusterSpread, "0-1,4,8-9"), [0, 4, 1, 8, 9], "siblings last");
    }

    /// Two packages with two last-level caches each, four clusters of four cores in each cache, two CPUs in each core:
    /// 128 CPUs, of which 64 and above are the siblings of 0 to 63.
    fn large() -> Topology {
        let groups = |count: u32, cores: u32| -> Vec<CpuSet> {
            let core = |core: u32| [core, core + 64];
            (0..count).map(|at| (at * cores..(at + 1) * cores).flat_map(core).collect()).collect()
        };
        let group = |cpus: CpuSet| Group { id: 0, cpus };
        let cache = |cpus: CpuSet| Cache { level: 3, kind: CacheKind::Unified, cpus, ..Cache::default() };
        Topology {
            online: CpuSet::first(128),
            packages: groups(2, 32).into_iter().map(group).collect(),
            nodes: (0..).zip(groups(2, 32)).map(|(id, cpus)| Node { id, cpus, ..Node::default() }).collect(),
            caches: groups(4, 16).into_iter().map(cache).collect(),
            clusters: groups(16, 4).into_iter().map(group).collect(),
            cores: groups(64, 1).into_iter().map(group).collect(),
            ..Topology::default()
        }
    }

    #[test]
    fn copies_fill_clusters_evenly_on_a_large_host() {
        let topology = large();
        for (copies, in_a_cluster, in_a_cache) in [(4, 1, 1), (16, 1, 4), (32, 2, 8), (64, 4, 16)] {
            let mut ordered = order(&Place::ClusterSpread, &topology, &topology.online);
            ordered.truncate(copies);
            let chosen: CpuSet = ordered.into_iter().collect();
            let most = |groups: &[CpuSet]| groups.iter().map(|group| group.intersection(&chosen).len()).max();
            let of =
                |groups: &[Group]| most(&groups.iter().map(|group| group.cpus.clone()).collect::<Vec<_>>());
            assert_eq!(of(&topology.clusters), Some(in_a_cluster), "{copies} copies");
            assert_eq!(of(&topology.cores), Some(1), "{copies} copies");
            let caches: Vec<CpuSet> = topology.caches.iter().map(|cache| cache.cpus.clone()).collect();
            assert_eq!(most(&caches), Some(in_a_cache), "{copies} copies");
        }
        let packed = order(&Place::ClusterPack, &topology, &topology.online);
        assert_eq!(packed[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(packed[64..66], [64, 65], "siblings only when every core has one");
    }

    #[test]
    fn one_cpu_and_hosts_without_clusters_are_placed() {
        let bare = Topology { online: CpuSet::first(3), ..Topology::default() };
        assert_eq!(order(&Place::ClusterSpread, &bare, &bare.online), [0, 1, 2]);
        assert_eq!(order(&Place::ClusterSpread, &host().topology, &set("5")), [5]);
    }

    #[test]
    fn siblings_come_last() {
        assert_eq!(ordered(&Place::Compact, "0-1,8-9"), [0, 1, 8, 9]);
        assert_eq!(ordered(&Place::Compact, "1,8-9"), [1, 8, 9], "8 is the only one of its core");
    }

    #[test]
    fn rules_are_parsed() {
        assert_eq!(Place::parse("near:eth0"), Some(Place::Near("eth0".into())));
        assert_eq!([Place::parse("near:"), Place::parse("cluster"), Place::parse("")], [None, None, None]);
    }

    proptest! {
        #[test]
        fn every_cpu_appears_once(mask in 0_u32..1 << 16) {
            let cpus: CpuSet = (0..16).filter(|cpu| mask >> cpu & 1 == 1).collect();
            for rule in &RULES {
                let ordered = order(rule, &host().topology, &cpus);
                prop_assert_eq!(ordered.len(), cpus.len());
                prop_assert_eq!(ordered.into_iter().collect::<CpuSet>(), cpus.clone());
            }
        }
    }
}
