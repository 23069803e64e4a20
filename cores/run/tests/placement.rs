//! Copies of a command placed on a captured host.

use lowlat_catalogue::CATALOGUE;
use lowlat_host::{CpuSet, HostSnapshot};
use lowlat_host_run::{Root, snapshot};
use lowlat_launch::{CpuChoice, Launch, MemoryPolicy, Mode, Place, Request, Surroundings, ThreadMap};
use std::{num::NonZeroU32, path::Path};

/// A virtual Xeon 6 with 16 cores, four to each second-level cache.
fn xeon() -> HostSnapshot {
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/hosts/xeon6-e-2x4-modules.tar.gz");
    snapshot::read(&Root::open(Path::new(capture)).unwrap(), CATALOGUE)
}

/// Number of copies in each cluster.
fn in_clusters(host: &HostSnapshot, place: Place, copies: u32, allowed: &str) -> Vec<usize> {
    let request = Request {
        mode: Mode::Spin,
        accelerator: None,
        cpus: CpuChoice::Place(place),
        thread_count: None,
        copies: NonZeroU32::new(copies),
        policy: None,
        memory: MemoryPolicy::Inherited,
        has_huge_pages: false,
        is_awake: false,
        thread_map: ThreadMap::default(),
    };
    let around = Surroundings { allowed: CpuSet::parse_list(allowed).unwrap(), ..Surroundings::default() };
    let launch = Launch::plan(&request, host, &around).unwrap();
    let cpus: Vec<u32> = launch.processes().into_iter().flatten().collect();
    assert_eq!(cpus.len(), copies as usize);
    let clusters = host.topology.clusters.iter();
    clusters.map(|cluster| cpus.iter().filter(|cpu| cluster.cpus.contains(**cpu)).count()).collect()
}

#[test]
fn copies_are_spread_over_the_clusters_of_a_xeon_6() {
    let host = xeon();
    for (copies, each) in [(4, 1), (8, 2), (16, 4)] {
        assert_eq!(in_clusters(&host, Place::ClusterSpread, copies, "0-15"), [each; 4], "{copies} copies");
    }
    assert_eq!(in_clusters(&host, Place::ClusterPack, 4, "0-15"), [4, 0, 0, 0]);
    assert_eq!(in_clusters(&host, Place::ClusterPack, 8, "0-15"), [4, 4, 0, 0]);
}

#[test]
fn copies_use_only_the_cpus_of_the_cpuset() {
    let host = xeon();
    assert_eq!(in_clusters(&host, Place::ClusterSpread, 4, "0-4,8-9"), [2, 1, 1, 0]);
    assert_eq!(in_clusters(&host, Place::ClusterSpread, 1, "13"), [0, 0, 0, 1]);
}
