//! A host for tests: two nodes with one last-level cache each, two clusters of two cores in each, two CPUs in each
//! core. CPUs 8 to 15 are the siblings of 0 to 7. Node 1 (CPUs 4-7 and 12-15) is isolated and has the interface eth1.

use lowlat_host::{
    CpuSet, HostSnapshot, Reading,
    snapshot::{Irq, Nic},
    topology::{Cache, CacheKind, Group, Node},
};

pub fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

pub fn host() -> HostSnapshot {
    let group = |id: i64, list: &str| Group { id, cpus: set(list) };
    let mut host = HostSnapshot::default();
    let topology = &mut host.topology;
    topology.online = set("0-15");
    topology.isolated = Reading::Known(set("4-7,12-15"));
    topology.packages = vec![group(0, "0-15")];
    topology.clusters =
        vec![group(0, "0-1,8-9"), group(1, "2-3,10-11"), group(2, "4-5,12-13"), group(3, "6-7,14-15")];
    topology.cores = (0..8_u32).map(|cpu| group(cpu.into(), &format!("{cpu},{}", cpu + 8))).collect();
    let halves = ["0-3,8-11", "4-7,12-15"];
    topology.caches = halves
        .map(|list| Cache { level: 3, kind: CacheKind::Unified, cpus: set(list), ..Cache::default() })
        .into();
    topology.nodes = (0..)
        .zip(halves)
        .map(|(id, list)| Node {
            id,
            cpus: set(list),
            memory_bytes: Reading::Known(1 << 30),
            ..Node::default()
        })
        .collect();
    host.tasks.allowed_cpus = Reading::Known(set("0-15"));
    host.nics = vec![Nic { name: "eth1".into(), node: Reading::Known(1), irqs: vec![40], ..Nic::default() }];
    host.interrupts.irqs = vec![Irq {
        number: 40,
        actions: vec!["eth1-rx-0".into()],
        effective_affinity: Reading::Known(set("3")),
        ..Irq::default()
    }];
    host
}
