//! The rules on artificial hosts; the readers' golden files cover real ones.

use super::*;
use crate::{
    CpuId, Reading, snapshot::Nic, topology::Cache, topology::CoreType, topology::Group, topology::Node,
    topology::Topology,
};
use proptest::prelude::*;

fn cpus(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

/// A regular host: packages x nodes x cores x threads. Second threads are numbered after all cores, as on
/// x86.
struct Shape {
    packages: u32,
    nodes_per_package: u32,
    cores_per_node: u32,
    threads: u32,
    cores_per_llc: u32,
    cores_per_cluster: u32,
}

const PLAIN: Shape = Shape {
    packages: 1,
    nodes_per_package: 1,
    cores_per_node: 8,
    threads: 1,
    cores_per_llc: 8,
    cores_per_cluster: 1,
};

impl Shape {
    fn host(&self) -> HostSnapshot {
        let cores_in_package = self.nodes_per_package * self.cores_per_node;
        let core_count = self.packages * cores_in_package;
        let core = |c: u32| (0..self.threads).map(|t| t * core_count + c).collect::<CpuSet>();
        let groups = |width: u32| -> Vec<Group> {
            let set = |g: u32| {
                (g * width..(g + 1) * width).flat_map(|c| core(c).iter().collect::<Vec<CpuId>>()).collect()
            };
            (0..core_count / width).map(|g| Group { id: i64::from(g), cpus: set(g) }).collect()
        };
        let node = |g: Group| Node {
            id: u32::try_from(g.id).unwrap(),
            cpus: g.cpus,
            memory_bytes: Reading::Known(1 << 30),
            ..Node::default()
        };
        let cache = |g: Group| Cache { level: 3, cpus: g.cpus, ..Cache::default() };
        let topology = Topology {
            online: CpuSet::first(core_count * self.threads),
            packages: groups(cores_in_package),
            nodes: groups(self.cores_per_node).into_iter().map(node).collect(),
            cores: groups(1),
            clusters: if self.cores_per_cluster > 1 { groups(self.cores_per_cluster) } else { Vec::new() },
            caches: groups(self.cores_per_llc).into_iter().map(cache).collect(),
            ..Topology::default()
        };
        HostSnapshot { topology, ..HostSnapshot::default() }
    }

    fn sides(&self) -> (String, String) {
        let allocation = Allocation::choose(&self.host(), &Role::default());
        (allocation.housekeeping.to_list(), allocation.isolated.to_list())
    }
}

fn sides_of(h: &str, i: &str) -> (String, String) {
    (h.into(), i.into())
}

#[test]
fn the_guide_s_host_gets_the_guide_s_cpus() {
    let shape = Shape { packages: 2, cores_per_llc: 1, ..PLAIN };
    assert_eq!(shape.sides(), sides_of("0,8", "1-7,9-15"));
}

#[test]
fn clusters_stay_whole_where_that_is_cheap() {
    let shape = Shape { cores_per_node: 16, cores_per_llc: 16, cores_per_cluster: 4, ..PLAIN };
    assert_eq!(shape.sides(), sides_of("0-3", "4-15"));
    let narrow = Shape { cores_per_node: 8, cores_per_cluster: 4, ..PLAIN };
    assert_eq!(narrow.sides(), sides_of("0", "1-7"));
    let allocation = Allocation::choose(&narrow.host(), &Role::default());
    assert!(
        allocation.warnings.iter().any(|w| w.contains("sharing a cluster with housekeeping: CPUs 1-3.")),
        "{:?}",
        allocation.warnings
    );
}

/// The efficiency cores do the housekeeping, whatever their numbers, and all fast ones but the first are isolated.
#[test]
fn efficiency_cores_do_the_housekeeping() {
    let kind = |list: &str, is_small| CoreType { name: String::new(), cpus: cpus(list), is_small };
    let hybrid = |kinds: Vec<CoreType>| {
        let mut host = Shape { cores_per_node: 12, cores_per_llc: 12, ..PLAIN }.host();
        host.topology.core_types = kinds;
        let allocation = Allocation::choose(&host, &Role::default());
        (allocation.housekeeping.to_list(), allocation.isolated.to_list())
    };
    // Fast cores first, as on a Core Ultra, with a low-power island; then last, as on Arm.
    assert_eq!(
        hybrid(vec![kind("0-5", false), kind("6-9", true), kind("10-11", true)]),
        sides_of("0,6-11", "1-5")
    );
    assert_eq!(hybrid(vec![kind("0-7", true), kind("8-11", false)]), sides_of("0-7", "8-11"));
    // One fast core, which boots: nothing else could be isolated.
    assert_eq!(hybrid(vec![kind("0", false), kind("1-11", true)]), sides_of("0", "1-11"));
}

#[test]
fn threads_of_a_core_stay_together() {
    let shape = Shape { packages: 2, cores_per_node: 4, threads: 2, cores_per_llc: 4, ..PLAIN };
    assert_eq!(shape.sides(), sides_of("0,4,8,12", "1-3,5-7,9-11,13-15"));
}

#[test]
fn every_node_with_memory_keeps_house() {
    let shape = Shape { nodes_per_package: 4, cores_per_node: 4, cores_per_llc: 4, ..PLAIN };
    assert_eq!(shape.sides().0, "0,4,8,12");
    let mut host = shape.host();
    host.topology.nodes[1].memory_bytes = Reading::Known(0);
    assert_eq!(Allocation::choose(&host, &Role::default()).housekeeping.to_list(), "0,8,12");
}

#[test]
fn small_hosts_get_an_honest_answer() {
    let one = Shape { cores_per_node: 1, cores_per_llc: 1, ..PLAIN };
    assert_eq!(one.sides(), sides_of("0", ""));
    let two = Shape { cores_per_node: 2, cores_per_llc: 2, ..PLAIN };
    assert_eq!(two.sides(), sides_of("0", "1"));
    let one_core = Shape { cores_per_node: 1, threads: 2, cores_per_llc: 1, ..PLAIN };
    assert_eq!(one_core.sides(), sides_of("0", "1"));
    for shape in [one, two, one_core] {
        assert!(!Allocation::choose(&shape.host(), &Role::default()).warnings.is_empty());
    }
}

#[test]
fn one_core_packages_leave_something_to_isolate_near_the_nic() {
    let mut host = Shape { packages: 2, cores_per_node: 1, cores_per_llc: 1, ..PLAIN }.host();
    host.nics =
        vec![Nic { name: "eth0".into(), is_physical: true, node: Reading::Known(0), ..Nic::default() }];
    let allocation = Allocation::choose(&host, &Role::default());
    assert_eq!(
        (allocation.housekeeping.to_list().as_str(), allocation.isolated_near_nics.to_list().as_str()),
        ("1", "0")
    );
}

#[test]
fn a_role_is_taken_at_its_word() {
    let host = PLAIN.host();
    let role = Role { housekeeping: Some(cpus("2")), isolated: Some(cpus("4-7")), ..Role::default() };
    let allocation = Allocation::choose(&host, &role);
    assert_eq!((allocation.housekeeping, allocation.isolated), (cpus("2"), cpus("4-7")));
    assert!(allocation.steps.iter().any(|s| s.contains("0-1,3")), "{:?}", allocation.steps);
    let role = Role { isolated: Some(cpus("4-7")), ..Role::default() };
    assert_eq!(Allocation::choose(&host, &role).housekeeping, cpus("0-3"));
}

#[test]
fn who_isolates_the_boot_cpu_is_warned() {
    let of = |housekeeping: &str| {
        let role = Role { housekeeping: Some(cpus(housekeeping)), ..Role::default() };
        Allocation::choose(&PLAIN.host(), &role).warnings
    };
    assert!(of("2").contains(&crate::BOOT_CPU_ISOLATED.to_owned()));
    assert!(!of("0,2").contains(&crate::BOOT_CPU_ISOLATED.to_owned()));
}

#[test]
fn a_host_of_a_thousand_cpus_is_not_a_special_case() {
    let shape = Shape { packages: 8, cores_per_node: 64, threads: 2, cores_per_llc: 8, ..PLAIN };
    let (housekeeping, isolated) = shape.sides();
    assert!(housekeeping.starts_with("0-7,64-71,"), "{housekeeping}");
    assert_eq!(cpus(&isolated).len(), 1_024 - 8 * 8 * 2);
}

proptest! {
    #[test]
    fn sides_are_disjoint_online_and_never_empty(
        packages in 1u32..4, nodes_per_package in 1u32..3, cores_per_node in 1u32..9, threads in 1u32..3,
        offline in proptest::collection::btree_set(0u32..32, 0..6),
    ) {
        let mut host = Shape { packages, nodes_per_package, cores_per_node, threads, cores_per_llc: 1, cores_per_cluster: 1 }.host();
        let offline: CpuSet = offline.into_iter().collect();
        let topology = &mut host.topology;
        topology.online = topology.online.difference(&offline);
        for group in topology.packages.iter_mut().chain(&mut topology.cores) {
            group.cpus = group.cpus.difference(&offline);
        }
        topology.packages.retain(|g| !g.cpus.is_empty());
        topology.cores.retain(|g| !g.cpus.is_empty());
        for node in &mut topology.nodes {
            node.cpus = node.cpus.difference(&offline);
        }
        let a = Allocation::choose(&host, &Role::default());
        let online = &host.topology.online;
        prop_assert!(a.housekeeping.is_disjoint(&a.isolated));
        prop_assert_eq!(&a.housekeeping.union(&a.isolated), online);
        if online.len() >= 2 {
            prop_assert!(!a.housekeeping.is_empty() && !a.isolated.is_empty(), "{:?}", a);
        }
        if host.topology.cores.len() >= 2 {
            for core in &host.topology.cores {
                prop_assert!(core.cpus.is_subset(&a.housekeeping) || core.cpus.is_subset(&a.isolated));
            }
        }
    }
}
