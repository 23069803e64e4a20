//! Choice of the CPUs that show the cost of filling one group before the next.

use lowlat_host::{CpuId, CpuSet, topology::Topology};
use serde::{Deserialize, Serialize};

/// Most copies of a job.
const COPIES_MAX: usize = 8;
/// Working set of a copy, as a share of the group's cache: it fits alone, and two of them do not.
const SET_SHARE: (u64, u64) = (3, 4);
/// Largest working set, in bytes.
const SET_BYTES_MAX: u64 = 256 << 20;
/// Working set where no cache of the group has a known size.
const SET_BYTES_DEFAULT: u64 = 1 << 20;

/// Kind of group that is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Cores that share a second-level cache.
    #[default]
    Cluster,
    /// SMT siblings, which share a core.
    Core,
    /// Cores that share a last-level cache.
    LastLevelCache,
}

impl Level {
    pub fn word(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Core => "core",
            Self::LastLevelCache => "last-level cache",
        }
    }
}

/// The comparison of copies in one group with copies in one group each.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Filling {
    pub level: Level,
    /// CPUs of each group that may be used, one to a core unless the groups are cores.
    pub groups: Vec<CpuSet>,
    /// Number of copies of each job.
    pub copies: usize,
    /// The cache that a group shares.
    pub cache_bytes: Option<u64>,
    /// Working set of a copy.
    pub set_bytes: u64,
}

impl Filling {
    /// Chooses the narrowest kind of group of which there are several, one with several of these CPUs.
    ///
    /// # Errors
    /// Why nothing can be compared, as a sentence.
    pub fn choose(topology: &Topology, usable: &CpuSet) -> Result<Self, String> {
        let cores: Vec<&CpuSet> = topology.cores.iter().map(|core| &core.cpus).collect();
        let is_first = |cpu: CpuId| {
            let core = cores.iter().find(|core| core.contains(cpu));
            core.is_none_or(|core| core.intersection(usable).lowest() == Some(cpu))
        };
        let firsts: CpuSet = usable.iter().filter(|cpu| is_first(*cpu)).collect();
        let clusters = topology.clusters.iter().map(|cluster| &cluster.cpus).collect();
        let llcs = topology.llcs().into_iter().map(|cache| &cache.cpus).collect();
        let candidates: [(Level, Vec<&CpuSet>, &CpuSet); 3] = [
            (Level::Cluster, clusters, &firsts),
            (Level::Core, cores.clone(), usable),
            (Level::LastLevelCache, llcs, &firsts),
        ];
        let found =
            candidates.into_iter().find_map(|(level, groups, cpus)| Self::of(topology, level, &groups, cpus));
        found.ok_or_else(|| {
            format!(
                "There is no choice among {usable:#}: packing takes two of them in one cluster, core or last-level cache, and \
                 spreading takes a second such group. They use {} and {}.",
                counted(topology.l2s().filter(|cache| !cache.cpus.is_disjoint(usable)).count(), "second-level cache"),
                counted(topology.llcs().iter().filter(|cache| !cache.cpus.is_disjoint(usable)).count(), "last-level cache"),
            )
        })
    }

    fn of(topology: &Topology, level: Level, groups: &[&CpuSet], cpus: &CpuSet) -> Option<Self> {
        let used = groups.iter().map(|group| group.intersection(cpus));
        let groups: Vec<CpuSet> = used.filter(|group| !group.is_empty()).collect();
        let widest = groups.iter().max_by_key(|group| group.len())?;
        let copies = groups.len().min(widest.len()).min(COPIES_MAX);
        if copies < 2 {
            return None;
        }
        let cache_bytes = shared_cache(topology, widest);
        let set_bytes = cache_bytes.map_or(SET_BYTES_DEFAULT, |bytes| bytes * SET_SHARE.0 / SET_SHARE.1);
        let set_bytes = set_bytes.min(SET_BYTES_MAX);
        Some(Self { level, groups, copies, cache_bytes, set_bytes })
    }

    /// Returns the CPUs of copies in one group, another one in each round.
    pub fn packed(&self, round: usize) -> Vec<CpuId> {
        let mut full = self.groups.iter().filter(|group| group.len() >= self.copies).cycle();
        let place = round % self.groups.iter().filter(|group| group.len() >= self.copies).count().max(1);
        let group = full.nth(place);
        group.into_iter().flat_map(|group| group.iter().take(self.copies)).collect()
    }

    /// Returns the CPUs of copies in one group each, other CPUs in each round.
    pub fn spread(&self, round: usize) -> Vec<CpuId> {
        let count = self.groups.len().max(1);
        let groups = self.groups.iter().cycle().skip(round % count).take(self.copies);
        groups.filter_map(|group| group.iter().nth(round % group.len().max(1))).collect()
    }
}

/// Size of the smallest cache that several CPUs of a group share with no CPU outside of the group's cores.
fn shared_cache(topology: &Topology, group: &CpuSet) -> Option<u64> {
    let whole: CpuSet =
        group.iter().flat_map(|cpu| topology.siblings(cpu).iter().collect::<Vec<_>>()).collect();
    let of_group = topology.caches.iter().filter(|cache| {
        let is_shared = cache.cpus.intersection(group).len() > 1;
        cache.level > 1 && cache.kind != lowlat_host::topology::CacheKind::Instruction && is_shared
    });
    let smallest = of_group.min_by_key(|cache| (cache.cpus.len(), cache.level))?;
    let is_private = smallest.cpus.difference(&whole).is_empty();
    smallest.size_bytes.known().copied().filter(|bytes| is_private && *bytes > 0)
}

fn counted(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::{
        Reading,
        topology::{Cache, Group},
    };

    fn set(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    /// Groups of `width` CPUs among the first `count`.
    fn groups(count: u32, width: u32) -> Vec<CpuSet> {
        (0..count / width).map(|at| (at * width..(at + 1) * width).collect()).collect()
    }

    fn topology(count: u32, core: u32, cluster: Option<u32>, llc: u32) -> Topology {
        let of = |width| groups(count, width).into_iter().map(|cpus| Group { id: 0, cpus }).collect();
        let caches = |level, width, kib: u64| {
            groups(count, width).into_iter().map(move |cpus| Cache {
                level,
                cpus,
                size_bytes: Reading::Known(kib << 10),
                ..Cache::default()
            })
        };
        Topology {
            online: CpuSet::first(count),
            cores: of(core),
            clusters: cluster.map_or_else(Vec::new, of),
            caches: caches(2, cluster.unwrap_or(core), 4_096).chain(caches(3, llc, 65_536)).collect(),
            ..Topology::default()
        }
    }

    #[test]
    fn clusters_are_compared_first() {
        let topology = topology(16, 1, Some(4), 16);
        let filling = Filling::choose(&topology, &topology.online).unwrap();
        assert_eq!((filling.level, filling.copies), (Level::Cluster, 4));
        assert_eq!((filling.cache_bytes, filling.set_bytes), (Some(4 << 20), 3 << 20));
        assert_eq!((filling.packed(0), filling.packed(5)), (vec![0, 1, 2, 3], vec![4, 5, 6, 7]));
        assert_eq!((filling.spread(0), filling.spread(5)), (vec![0, 4, 8, 12], vec![5, 9, 13, 1]));
        let few = Filling::choose(&topology, &set("0-2,4")).unwrap();
        assert_eq!((few.copies, few.packed(1), few.spread(1)), (2, vec![0, 1], vec![4, 1]));
    }

    #[test]
    fn siblings_do_not_count_as_cores_of_a_cluster() {
        let threaded = topology(16, 2, Some(4), 16);
        let filling = Filling::choose(&threaded, &threaded.online).unwrap();
        assert_eq!((filling.copies, filling.packed(0)), (2, vec![0, 2]));
        assert_eq!(filling.cache_bytes, Some(4 << 20), "siblings of the group share it too");
    }

    #[test]
    fn cores_are_next_and_then_last_level_caches() {
        let threaded = topology(8, 2, None, 8);
        let filling = Filling::choose(&threaded, &threaded.online).unwrap();
        assert_eq!((filling.level, filling.copies, filling.set_bytes), (Level::Core, 2, 3 << 20));
        assert_eq!((filling.packed(1), filling.spread(0)), (vec![2, 3], vec![0, 2]));
        let chiplets = topology(8, 1, None, 4);
        let filling = Filling::choose(&chiplets, &chiplets.online).unwrap();
        assert_eq!((filling.level, filling.set_bytes), (Level::LastLevelCache, 48 << 20));
    }

    #[test]
    fn hosts_without_a_choice_say_so() {
        let two = topology(2, 1, None, 2);
        let why = Filling::choose(&two, &two.online).unwrap_err();
        assert!(why.starts_with("There is no choice among CPUs 0-1: "), "{why}");
        assert!(why.contains("2 second-level caches and 1 last-level cache."), "{why}");
        assert!(Filling::choose(&two, &set("1")).unwrap_err().contains("among CPU 1: "));
        let clusters = topology(16, 1, Some(4), 16);
        assert!(Filling::choose(&clusters, &set("0,4,8")).is_err(), "one CPU of each cluster");
        assert!(Filling::choose(&clusters, &set("0-3")).is_err(), "one cluster");
    }
}
