//! Trees of real hosts, compared with hwloc's `lstopo-no-graphics` on the same tree.
//!
//! The archives are beside the checkout (../shared/topologies) or where `LOWLAT_TOPOLOGIES` says. `lstopo`
//! runs with `--disallowed`: it then counts the online CPUs, as lowlat does, and not only those that the
//! control group of the process that made the archive allowed.

use lowlat_catalogue::CATALOGUE;
use lowlat_host::{CpuSet, Topology, topology::Counts};
use lowlat_host_run::{
    Root,
    capture::{CaptureOptions, capture},
    snapshot,
};
use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Command,
};

const LSTOPO: &str = "lstopo-no-graphics";

/// Reports what is not tested. Written past the test harness, which hides what `eprintln` prints from passing
/// tests.
fn skip(what: &str) {
    writeln!(io::stderr(), "skipped: {what}").expect("a standard error");
}

/// Location of an archive: in place, or unpacked.
fn archives() -> Option<Vec<PathBuf>> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/topologies");
    let folder = std::env::var_os("LOWLAT_TOPOLOGIES").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        skip(&format!("no archives in {} (LOWLAT_TOPOLOGIES names another folder)", folder.display()));
        return None;
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.to_string_lossy().ends_with(".tar.bz2"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} holds no archive", folder.display());
    Some(paths)
}

/// Unpacks an archive and returns the one directory in it that is the host's root.
fn unpack(archive: &Path, into: &Path) -> PathBuf {
    let file = File::open(archive).expect("the archive opens");
    tar::Archive::new(bzip2::read::MultiBzDecoder::new(file)).unpack(into).expect("the archive unpacks");
    let mut folders = std::fs::read_dir(into).expect("the unpacked folder");
    folders.next().expect("one folder").expect("one folder").path()
}

fn read(path: &Path) -> Topology {
    snapshot::read(&Root::open(path).expect("a host root"), CATALOGUE).topology
}

/// The XML of lstopo, or `None` if it is not installed.
fn lstopo_xml(host: &Path) -> Option<String> {
    let output = Command::new(LSTOPO)
        .args(["--if", "fsroot", "--disallowed", "--of", "xml", "--input"])
        .arg(host)
        .env("HWLOC_COMPONENTS", "linux,stop")
        .env("HWLOC_HIDE_ERRORS", "2")
        .output();
    let output = match output {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        output => output.expect("lstopo runs"),
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("XML in UTF-8"))
}

/// The counts of lstopo, or `None` if it is not installed.
fn lstopo(host: &Path) -> Option<Counts> {
    let xml = lstopo_xml(host)?;
    let count = |kind: &str| xml.matches(&format!("<object type=\"{kind}\"")).count();
    let (l2_groups, l3) = (count("L2Cache"), count("L3Cache"));
    Some(Counts {
        packages: count("Package"),
        numa_nodes: count("NUMANode"),
        llcs: if l3 > 0 { l3 } else { l2_groups },
        l2_groups,
        cores: count("Core"),
        pus: count("PU"),
    })
}

#[test]
fn counts_agree_with_lstopo() {
    let mut is_compared = true;
    for archive in archives().unwrap_or_default() {
        let name = archive.display();
        let in_place = read(&archive);
        let folder = tempfile::tempdir().expect("a temporary folder");
        let host = unpack(&archive, folder.path());
        assert_eq!(in_place, read(&host), "{name}: read in place and unpacked");
        assert_promises(&in_place);
        match lstopo(&host) {
            Some(theirs) => assert_eq!(in_place.counts, theirs, "{name}: ours and lstopo's\n{in_place:#?}"),
            None => is_compared = false,
        }
    }
    if !is_compared {
        skip(&format!("comparison with {LSTOPO}, which is not installed (Debian: hwloc-nox)"));
    }
}

#[test]
fn what_the_archives_are_known_for_is_seen() {
    for archive in archives().unwrap_or_default() {
        let topology = read(&archive);
        let name = archive.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let of = |part: &str| name.contains(part);
        match () {
            () if of("128arm-2pa2n8cluster4co") => {
                assert_eq!(topology.clusters.len(), 32, "{name}");
                assert_eq!(topology.clusters[1].cpus.to_string(), "4-7", "{name}");
                assert!(topology.core_types.is_empty(), "{name}: one capacity");
            }
            () if of("20em64t-hybrid") => {
                let clusters: Vec<String> = topology.clusters.iter().map(|c| c.cpus.to_string()).collect();
                assert_eq!(clusters, ["12-15", "16-19"], "{name}");
                assert!(topology.has_smt(), "{name}");
                // The archive lacks cpu_core and cpu_atom; cores 4 and 5 are favoured and of no other kind.
                assert_eq!(topology.efficiency_cpus().to_list(), "12-19", "{name}");
            }
            () if of("48amd64") => {
                let ids: Vec<u32> = topology.nodes.iter().map(|node| node.id).collect();
                assert!(
                    ids.windows(2).any(|pair| pair[1] > pair[0] + 1),
                    "{name}: holes expected in {ids:?}"
                );
            }
            () if of("fakeheteromemtiers") => {
                assert!(topology.nodes.iter().any(|node| node.cpus.is_empty()), "{name}: memory-only nodes");
            }
            () if of("offline-cpu0") => {
                assert_eq!(topology.online.lowest(), Some(4), "{name}");
                assert!(topology.offline.contains(0), "{name}");
            }
            () if of("16em64t-4s2c2t-offlines") => {
                assert_eq!(topology.offline.to_string(), "2,5,13-14", "{name}");
            }
            () => {}
        }
    }
}

#[test]
fn captures_of_the_archives_give_the_same_snapshots() {
    for archive in archives().unwrap_or_default() {
        let name = archive.display();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let out = folder.path().join("capture.tar.gz");
        let root = Root::open(&archive).expect("a host root");
        let options = CaptureOptions { is_redacted: false, role: None };
        capture(&root, CATALOGUE, &out, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
        let original = snapshot::read(&root, CATALOGUE);
        let mut captured = snapshot::read(&Root::open(&out).expect("the capture opens"), CATALOGUE);
        captured.origin = original.origin.clone();
        assert_eq!(captured, original, "{name}");

        capture(&root, CATALOGUE, &out, &CaptureOptions::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let redacted = snapshot::read(&Root::open(&out).expect("the capture opens"), CATALOGUE);
        assert_eq!(redacted.topology, original.topology, "{name}");
    }
}

/// Asserts what the type promises for every topology.
fn assert_promises(topology: &Topology) {
    for groups in [&topology.packages, &topology.dies, &topology.cores] {
        let mut seen = CpuSet::new();
        for group in groups {
            assert!(group.cpus.is_disjoint(&seen), "{groups:?}");
            seen = seen.union(&group.cpus);
        }
        assert_eq!(seen, topology.online);
    }
}

/// A host to be written as a tree: its shape, and how its CPUs are numbered.
#[derive(Debug)]
struct Shape {
    packages: u32,
    nodes_per_package: u32,
    cores_per_node: u32,
    threads: u32,
    cores_per_l2: u32,
    cores_per_l3: u32,
    /// True if the threads of a core have neighbouring numbers; otherwise the second threads follow all first ones.
    is_adjacent: bool,
    offline: CpuSet,
    /// A further node of memory without CPUs.
    has_memory_only: bool,
    has_side_caches: bool,
}

impl Shape {
    /// One of many shapes: the bits of a linear congruential generator choose.
    fn of(seed: u64) -> Self {
        let mut state = seed;
        let mut below = move |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from((state >> 33) % end).expect("a small number")
        };
        let mut power = |end| 1 << below(end);
        let mut shape = Self {
            packages: power(3),
            nodes_per_package: power(2),
            cores_per_node: power(4),
            threads: power(2),
            cores_per_l2: power(2),
            cores_per_l3: power(4),
            is_adjacent: power(2) == 2,
            has_memory_only: power(2) == 2,
            has_side_caches: power(2) == 2,
            offline: CpuSet::new(),
        };
        shape.cores_per_l3 = shape.cores_per_l3.min(shape.cores_per_node);
        shape.cores_per_l2 = shape.cores_per_l2.min(shape.cores_per_l3);
        let cpus = shape.cores() * shape.threads;
        shape.offline = (1..cpus).filter(|_| below(8) == 0).collect();
        shape
    }

    fn cores(&self) -> u32 {
        self.packages * self.nodes_per_package * self.cores_per_node
    }

    /// The online CPUs of some neighbouring cores.
    fn cpus(&self, first: u32, count: u32) -> CpuSet {
        let of = |core: u32, thread: u32| {
            if self.is_adjacent { core * self.threads + thread } else { thread * self.cores() + core }
        };
        let all =
            (first..first + count).flat_map(|core| (0..self.threads).map(move |thread| of(core, thread)));
        all.collect::<CpuSet>().difference(&self.offline)
    }

    /// Writes the files in which the kernel describes such a host.
    fn write(&self, host: &Path) {
        let file = |path: String, text: String| {
            let path = host.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
            std::fs::write(path, text + "\n").expect("the file is written");
        };
        let sets = |folder: &str, names: &[&str], cpus: &CpuSet| {
            for name in names {
                let list =
                    if name.ends_with("map") { name.replace("map", "list") } else { format!("{name}_list") };
                file(format!("{folder}/{name}"), cpus.to_mask());
                file(format!("{folder}/{list}"), cpus.to_list());
            }
        };
        let system = "sys/devices/system";
        let online = self.cpus(0, self.cores());
        let all = online.union(&self.offline).to_list();
        for (name, list) in [("online", online.to_list()), ("possible", all.clone()), ("present", all)] {
            file(format!("{system}/cpu/{name}"), list);
        }
        file("proc/cpuinfo".into(), "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu lm".into());
        for core in 0..self.cores() {
            let group = |width: u32| self.cpus(core / width * width, width);
            let per_package = self.nodes_per_package * self.cores_per_node;
            for cpu in group(1).iter() {
                let folder = format!("{system}/cpu/cpu{cpu}");
                file(format!("{folder}/topology/physical_package_id"), (core / per_package).to_string());
                file(format!("{folder}/topology/core_id"), (core % per_package).to_string());
                sets(&format!("{folder}/topology"), &["core_cpus", "thread_siblings"], &group(1));
                sets(&format!("{folder}/topology"), &["package_cpus", "core_siblings"], &group(per_package));
                let caches =
                    [("Data", 1, 1), ("Unified", 2, self.cores_per_l2), ("Unified", 3, self.cores_per_l3)];
                for (index, (kind, level, width)) in caches.into_iter().enumerate() {
                    let cache = format!("{folder}/cache/index{index}");
                    file(format!("{cache}/type"), kind.into());
                    file(format!("{cache}/level"), level.to_string());
                    file(format!("{cache}/size"), format!("{}K", 32 << (3 * level)));
                    sets(&cache, &["shared_cpu_map"], &group(width));
                }
            }
        }
        for cpu in self.offline.iter() {
            file(format!("{system}/cpu/cpu{cpu}/online"), "0".into());
        }
        let with_cpus = self.packages * self.nodes_per_package;
        let count = with_cpus + u32::from(self.has_memory_only);
        file(format!("{system}/node/online"), CpuSet::first(count).to_list());
        for node in 0..count {
            let folder = format!("{system}/node/node{node}");
            let cores = if node < with_cpus { self.cores_per_node } else { 0 };
            sets(&folder, &["cpumap"], &self.cpus(node * self.cores_per_node, cores));
            file(format!("{folder}/meminfo"), format!("Node {node} MemTotal:       1048576 kB"));
            let distance = |to| if to == node { "10" } else { "20" };
            file(format!("{folder}/distance"), (0..count).map(distance).collect::<Vec<_>>().join(" "));
            if self.has_side_caches && node < with_cpus {
                file(format!("{folder}/memory_side_cache/index1/size"), "17179869184".into());
            }
        }
    }
}

/// The sets of lstopo's objects of a type, sorted.
fn sets_of_lstopo(xml: &str, kind: &str) -> Vec<String> {
    let objects = xml.split("<object ").filter(|object| object.starts_with(&format!("type=\"{kind}\"")));
    let set = |object: &str| -> String {
        let (_, rest) = object.split_once(" cpuset=\"").expect("an object with CPUs");
        let words = rest.split('"').next().unwrap_or_default().split(',').rev();
        let word = |(at, word): (u32, &str)| {
            let bits = u32::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(0);
            (0..32).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| at * 32 + bit)
        };
        (0..).zip(words).flat_map(word).collect::<CpuSet>().to_list()
    };
    let mut sets: Vec<String> = objects.map(set).collect();
    sets.sort();
    sets
}

/// Not only the counts: every set of CPUs, on hosts of all shapes.
#[test]
fn sets_of_generated_hosts_are_those_of_lstopo() {
    for seed in 0..12 {
        let shape = Shape::of(seed);
        let folder = tempfile::tempdir().expect("a temporary folder");
        shape.write(folder.path());
        let ours = read(folder.path());
        assert_promises(&ours);
        let Some(xml) = lstopo_xml(folder.path()) else {
            return skip(&format!("sets of {LSTOPO}, which is not installed (Debian: hwloc-nox)"));
        };
        let sorted = |sets: Vec<&CpuSet>| {
            let mut lists: Vec<String> = sets.into_iter().map(CpuSet::to_list).collect();
            lists.sort();
            lists
        };
        let caches =
            |level| ours.caches.iter().filter(|cache| cache.level == level).map(|it| &it.cpus).collect();
        for (kind, sets) in [
            ("Package", ours.packages.iter().map(|it| &it.cpus).collect()),
            ("Core", ours.cores.iter().map(|it| &it.cpus).collect()),
            ("L1Cache", caches(1)),
            ("L2Cache", caches(2)),
            ("L3Cache", caches(3)),
        ] {
            assert_eq!(sorted(sets), sets_of_lstopo(&xml, kind), "{kind} of {shape:?}, seed {seed}");
        }
        // This version of lstopo shows no memory-side caches.
        let side_caches =
            ours.nodes.iter().filter(|node| node.side_cache_bytes.known() == Some(&(16 << 30))).count();
        let expected = if shape.has_side_caches { shape.packages * shape.nodes_per_package } else { 0 };
        assert_eq!(side_caches, expected as usize, "{shape:?}, seed {seed}");
        assert_eq!(ours.counts.numa_nodes, sets_of_lstopo(&xml, "NUMANode").len(), "{shape:?}, seed {seed}");
        let of_nodes =
            ours.nodes.iter().filter(|node| !node.cpus.is_empty()).map(|node| &node.cpus).collect();
        let theirs = sets_of_lstopo(&xml, "NUMANode");
        let ours = sorted(of_nodes);
        assert!(ours.iter().all(|cpus| theirs.contains(cpus)), "{ours:?} and {theirs:?}, seed {seed}");
    }
}
