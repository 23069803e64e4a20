//! Trees of real hosts, compared with hwloc's `lstopo-no-graphics` on the same tree.
//!
//! The archives are beside the checkout (../shared/topologies) or where `LOWLAT_TOPOLOGIES` says. `lstopo`
//! runs with `--disallowed`: it then counts the online CPUs, as lowlat does, and not only those that the
//! control group of the process that made the archive allowed.

use lowlat_catalogue::CATALOGUE;
use lowlat_host::{CpuSet, Topology, topology::Counts};
use lowlat_sys::{
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

/// The counts of lstopo, or `None` if it is not installed.
fn lstopo(host: &Path) -> Option<Counts> {
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
    let xml = String::from_utf8(output.stdout).expect("XML in UTF-8");
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
            }
            () if of("20em64t-hybrid") => {
                let clusters: Vec<String> = topology.clusters.iter().map(|c| c.cpus.to_string()).collect();
                assert_eq!(clusters, ["12-15", "16-19"], "{name}");
                assert!(topology.has_smt(), "{name}");
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
        let options = CaptureOptions { is_redacted: false };
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

/// What the type promises for every topology.
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
