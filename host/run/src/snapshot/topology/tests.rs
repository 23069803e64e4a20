use crate::testing::TestTree;
use lowlat_host::{CpuSet, Reading, Topology, topology::Counts};

fn list(text: &str) -> CpuSet {
    CpuSet::parse_list(text).unwrap()
}

/// One CPU with its own L2, as kernels of ten years ago describe it.
fn old_cpu(tree: TestTree, cpu: u32, core: u32, siblings: &str) -> TestTree {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
    tree.file(&format!("{folder}/topology/physical_package_id"), "0\n")
        .file(&format!("{folder}/topology/core_id"), format!("{core}\n"))
        .file(&format!("{folder}/topology/core_siblings"), "00000000,0000000f\n")
        .file(&format!("{folder}/topology/thread_siblings"), format!("{siblings}\n"))
        .file(&format!("{folder}/cache/index2/level"), "2\n")
        .file(&format!("{folder}/cache/index2/type"), "Unified\n")
        .file(&format!("{folder}/cache/index2/size"), "1024K\n")
        .file(&format!("{folder}/cache/index2/shared_cpu_map"), format!("{siblings}\n"))
}

fn read(tree: &TestTree) -> Topology {
    super::read(&tree.root())
}

#[test]
fn an_old_tree_without_lists_of_cpus_is_read() {
    let mut tree = TestTree::new();
    for (cpu, core, siblings) in [(0, 0, "5"), (1, 1, "a"), (2, 0, "5"), (3, 1, "a")] {
        tree = old_cpu(tree, cpu, core, siblings);
    }
    let tree = tree.file("/sys/devices/system/cpu/cpu4/online", "0\n").dir("/sys/devices/system/cpu/cpufreq");
    let topology = read(&tree);
    assert_eq!(topology.online, list("0-3"));
    assert_eq!(topology.offline, list("4"));
    assert_eq!(
        topology.counts,
        Counts { packages: 1, numa_nodes: 1, llcs: 2, l2_groups: 2, cores: 2, pus: 4 }
    );
    assert_eq!(topology.cores[1].cpus, list("1,3"));
    assert_eq!(topology.llc_of(2).unwrap().size_bytes, Reading::Known(1 << 20));
    assert!(topology.clusters.is_empty());
}

#[test]
fn clusters_of_a_new_tree_are_wider_than_a_core() {
    let mut tree = TestTree::new().file("/sys/devices/system/cpu/online", "0-7\n");
    for cpu in 0..8 {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
        let cluster = if cpu < 4 { "0-3" } else { "4-7" };
        tree = tree
            .file(&format!("{folder}/package_cpus_list"), "0-7")
            .file(&format!("{folder}/core_cpus_list"), cpu.to_string())
            .file(&format!("{folder}/cluster_cpus_list"), cluster)
            .file(&format!("{folder}/cluster_id"), (cpu / 4).to_string());
    }
    let topology = read(&tree);
    let clusters: Vec<String> =
        topology.clusters.iter().map(|group| format!("{} {}", group.id, group.cpus)).collect();
    assert_eq!(clusters, ["0 0-3", "1 4-7"]);
}

#[test]
fn without_a_sysfs_cpuinfo_is_taken_and_then_stat() {
    let block =
        |cpu: u32, core: u32| format!("processor\t: {cpu}\nphysical id\t: 0\ncore id\t\t: {core}\n\n");
    let cpuinfo = [block(0, 0), block(1, 1), block(2, 0), block(3, 1)].concat();
    let tree = TestTree::new().file("/proc/cpuinfo", cpuinfo).file("/proc/meminfo", "MemTotal: 4 kB\n");
    let topology = read(&tree);
    assert_eq!(
        topology.counts,
        Counts { packages: 1, numa_nodes: 1, llcs: 0, l2_groups: 0, cores: 2, pus: 4 }
    );
    assert_eq!(topology.nodes[0].memory_bytes, Reading::Known(4096));

    let topology =
        read(&TestTree::new().file("/proc/stat", "cpu  1 2\ncpu0 1 2\ncpu1 1 2\ncpux 1\nintr 5\n"));
    assert_eq!((topology.counts.pus, topology.counts.packages), (2, 1));
    assert!(topology.oddities.iter().any(|oddity| oddity.contains("/proc/stat")));

    let topology = read(&TestTree::new());
    assert_eq!(topology.counts, Counts::default());
    assert!(topology.oddities.iter().any(|oddity| oddity.starts_with("No CPU is described")));
}

#[test]
fn hybrid_types_tiers_and_a_null_mask_are_read() {
    let tree = TestTree::new()
        .file("/sys/devices/system/cpu/online", "0-3\n")
        .file("/sys/devices/system/cpu/nohz_full", "  (null)\n")
        .file("/sys/devices/system/cpu/isolated", "\n")
        .file("/sys/devices/cpu_core/cpus", "0-1\n")
        .file("/sys/devices/cpu_atom/cpus", "2-3\n")
        .file("/sys/devices/system/node/node0/cpumap", "f\n")
        .file("/sys/devices/system/node/node0/distance", "10 20\n")
        .file("/sys/devices/system/node/node3/distance", "20 10\n")
        .file("/sys/devices/system/node/node3/meminfo", "Node 3 MemTotal:       2048 kB\n")
        .file("/sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "3\n");
    let topology = read(&tree);
    let types: Vec<&str> = topology.core_types.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(types, ["core", "atom"]);
    assert_eq!(topology.nohz_full, Reading::Known(CpuSet::new()));
    assert_eq!(topology.isolated, Reading::Known(CpuSet::new()));
    assert_eq!((topology.nodes[1].id, topology.nodes[1].cpus.is_empty()), (3, true));
    assert_eq!(topology.nodes[1].memory_tier, Reading::Known(22));
    assert_eq!(topology.nodes[1].memory_bytes, Reading::Known(2 << 20));
    assert_eq!(topology.nodes[0].distances, Reading::Known(vec![10, 20]));
}

#[test]
fn lying_files_are_reported_and_the_groups_stay_whole() {
    let tree = TestTree::new()
        .file("/sys/devices/system/cpu/online", "0-2\n")
        .file("/sys/devices/system/cpu/cpu0/topology/core_cpus", "2\n")
        .file("/sys/devices/system/cpu/cpu1/topology/core_cpus", "82\n")
        .file("/sys/devices/system/cpu/cpu2/topology/core_cpus", [0xff, 0x00, 0xfe])
        .file("/sys/devices/system/cpu/cpu2/cache/index0/level", "high\n");
    let topology = read(&tree);
    assert_eq!(topology.counts.cores, 3);
    let reports =
        |what: &str| assert!(topology.oddities.iter().any(|it| it.contains(what)), "{:?}", topology.oddities);
    reports("CPU 0: the CPU itself is missing in");
    reports("CPU 1: offline CPUs are listed in");
    reports("CPU 0: other CPUs disagree");
    reports("cpu2/topology/core_cpus: found");
    reports("CPU 2: caches without a readable level");
}
