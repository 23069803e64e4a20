use super::*;
use proptest::prelude::*;

fn list(text: &str) -> CpuSet {
    CpuSet::parse_list(text).unwrap()
}

fn known(text: &str) -> Reading<CpuSet> {
    Reading::Known(list(text))
}

/// A CPU of package 0 with a core, a cluster and one L2 and L3.
fn cpu(core: &str, cluster: &str, l2: &str, l3: &str) -> RawCpu {
    let cache = |level: u8, cpus: &str| RawCache { level, cpus: known(cpus), ..RawCache::default() };
    RawCpu {
        has_topology: true,
        package_id: Reading::Known(0),
        core_cpus: known(core),
        cluster_cpus: if cluster.is_empty() { Reading::Absent } else { known(cluster) },
        caches: [(2, l2), (3, l3)]
            .iter()
            .filter(|(_, cpus)| !cpus.is_empty())
            .map(|(level, cpus)| cache(*level, cpus))
            .collect(),
        ..RawCpu::default()
    }
}

fn raw(cpus: Vec<RawCpu>) -> RawTopology {
    RawTopology { cpus: (0..).zip(cpus).collect(), ..RawTopology::default() }
}

fn sets(groups: &[Group]) -> Vec<String> {
    groups.iter().map(|group| group.cpus.to_string()).collect()
}

#[test]
fn a_cluster_is_wider_than_a_core_and_narrower_than_a_package() {
    // The kernel names the core itself as the cluster; the shared L2 is more informative.
    let topology = Topology::build(&raw(vec![
        cpu("0", "0", "0-1", "0-3"),
        cpu("1", "1", "0-1", "0-3"),
        cpu("2", "2", "2", "0-3"),
        cpu("3", "3", "3", "0-3"),
    ]));
    assert_eq!(sets(&topology.clusters), ["0-1"]);
    // SMT siblings that share an L2 are a core, and a cluster as wide as the package adds nothing.
    let smt = Topology::build(&raw(vec![cpu("0-1", "0-1", "0-1", ""), cpu("0-1", "0-1", "0-1", "")]));
    assert!(smt.clusters.is_empty() && smt.has_smt());
    let wide = Topology::build(&raw(vec![cpu("0", "0-1", "", ""), cpu("1", "0-1", "", "")]));
    assert!(wide.clusters.is_empty());
}

#[test]
fn last_level_caches_are_l3s_and_l2s_where_a_cpu_has_no_l3() {
    let topology = Topology::build(&raw(vec![
        cpu("0", "", "0", "0-1"),
        cpu("1", "", "1", "0-1"),
        cpu("2", "", "2-3", ""),
        cpu("3", "", "2-3", ""),
        cpu("4", "", "", ""),
    ]));
    let llcs: Vec<String> = topology.llcs().iter().map(|cache| cache.cpus.to_string()).collect();
    assert_eq!(llcs, ["0-1", "2-3"]);
    assert_eq!((topology.counts.llcs, topology.counts.l2_groups), (2, 3));
    assert!(topology.llc_of(4).is_none());
    assert_eq!(topology.llc_of(0).unwrap().level, 3);
}

#[test]
fn thread_siblings_with_core_numbers_that_are_separate_are_cores() {
    let module = |core_id| RawCpu { core_id: Reading::Known(core_id), ..cpu("0-1", "", "0-1", "0-3") };
    let topology =
        Topology::build(&raw(vec![module(0), module(1), cpu("2", "", "", "0-3"), cpu("3", "", "", "0-3")]));
    assert_eq!(sets(&topology.cores), ["0", "1", "2", "3"]);
    assert_eq!(sets(&topology.clusters), ["0-1"]);
    assert!(topology.oddities.iter().all(|oddity| !oddity.contains("disagree")), "{:?}", topology.oddities);
}

#[test]
fn offline_cpus_are_left_out_of_groups_and_reported_when_named() {
    let mut host = raw(vec![cpu("0-1", "", "", ""), cpu("0-1", "", "", ""), cpu("2", "", "", "")]);
    host.cpus.get_mut(&1).unwrap().is_online = Reading::Known(false);
    let topology = Topology::build(&host);
    assert_eq!((topology.online.to_string(), topology.offline.to_string()), ("0,2".into(), "1".into()));
    assert_eq!(sets(&topology.cores), ["0", "2"]);
    assert!(
        topology
            .oddities
            .iter()
            .any(|it| it.starts_with("CPU 0: offline CPUs are listed in the masks of the cores"))
    );
}

#[test]
fn dies_part_a_package_and_capacities_name_core_types() {
    let on_die = |die: i64, capacity: u32| RawCpu {
        die_id: Reading::Known(die),
        capacity: Reading::Known(capacity),
        ..cpu("", "", "", "")
    };
    let mut host = raw(vec![on_die(0, 1024), on_die(0, 446), on_die(1, 446)]);
    host.cpus.values_mut().for_each(|cpu| cpu.core_cpus = Reading::Absent);
    let topology = Topology::build(&host);
    assert_eq!(
        (sets(&topology.packages), sets(&topology.dies)),
        (vec!["0-2".into()], vec!["0-1".into(), "2".into()])
    );
    let types: Vec<String> =
        topology.core_types.iter().map(|kind| format!("{} {}", kind.name, kind.cpus)).collect();
    assert_eq!(types, ["capacity 1024 0", "capacity 446 1-2"]);
    assert_eq!(topology.efficiency_cpus().to_list(), "1-2");
}

/// Speeds separate core types if the kernel names none. Favoured cores, which clock a little higher, are not a type.
#[test]
fn speeds_name_core_types_but_favoured_cores_are_none() {
    let types_of = |set: fn(&mut RawCpu, u32), speeds: &[u32]| -> Vec<String> {
        let cpu = |speed: &u32| {
            let mut cpu = RawCpu { has_topology: true, ..RawCpu::default() };
            set(&mut cpu, *speed);
            cpu
        };
        let cpus = (0..).zip(speeds.iter().map(cpu)).collect();
        let topology = Topology::build(&RawTopology { cpus, ..RawTopology::default() });
        let word = |kind: &CoreType| format!("{} {} {}", kind.name, kind.cpus, kind.is_small);
        topology.core_types.iter().map(word).collect()
    };
    let clock = |cpu: &mut RawCpu, khz| cpu.clock_khz_max = Reading::Known(khz);
    assert_eq!(
        types_of(clock, &[5_000_000, 5_200_000, 3_900_000, 3_900_000, 2_500_000]),
        ["clock up to 5200 MHz 0-1 false", "clock up to 3900 MHz 2-3 true", "clock up to 2500 MHz 4 true"]
    );
    assert!(types_of(clock, &[3_500_000, 3_500_000, 4_000_000]).is_empty(), "Turbo Boost Max 3.0");
    let scale = |cpu: &mut RawCpu, value| cpu.performance_max = Reading::Known(value);
    assert_eq!(types_of(scale, &[64, 67, 39]), ["performance 67 0-1 false", "performance 39 2 true"]);
    assert!(types_of(scale, &[166, 171, 176, 181, 186, 191, 196, 201]).is_empty(), "AMD's ranking of cores");
    // The guaranteed clock differs between alike cores, so it counts only where nothing else is known.
    let base = |cpu: &mut RawCpu, khz| cpu.base_clock_khz = Reading::Known(khz);
    assert_eq!(types_of(base, &[1_900_000, 1_400_000]).len(), 2);
    let speed_select = |cpu: &mut RawCpu, khz| {
        (cpu.clock_khz_max, cpu.base_clock_khz) = (Reading::Known(3_900_000), Reading::Known(khz));
    };
    assert!(types_of(speed_select, &[2_700_000, 2_100_000]).is_empty(), "Speed Select");
    let partly = |cpu: &mut RawCpu, khz| {
        cpu.clock_khz_max = if khz == 0 { Reading::Denied } else { Reading::Known(khz) };
    };
    assert!(types_of(partly, &[5_000_000, 0, 3_000_000]).is_empty(), "not guessed");
}

#[test]
fn nodes_keep_their_numbers_and_share_no_cpu() {
    let mut host = raw(vec![RawCpu::default(), RawCpu::default()]);
    let node = |cpus: &str, row: &[u32]| RawNode {
        cpus: known(cpus),
        distances: Reading::Known(row.to_vec()),
        ..RawNode::default()
    };
    host.nodes = [(1, node("0-1", &[21, 10, 30, 40])), (3, node("1", &[40, 30])), (7, node("", &[1]))].into();
    let topology = Topology::build(&host);
    let nodes: Vec<String> =
        topology.nodes.iter().map(|node| format!("{}: {}", node.id, node.cpus)).collect();
    assert_eq!(nodes, ["1: 0-1", "3: ", "7: "]);
    assert!(topology.oddities.iter().any(|it| it.contains("CPU 1: listed by several NUMA nodes")));
    assert!(matches!(&topology.nodes[1].distances, Reading::Unparsable(why) if why.raw == "40 30"));
}

#[test]
fn a_row_of_distances_with_a_node_too_many_is_read_by_number() {
    let mut host = raw(vec![RawCpu::default()]);
    let node = RawNode { cpus: known("0"), distances: Reading::Known(vec![21, 10]), ..RawNode::default() };
    host.nodes = [(1, node)].into();
    assert_eq!(Topology::build(&host).nodes[0].distances, Reading::Known(vec![10]));
}

fn any_reading<T: std::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> impl Strategy<Value = Reading<T>> {
    prop_oneof![
        4 => value.prop_map(Reading::Known),
        1 => Just(Reading::Absent),
        1 => Just(Reading::Denied),
        1 => Just(Reading::unparsable("/sys/x", "junk", "a number")),
    ]
}

fn any_cpus() -> impl Strategy<Value = CpuSet> {
    prop_oneof![
        proptest::collection::vec(0u32..12, 0..6).prop_map(|cpus| cpus.into_iter().collect()),
        (0u32..12, 1u32..6).prop_map(|(first, count)| (first..first + count).collect()),
    ]
}

fn any_cache() -> impl Strategy<Value = RawCache> {
    let kind = prop_oneof![Just(CacheKind::Data), Just(CacheKind::Instruction), Just(CacheKind::Unified)];
    (0u8..5, kind, any_reading(any_cpus())).prop_map(|(level, kind, cpus)| RawCache {
        level,
        kind,
        cpus,
        ..RawCache::default()
    })
}

fn any_cpu() -> impl Strategy<Value = RawCpu> {
    let ids = || any_reading(-1i64..3);
    let cpus = || any_reading(any_cpus());
    let groups = (cpus(), cpus(), cpus(), cpus());
    let caches = proptest::collection::vec(any_cache(), 0..4);
    (any_reading(any::<bool>()), any::<bool>(), (ids(), ids(), ids()), groups, caches, any_reading(0u32..3))
        .prop_map(|(is_online, has_topology, ids, groups, caches, capacity)| RawCpu {
            is_online,
            has_topology,
            package_id: ids.0,
            die_id: ids.1.clone(),
            cluster_id: ids.1,
            core_id: ids.2,
            package_cpus: groups.0,
            die_cpus: groups.1,
            cluster_cpus: groups.2,
            core_cpus: groups.3,
            capacity,
            caches,
            ..RawCpu::default()
        })
}

fn any_raw() -> impl Strategy<Value = RawTopology> {
    let lists = (any_reading(any_cpus()), any_reading(any_cpus()), any_reading(any_cpus()));
    let cpus = proptest::collection::btree_map(0u32..12, any_cpu(), 0..10);
    let node = (any_reading(any_cpus()), any_reading(proptest::collection::vec(0u32..40, 0..4)))
        .prop_map(|(cpus, distances)| RawNode { cpus, distances, ..RawNode::default() });
    let nodes = proptest::collection::btree_map(0u32..5, node, 0..4);
    let types = proptest::collection::btree_map("[a-c]", any_reading(any_cpus()), 0..3);
    let tiers = proptest::collection::btree_map(0u32..5, any_reading(any_cpus()), 0..3);
    (lists, cpus, nodes, types, tiers).prop_map(|(lists, cpus, nodes, core_types, memory_tiers)| {
        RawTopology {
            possible: lists.0,
            present: lists.1,
            online: lists.2,
            cpus,
            nodes,
            core_types,
            memory_tiers,
            ..RawTopology::default()
        }
    })
}

/// Sorted by lowest CPU, not empty, online, and without a CPU in two groups.
fn assert_groups<'a>(online: &CpuSet, groups: impl Iterator<Item = &'a CpuSet>) -> CpuSet {
    let mut seen = CpuSet::new();
    let mut lowest = None;
    for cpus in groups {
        assert!(!cpus.is_empty());
        assert!(cpus.is_subset(online) && cpus.is_disjoint(&seen));
        assert!(cpus.lowest() > lowest);
        lowest = cpus.lowest();
        seen = seen.union(cpus);
    }
    seen
}

fn assert_within(inner: &[Group], outer: &[Group]) {
    for group in inner {
        assert!(outer.iter().any(|outer| group.cpus.is_subset(&outer.cpus)), "{group:?} in {outer:?}");
    }
}

proptest! {
    #[test]
    fn whatever_the_files_say_the_groups_keep_their_promises(raw in any_raw()) {
        let topology = Topology::build(&raw);
        let online = &topology.online;
        if let Some(listed) = raw.online.known().filter(|listed| !listed.is_empty()) {
            prop_assert_eq!(online, listed);
        }
        prop_assert!(topology.offline.is_disjoint(online));
        for groups in [&topology.packages, &topology.dies, &topology.cores] {
            prop_assert_eq!(&assert_groups(online, groups.iter().map(|group| &group.cpus)), online);
        }
        assert_within(&topology.dies, &topology.packages);
        assert_within(&topology.cores, &topology.dies);
        assert_groups(online, topology.clusters.iter().map(|group| &group.cpus));
        for cluster in &topology.clusters {
            prop_assert!(topology.packages.iter().any(|p| cluster.cpus.is_subset(&p.cpus) && cluster.cpus != p.cpus));
            prop_assert!(cluster.cpus.len() > 1);
        }
        for cache in &topology.caches {
            let alike = topology.caches.iter().filter(|c| (c.level, c.kind) == (cache.level, cache.kind));
            assert_groups(online, alike.map(|cache| &cache.cpus));
        }
        let mut in_nodes = CpuSet::new();
        for node in &topology.nodes {
            prop_assert!(node.cpus.is_subset(online) && node.cpus.is_disjoint(&in_nodes));
            in_nodes = in_nodes.union(&node.cpus);
        }
        prop_assert!(topology.nodes.windows(2).all(|pair| pair[0].id < pair[1].id));
        prop_assert_eq!(topology.counts.pus, online.len());
        prop_assert_eq!(topology.counts.cores, topology.cores.len());
        for cpu in online.iter() {
            prop_assert!(topology.llc_of(cpu).is_none_or(|llc| topology.llcs().contains(&llc)));
        }
    }
}

/// A short text of a topology, for golden tests.
fn in_words(topology: &Topology) -> String {
    let groups = |groups: &[Group]| {
        groups.iter().map(|g| format!("{}:{}", g.id, g.cpus)).collect::<Vec<_>>().join(" ")
    };
    let mut lines = vec![format!("{:?}", topology.counts)];
    for (name, list) in [
        ("packages", &topology.packages),
        ("dies", &topology.dies),
        ("clusters", &topology.clusters),
        ("cores", &topology.cores),
    ] {
        lines.push(format!("{name} {}", groups(list)));
    }
    let llcs: Vec<String> =
        topology.llcs().iter().map(|cache| format!("L{} {}", cache.level, cache.cpus)).collect();
    lines.push(format!("llcs {}", llcs.join(", ")));
    let types: Vec<String> =
        topology.core_types.iter().map(|kind| format!("{} {}", kind.name, kind.cpus)).collect();
    lines.push(format!("types {}", types.join(", ")));
    lines.push(format!("offline: {}", topology.offline).trim_end().to_owned());
    lines.extend(topology.oddities.iter().map(|oddity| format!("! {oddity}")));
    lines.join("\n")
}

/// A CPU of a package, core and last-level cache by their masks.
fn placed(package: i64, package_cpus: &str, core: i64, core_cpus: &str, l3: &str) -> RawCpu {
    RawCpu {
        package_id: Reading::Known(package),
        package_cpus: known(package_cpus),
        core_id: Reading::Known(core),
        ..cpu(core_cpus, "", core_cpus, l3)
    }
}

#[test]
fn golden_two_packages_with_two_threads_a_core_and_one_cpu_off() {
    // Linux numbers the first threads of both packages before the second threads.
    let mut host = raw((0..8)
        .map(|id| {
            let (package, core) = ((id / 2) % 2, id % 2);
            let cpus = if package == 0 { "0-1,4-5" } else { "2-3,6-7" };
            placed(package, cpus, core, &format!("{},{}", id % 4, id % 4 + 4), cpus)
        })
        .collect());
    host.present = known("0-7");
    host.cpus.insert(7, RawCpu { is_online: Reading::Known(false), ..RawCpu::default() });
    for (_, cpu) in host.cpus.iter_mut().filter(|(id, _)| matches!(id, 2 | 3 | 6)) {
        cpu.package_cpus = known("2-3,6");
        cpu.caches.iter_mut().filter(|cache| cache.level == 3).for_each(|l3| l3.cpus = known("2-3,6"));
    }
    let third = host.cpus.get_mut(&3).unwrap();
    (third.core_cpus, third.caches[0].cpus) = (known("3"), known("3"));
    insta::assert_snapshot!(in_words(&Topology::build(&host)));
}

#[test]
fn golden_efficiency_cores_in_clusters_of_four_beside_threaded_cores() {
    let host = raw((0..12)
        .map(|id: i64| {
            if id < 4 {
                let core = format!("{}-{}", id / 2 * 2, id / 2 * 2 + 1);
                RawCpu {
                    cluster_cpus: known(&core),
                    capacity: Reading::Known(1024),
                    ..placed(0, "0-11", id / 2, &core, "0-11")
                }
            } else {
                let cluster = if id < 8 { "4-7" } else { "8-11" };
                RawCpu {
                    capacity: Reading::Known(600),
                    cluster_id: Reading::Known(id / 4 * 8),
                    core_id: Reading::Known(id),
                    package_cpus: known("0-11"),
                    ..cpu(&id.to_string(), cluster, cluster, "0-11")
                }
            }
        })
        .collect());
    insta::assert_snapshot!(in_words(&Topology::build(&host)));
}

#[test]
fn golden_lying_host() {
    let mut host = raw(vec![
        placed(0, "0-3", 0, "0-1", "0-3"),
        placed(0, "0-3", 0, "1-2", "0-3"),
        placed(1, "2-3", 0, "1-2", "0-3"),
        placed(1, "2-3", 1, "9", "2"),
    ]);
    host.online = known("0-4");
    host.possible = known("0-3");
    insta::assert_snapshot!(in_words(&Topology::build(&host)));
}
