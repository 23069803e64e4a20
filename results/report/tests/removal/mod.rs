//! The removal matrix: what is not read is never "none", "0" or good.
//!
//! For each captured host, each file and directory that lowlat reads there answers otherwise, one at a time: it is
//! absent, denied, empty or garbage. Then no verdict gets better, no score rises, no exit code gets milder, and no
//! sentence states a number or a "no" that only this file could give.
//!
//! `LOWLAT_REMOVAL=all` tries all hosts, all files and all answers, which takes a minute if it is optimized. Otherwise
//! a part is tried on the project's own hosts.

mod excuses;
mod said;

use excuses::EXCUSES;
use lowlat_host_run::{Root, root::Replacement};
use said::Said;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Text that no file of a kernel contains: letters only, so that no number comes from it.
const GARBAGE: &str = "?garbage!\n";

/// Ways in which a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    Absent,
    Denied,
    Empty,
    Garbage,
}

impl Way {
    const ALL: [Self; 4] = [Self::Absent, Self::Denied, Self::Empty, Self::Garbage];

    /// True if a directory can answer like this. Without the directories that contain all others there is no host to
    /// read.
    fn fits_folder(self, pattern: &str) -> bool {
        match self {
            Self::Absent => !matches!(pattern, "/proc" | "/sys/devices" | "/sys/devices/system/cpu"),
            Self::Denied => true,
            Self::Empty | Self::Garbage => false,
        }
    }

    fn replacement(self) -> Replacement {
        match self {
            Self::Absent => Replacement::Absent,
            Self::Denied => Replacement::Denied,
            Self::Empty => Replacement::Content(Vec::new()),
            Self::Garbage => Replacement::Content(GARBAGE.into()),
        }
    }
}

fn archives(directory: &Path, ending: &str) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let named = |entry: std::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().strip_suffix(ending)?.to_owned();
        Some((name, entry.path()))
    };
    let mut found: Vec<_> = entries.filter_map(named).collect();
    found.sort();
    found
}

fn hosts(is_all: bool) -> Vec<(String, PathBuf)> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut hosts = archives(&here.join("../../fixtures/hosts"), ".tar.gz");
    assert!(hosts.len() >= 4, "the captured hosts of fixtures/hosts");
    if !is_all {
        return hosts;
    }
    let beside = std::env::var_os("LOWLAT_TOPOLOGIES")
        .map_or_else(|| here.join("../../../shared/topologies"), PathBuf::from);
    let others = archives(&beside, ".tar.bz2");
    if others.is_empty() {
        eprintln!(
            "skipped: removals on other people's captures: no archives beside the checkout (LOWLAT_TOPOLOGIES names them)"
        );
    }
    hosts.extend(others);
    hosts
}

/// A path with every number as `#`: siblings, such as a file of each CPU, have one pattern.
fn pattern(path: &str) -> String {
    let mut text = String::new();
    for c in path.chars() {
        if !c.is_ascii_digit() {
            text.push(c);
        } else if !text.ends_with('#') {
            text.push('#');
        }
    }
    text
}

/// The paths of a pattern that answer otherwise together: one in the middle, and all.
fn choices(paths: &[String]) -> Vec<&[String]> {
    let middle = paths.len() / 2;
    let one = &paths[middle..=middle];
    if paths.len() == 1 { vec![one] } else { vec![one, paths] }
}

/// Faults: the text of each, the number of removals that show it, and one of them.
type Seen = BTreeMap<String, (usize, String)>;

fn check(name: &str, root: &mut Root, is_all: bool, seen: &mut Seen, used: &mut BTreeSet<usize>) -> usize {
    let (base, paths, folders) = root.paths_read(Said::read);
    let mut patterns: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in paths {
        patterns.entry(pattern(&path)).or_default().push(path);
    }
    let mut tried = 0;
    for (pattern, paths) in &patterns {
        for chosen in choices(paths) {
            for way in Way::ALL {
                let is_folder = folders.contains(&paths[0]);
                if is_folder && !way.fits_folder(pattern) || !is_all && !is_in_part(pattern, chosen, way) {
                    continue;
                }
                tried += 1;
                let mut taken: Vec<_> =
                    chosen.iter().map(|path| root.replace(path, way.replacement())).collect();
                let now = Said::read(root);
                while let Some(last) = taken.pop() {
                    root.restore(last);
                }
                for fault in base.faults_of(&now) {
                    let excuse =
                        EXCUSES.iter().position(|excuse| excuse.fits(pattern, is_folder, way, &fault));
                    if let Some(excuse) = excuse {
                        used.insert(excuse);
                        continue;
                    }
                    let number = if chosen.len() == 1 { "one" } else { "all" };
                    let place = format!("{name}: {number} of {pattern}: {way:?}");
                    seen.entry(fault).or_insert((0, place)).0 += 1;
                }
            }
        }
    }
    tried
}

/// The part that each run of the tests tries: a third of the patterns, each with one of the answers.
fn is_in_part(pattern: &str, chosen: &[String], way: Way) -> bool {
    let sum = pattern.bytes().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    chosen.len() == 1 && Way::ALL.get(sum % 12) == Some(&way)
}

#[test]
fn what_is_not_read_is_never_good_and_never_none() {
    let is_all = std::env::var("LOWLAT_REMOVAL").is_ok_and(|value| value == "all");
    let wanted = std::env::var("LOWLAT_REMOVAL_HOST").unwrap_or_default();
    let hosts: Vec<_> = hosts(is_all).into_iter().filter(|(name, _)| name.contains(&wanted)).collect();
    let next = AtomicUsize::new(0);
    let result = Mutex::new((Seen::new(), BTreeSet::new(), 0));
    let work = || {
        // Relaxed: each number is taken once, and nothing else depends on it.
        while let Some((name, path)) = hosts.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut root = Root::open(path).unwrap_or_else(|error| panic!("{error}"));
            let (mut seen, mut used) = (Seen::new(), BTreeSet::new());
            let tried = check(name, &mut root, is_all, &mut seen, &mut used);
            eprintln!("{name}: {tried} removals");
            let mut result = result.lock().expect("no check panicked");
            for (fault, (count, place)) in seen {
                result.0.entry(fault).or_insert((0, place)).0 += count;
            }
            result.1.extend(used);
            result.2 += tried;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(work);
        }
    });
    let (seen, used, tried) = result.into_inner().expect("no check panicked");
    let mut text = String::new();
    for (fault, (count, place)) in &seen {
        let _ = writeln!(text, "{fault}\n    {count} removals, such as {place}");
    }
    assert!(seen.is_empty(), "{} faults in {tried} removals:\n{text}", seen.len());
    if is_all && wanted.is_empty() {
        let idle: Vec<_> = EXCUSES
            .iter()
            .enumerate()
            .filter(|(place, _)| !used.contains(place))
            .map(|(_, excuse)| excuse)
            .collect();
        assert!(idle.is_empty(), "excuses that nothing needs: {idle:#?}");
    }
}
