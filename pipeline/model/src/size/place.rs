//! Proposes CPUs for the processes of a run.

use crate::{Pins, ProcessRole};
use lowlat_host::{Allocation, CpuId, CpuSet, Topology};
use serde::{Deserialize, Serialize};

/// Group of strategies with one rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StrategyGroup {
    pub strategies: u32,
    /// Quotes a second of each.
    pub rate_per_s: f64,
}

/// A group with its CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlacedGroup {
    pub group: StrategyGroup,
    /// Their CPUs, shared with other groups only if there are too few; empty when there is none to give.
    pub cpus: CpuSet,
}

/// A proposal. `pins` is what runs take.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Placement {
    /// CPUs by role, as in [`crate::PipelineParameters::pins`]; of `strategies` one for each, in the order of
    /// the groups.
    pub pins: Pins,
    #[serde(default)]
    pub groups: Vec<PlacedGroup>,
    /// Decisions with their reasons, one sentence each.
    #[serde(default)]
    pub steps: Vec<String>,
    /// Shortcomings of the proposal, one sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Proposes CPUs. The rules:
///
/// 1. master, cached and a recorder go to housekeeping CPUs: they are not on the way from a quote to its order.
/// 2. md and td get a core each under one last-level cache, in one cluster where there are clusters; the cache with the
///    most isolated CPUs near the trading NICs is taken, and their SMT siblings stay idle.
/// 3. Strategies get a core each in turn out of what is left: the same last-level cache first, then the same node and
///    package, then the rest. Of equally near cores, each cluster gives one before a second, md and td included: a
///    strategy shares its second-level cache last.
/// 4. Groups of strategies share no CPU: each gets its share of them by its load, one at least, the busiest first and
///    nearest. Groups for which no CPU is left go with the slowest, which is said.
pub fn place(topology: &Topology, allocation: &Allocation, groups: &[StrategyGroup]) -> Placement {
    let mut placement = Placement::default();
    let is_isolated = !allocation.isolated.is_empty();
    let pool = if is_isolated { &allocation.isolated } else { &topology.online };
    let cores = first_threads(topology, pool);
    let housekeeping: Vec<CpuId> =
        first_threads(topology, &allocation.housekeeping).into_iter().chain(pool.iter()).take(2).collect();
    if let Some(master) = housekeeping.first() {
        let cached =
            if allocation.housekeeping.len() > 1 { housekeeping.last() } else { None }.unwrap_or(master);
        placement.pin(ProcessRole::Master, vec![*master]);
        placement.pin(ProcessRole::Cached, vec![*cached]);
        placement.pin(ProcessRole::Recorder, vec![*cached]);
    }
    let Some((md, td)) = platform(topology, allocation, &cores) else {
        placement.warnings.push(
            "Fewer than two cores are left for trading, so md, td and strategies go where the kernel puts them.".into(),
        );
        placement.groups =
            groups.iter().map(|group| PlacedGroup { group: *group, cpus: CpuSet::default() }).collect();
        return placement;
    };
    placement.pin(ProcessRole::Md, vec![md]);
    placement.pin(ProcessRole::Td, vec![td]);
    placement
        .steps
        .push(format!("md on CPU {md} and td on CPU {td}: {}.", nearness_words(nearness(topology, md, td))));
    let mut left: Vec<CpuId> = cores.iter().copied().filter(|cpu| *cpu != md && *cpu != td).collect();
    left.sort_by_cached_key(|cpu| {
        let earlier = earlier_in_cluster(topology, [md, td], &cores, *cpu);
        (nearness(topology, md, *cpu).max(SAME_LLC), earlier, *cpu)
    });
    if !topology.clusters.is_empty() {
        placement.steps.push("Strategies get one core of each cluster before a second of any.".into());
    }
    placement.give(groups, &left);
    placement
}

impl Placement {
    fn pin(&mut self, role: ProcessRole, cpus: Vec<CpuId>) {
        self.pins.insert(role, cpus);
    }

    /// Shares the CPUs, nearest first, among the groups.
    fn give(&mut self, groups: &[StrategyGroup], left: &[CpuId]) {
        let load = |group: &StrategyGroup| f64::from(group.strategies) * group.rate_per_s;
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by(|a, b| groups[*b].rate_per_s.total_cmp(&groups[*a].rate_per_s));
        let mut cpus: Vec<Vec<CpuId>> = vec![Vec::new(); groups.len()];
        if left.is_empty() {
            self.warnings.push(
                "md and td take every core for trading; strategies go where the kernel puts them, and disturb them.".into(),
            );
        } else {
            let own = left.len().min(groups.len());
            let loads: Vec<f64> = order.iter().take(own).map(|group| load(&groups[*group])).collect();
            let mut rest = left;
            for (group, number) in order.iter().zip(shares(&loads, left.len())) {
                let (taken, after) = rest.split_at(number.min(rest.len()));
                cpus[*group] = taken.to_vec();
                rest = after;
            }
            if let Some(last) = order.get(own.saturating_sub(1)).copied()
                && own < groups.len()
            {
                for group in &order[own..] {
                    let shared = cpus[last].clone();
                    cpus[*group] = shared;
                }
                self.warnings.push(format!(
                    "{} groups share {:#}: the {} slowest share CPU {}.",
                    groups.len(),
                    left.iter().copied().collect::<CpuSet>(),
                    groups.len() - own + 1,
                    cpus[last].iter().copied().collect::<CpuSet>()
                ));
            }
            let in_turn: Vec<CpuId> = groups
                .iter()
                .zip(&cpus)
                .flat_map(|(group, cpus)| {
                    let count = usize::try_from(group.strategies).unwrap_or(0);
                    cpus.iter().copied().cycle().take(count)
                })
                .collect();
            self.pin(ProcessRole::Strategies, in_turn);
        }
        let cpus: Vec<CpuSet> = cpus.into_iter().map(|cpus| cpus.into_iter().collect()).collect();
        for (group, cpus) in groups.iter().zip(&cpus).filter(|(_, cpus)| !cpus.is_empty()) {
            let each = f64::from(group.strategies) / cpus.len() as f64;
            self.steps.push(format!(
                "{} strategies of {} quotes/s on {cpus:#}: {each:.1} on each.",
                group.strategies, group.rate_per_s
            ));
        }
        self.groups =
            groups.iter().zip(cpus).map(|(group, cpus)| PlacedGroup { group: *group, cpus }).collect();
    }
}

/// Parts a number of CPUs by loads, one at least to each; what is left over goes to the largest remainders.
fn shares(loads: &[f64], cpus: usize) -> Vec<usize> {
    let total: f64 = loads.iter().sum();
    let spare = cpus.saturating_sub(loads.len());
    let exact: Vec<f64> =
        loads.iter().map(|load| if total > 0.0 { load / total * spare as f64 } else { 0.0 }).collect();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a number of CPUs"
    )]
    let mut given: Vec<usize> = exact.iter().map(|share| 1 + share.floor() as usize).collect();
    let mut by_remainder: Vec<usize> = (0..loads.len()).collect();
    by_remainder.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()));
    let left = cpus.saturating_sub(given.iter().sum());
    for group in by_remainder.into_iter().cycle().take(if loads.is_empty() { 0 } else { left }) {
        given[group] += 1;
    }
    given
}

/// The lowest CPU of each core that lies in the pool.
fn first_threads(topology: &Topology, pool: &CpuSet) -> Vec<CpuId> {
    pool.iter()
        .filter(|cpu| topology.siblings(*cpu).intersection(pool).lowest().is_none_or(|low| low == *cpu))
        .collect()
}

/// The two cores for md and td.
fn platform(topology: &Topology, allocation: &Allocation, cores: &[CpuId]) -> Option<(CpuId, CpuId)> {
    let near_nics = |cpu: CpuId| allocation.isolated_near_nics.contains(cpu);
    let mut pairs: Vec<(CpuId, CpuId)> = Vec::new();
    for (at, md) in cores.iter().enumerate() {
        // Neighbours in number are near each other; of the rest one that shares most is enough.
        pairs.extend(
            cores[at + 1..]
                .iter()
                .min_by_key(|td| (nearness(topology, *md, **td), **td))
                .map(|td| (*md, *td)),
        );
    }
    let room = |cpu: CpuId| cores.iter().filter(|other| nearness(topology, cpu, **other) <= SAME_LLC).count();
    pairs.into_iter().min_by_key(|(md, td)| {
        let far = nearness(topology, *md, *td);
        (far > SAME_LLC, !near_nics(*md), far, std::cmp::Reverse(room(*md)), *md)
    })
}

/// Cores of a CPU's cluster that are taken before it: the platform's, and those with a lower number.
fn earlier_in_cluster(topology: &Topology, platform: [CpuId; 2], cores: &[CpuId], cpu: CpuId) -> usize {
    let Some(cluster) = Topology::group_of(&topology.clusters, cpu) else { return 0 };
    let is_earlier = |other: CpuId| platform.contains(&other) || other < cpu;
    cores.iter().filter(|other| cluster.cpus.contains(**other) && is_earlier(**other)).count()
}

pub(crate) const SAME_LLC: u8 = 2;

/// Returns the smallest unit that two CPUs share: 0 a core, 1 a cluster, 2 a last-level cache, 3 a node, 4 a package, 5
/// none.
pub(crate) fn nearness(topology: &Topology, a: CpuId, b: CpuId) -> u8 {
    let within = |cpus: Option<&CpuSet>| cpus.is_some_and(|cpus| cpus.contains(b));
    if topology.siblings(a).contains(b) {
        0
    } else if within(Topology::group_of(&topology.clusters, a).map(|group| &group.cpus)) {
        1
    } else if within(topology.llc_of(a).map(|cache| &cache.cpus)) {
        SAME_LLC
    } else if within(topology.node_of(a).map(|node| &node.cpus)) {
        3
    } else if within(topology.package_of(a).map(|package| &package.cpus)) {
        4
    } else {
        5
    }
}

fn nearness_words(nearness: u8) -> &'static str {
    match nearness {
        0 => "threads of one core",
        1 => "cores of one cluster",
        SAME_LLC => "cores under one last-level cache",
        3 => "cores of one NUMA node, under different caches",
        4 => "cores of one package, on different NUMA nodes",
        _ => "cores that share nothing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::{
        Reading,
        topology::{Cache, CacheKind, Group, Node},
    };
    use proptest::prelude::*;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    /// Two packages of 8 cores, two last-level caches each, no SMT; clusters of two.
    fn topology() -> Topology {
        let llc = |list: &str| Cache {
            level: 3,
            kind: CacheKind::Unified,
            size_bytes: Reading::Absent,
            line_bytes: Reading::Absent,
            cpus: set(list),
        };
        let group = |id, cpus: CpuSet| Group { id, cpus };
        Topology {
            online: set("0-15"),
            cores: (0..16).map(|cpu| group(i64::from(cpu), CpuSet::of(cpu))).collect(),
            clusters: (0..8)
                .map(|at| group(i64::from(at), [at * 2, at * 2 + 1].into_iter().collect()))
                .collect(),
            caches: vec![llc("0-3"), llc("4-7"), llc("8-11"), llc("12-15")],
            packages: vec![group(0, set("0-7")), group(1, set("8-15"))],
            nodes: ["0-7", "8-15"]
                .iter()
                .zip(0..)
                .map(|(list, id)| Node { id, cpus: set(list), ..Node::default() })
                .collect(),
            ..Topology::default()
        }
    }

    fn allocation(housekeeping: &str, isolated: &str, near: &str) -> Allocation {
        Allocation {
            housekeeping: set(housekeeping),
            isolated: set(isolated),
            isolated_near_nics: set(near),
            ..Allocation::default()
        }
    }

    const GROUPS: [StrategyGroup; 2] = [
        StrategyGroup { strategies: 60, rate_per_s: 10.0 },
        StrategyGroup { strategies: 20, rate_per_s: 100.0 },
    ];

    #[test]
    fn the_platform_is_together_and_near_the_nics() {
        let placement = place(&topology(), &allocation("0,8", "1-7,9-15", "9-15"), &GROUPS);
        assert_eq!(
            (placement.pins[&ProcessRole::Master][0], placement.pins[&ProcessRole::Cached][0]),
            (0, 8)
        );
        assert_eq!(placement.pins[&ProcessRole::Recorder], [8], "beside cached");
        assert_eq!(
            (placement.pins[&ProcessRole::Md][0], placement.pins[&ProcessRole::Td][0]),
            (12, 13),
            "a cluster, and room beside it"
        );
        assert!(placement.steps[0].contains("one cluster"), "{:?}", placement.steps);
        assert!(
            placement.groups[1].cpus.contains(14),
            "the fastest strategies are nearest: {:?}",
            placement.groups
        );
        assert_eq!(placement.pins[&ProcessRole::Strategies].len(), 80);
        assert!(placement.warnings.is_empty());
    }

    #[test]
    fn strategies_are_spread_over_clusters_and_the_platform_is_packed() {
        let mut topology = topology();
        topology.caches = vec![Cache { level: 3, cpus: set("0-15"), ..Cache::default() }];
        topology.nodes.clear();
        topology.packages = vec![Group { id: 0, cpus: set("0-15") }];
        topology.clusters =
            ["0-3", "4-7", "8-11", "12-15"].map(|list| Group { id: 0, cpus: set(list) }).into();
        let few = [StrategyGroup { strategies: 7, rate_per_s: 10.0 }];
        let placement = place(&topology, &allocation("0", "1-15", ""), &few);
        assert_eq!((placement.pins[&ProcessRole::Md][0], placement.pins[&ProcessRole::Td][0]), (1, 2));
        assert_eq!(
            placement.pins[&ProcessRole::Strategies],
            [4, 8, 12, 5, 9, 13, 3],
            "md and td count in their cluster"
        );
        assert!(placement.steps[1].contains("each cluster"), "{:?}", placement.steps);
    }

    #[test]
    fn groups_get_cpus_by_their_load() {
        let placement = place(&topology(), &allocation("0,8", "1-7,9-15", ""), &GROUPS);
        let sizes: Vec<usize> = placement.groups.iter().map(|group| group.cpus.len()).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 12);
        assert!(sizes[1] > sizes[0], "2,000 quotes a second against 600: {sizes:?}");
    }

    #[test]
    fn too_few_cpus_are_said() {
        let of = |isolated: &str| place(&topology(), &allocation("0", isolated, ""), &GROUPS);
        assert!(of("1").warnings[0].contains("Fewer than two cores"));
        assert!(of("1-2").warnings[0].contains("md and td take every core"));
        assert!(
            of("1-2").pins.contains_key(&ProcessRole::Td)
                && !of("1-2").pins.contains_key(&ProcessRole::Strategies)
        );
        let shared = of("1-3");
        assert!(shared.warnings[0].contains("2 groups share CPU 1"), "{:?}", shared.warnings);
        assert_eq!(shared.pins[&ProcessRole::Strategies].len(), 80);
    }

    proptest! {
        #[test]
        fn nobody_shares_a_cpu_with_the_platform(
            isolated in proptest::collection::btree_set(1_u32..16, 0..16),
            groups in proptest::collection::vec((1_u32..100, 0.1_f64..1000.0), 1..5),
        ) {
            let isolated: CpuSet = isolated.into_iter().collect();
            let allocation = Allocation { housekeeping: CpuSet::of(0), isolated: isolated.clone(), ..Allocation::default() };
            let groups: Vec<StrategyGroup> =
                groups.into_iter().map(|(strategies, rate_per_s)| StrategyGroup { strategies, rate_per_s }).collect();
            let placement = place(&topology(), &allocation, &groups);
            let pinned = |role| placement.pins.get(&role).cloned().unwrap_or_default();
            let platform: CpuSet = pinned(ProcessRole::Md).into_iter().chain(pinned(ProcessRole::Td)).collect();
            let strategies: CpuSet = pinned(ProcessRole::Strategies).into_iter().collect();
            prop_assert!(platform.is_disjoint(&strategies));
            prop_assert!(platform.is_empty() || platform.len() == 2);
            if isolated.len() >= groups.len() + 2 {
                let all: usize = placement.groups.iter().map(|group| group.cpus.len()).sum();
                let union = placement.groups.iter().fold(CpuSet::default(), |all, group| all.union(&group.cpus));
                prop_assert_eq!(all, union.len(), "groups share none");
                prop_assert_eq!(all, isolated.len() - 2, "and none is left over");
                prop_assert!(strategies.is_subset(&union));
            }
        }
    }
}
