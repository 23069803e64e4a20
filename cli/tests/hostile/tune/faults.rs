//! Apply and rollback with a fault at a system call: the process is killed there, or the call fails as on a full or broken disk.
//!
//! After each of them a rollback must restore the tree byte for byte; and a rollback that reports success must have
//! done so. Faults are injected by strace(1). A run takes a sample of the calls; all of them take some hours:
//!
//! ```text
//! LOWLAT_FAULTS=all cargo test -p lowlat hostile::tune::faults -- --nocapture
//! LOWLAT_FAULTS=200 LOWLAT_FAULTS_SEED=7 cargo test -p lowlat hostile::tune::faults -- --nocapture
//! ```

use super::tree::{Family, Files, Tree, differences, is_root, said};
use crate::common::binary;
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

/// Calls in a sample, for each family and command.
const SAMPLE: usize = 12;
/// Faults at a call, in the syntax of strace.
const FAULTS: [&str; 5] = ["signal=KILL", "error=ENOSPC", "error=EIO", "error=EROFS", "error=EDQUOT"];
/// Calls that files and directories are read and changed with.
const CALLS: [&str; 32] = [
    "close",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "flistxattr",
    "flock",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "getdents64",
    "ioctl",
    "linkat",
    "lseek",
    "mkdir",
    "mkdirat",
    "newfstatat",
    "open",
    "openat",
    "pread64",
    "pwrite64",
    "read",
    "readlink",
    "readlinkat",
    "rename",
    "renameat",
    "statx",
    "symlinkat",
];
/// Those that change something; half of a sample are these.
const CHANGING: [&str; 14] = [
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fdatasync",
    "fsync",
    "ftruncate",
    "linkat",
    "mkdir",
    "mkdirat",
    "pwrite64",
    "rename",
    "renameat",
    "symlinkat",
];
/// Of both kinds, by other names.
const ALSO_CHANGING: [&str; 5] = ["renameat2", "unlink", "unlinkat", "utimensat", "write"];

/// One system call of a run: its name, and how many of that name came before it, counted from 1.
type Call = (String, u32);

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}

fn is_changing(name: &str) -> bool {
    CHANGING.contains(&name) || ALSO_CHANGING.contains(&name)
}

fn can_trace() -> bool {
    let output =
        Command::new("strace").args(["-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "true"]).output();
    match output {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("skipped: tune::faults: strace cannot trace here: {}", said(&output).trim());
            false
        }
        Err(error) => {
            eprintln!("skipped: tune::faults: strace does not run: {error}");
            false
        }
    }
}

fn traced(tree: &Tree, options: &[&str], verb: &str) -> Output {
    let mut command = Command::new("strace");
    command
        .args(["-f", "-qq"])
        .args(options)
        .arg(binary())
        .args(["tune", verb, "--yes", "--root"])
        .arg(tree.root());
    command.stdin(Stdio::null()).output().expect("strace runs")
}

/// The calls of the main thread on files, in order.
fn calls(tree: &Tree, verb: &str) -> Vec<Call> {
    let log = tree.beside("calls");
    traced(tree, &["-o", log.to_str().unwrap()], verb);
    of_main_thread(&log)
}

fn of_main_thread(log: &Path) -> Vec<Call> {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
    let main = text.split_whitespace().next().unwrap_or_default().to_owned();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    let mut calls = Vec::new();
    for line in text.lines() {
        let Some((pid, rest)) = line.split_once(' ') else { continue };
        let Some((name, _)) = rest.trim_start().split_once('(').filter(|(name, _)| !name.contains(' '))
        else {
            continue;
        };
        if pid == main && (CALLS.contains(&name) || is_changing(name)) {
            let count = counts.entry(name).or_default();
            *count += 1;
            calls.push((name.to_owned(), *count));
        }
    }
    calls
}

/// The calls and faults of this run.
fn chosen(calls: &[Call], random: &mut Random) -> Vec<(Call, &'static str)> {
    let wanted = std::env::var("LOWLAT_FAULTS").unwrap_or_else(|_| SAMPLE.to_string());
    if wanted == "all" {
        return calls.iter().flat_map(|call| FAULTS.map(|fault| (call.clone(), fault))).collect();
    }
    let count = wanted.parse().expect("LOWLAT_FAULTS is a number or \"all\"");
    let changing: Vec<&Call> = calls.iter().filter(|(name, _)| is_changing(name)).collect();
    let mut sample = Vec::new();
    for at in 0..count {
        let call = if at % 4 == 0 {
            &calls[random.below(calls.len())]
        } else {
            changing[random.below(changing.len())]
        };
        sample.push((call.clone(), FAULTS[random.below(FAULTS.len())]));
    }
    sample
}

fn seed() -> u64 {
    let given = std::env::var("LOWLAT_FAULTS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()) * 2_654_435_761 + 1);
    println!("LOWLAT_FAULTS_SEED={seed}");
    seed
}

fn inject(tree: &Tree, verb: &str, ((name, count), fault): &(Call, &str)) -> Output {
    let (trace, inject) = (format!("trace={name}"), format!("inject={name}:{fault}:when={count}"));
    traced(tree, &["--seccomp-bpf", "-o", "/dev/null", "-e", &trace, "-e", &inject], verb)
}

#[track_caller]
fn assert_restored(tree: &Tree, start: &Files, what: &str) {
    let output = tree.tune(&["rollback", "--yes"]);
    let left = differences(start, &tree.files());
    assert_eq!(left, Vec::<String>::new(), "{what}: {}", said(&output));
    assert_eq!(output.status.code(), Some(0), "{what}: {}", said(&output));
    assert!(!tree.path("var/lib/lowlat/in-force.json").exists(), "{what}: {}", said(&output));
}

fn apply_with_faults(family: Family) {
    if !is_root() || !can_trace() {
        return;
    }
    let tree = Tree::new(family);
    let start = tree.files();
    let calls = calls(&tree, "apply");
    assert_restored(&tree, &start, "no fault");
    let mut random = Random(seed());
    let (mut ended, mut changed) = (0, 0);
    for fault in chosen(&calls, &mut random) {
        let output = inject(&tree, "apply", &fault);
        let what = format!("{family:?}, apply, {fault:?}: {}", said(&output));
        ended += u32::from(output.status.code().is_none_or(|code| code > 1));
        changed += u32::from(!differences(&start, &tree.files()).is_empty());
        // In half of the cases, the apply is completed before the rollback.
        if random.below(2) == 0 {
            let again = tree.tune(&["apply", "--yes"]);
            assert!(again.status.code().is_some_and(|code| code < 2), "{what}: {}", said(&again));
        }
        assert_restored(&tree, &start, &what);
    }
    println!("{family:?}: {ended} runs of apply ended early, {changed} left a change");
    assert!(ended > 0, "no fault hit");
}

fn rollback_with_faults(family: Family) {
    if !is_root() || !can_trace() {
        return;
    }
    let tree = Tree::new(family);
    let start = tree.files();
    let apply = || {
        let output = tree.tune(&["apply", "--yes"]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    };
    apply();
    let calls = calls(&tree, "rollback");
    let mut random = Random(seed());
    let mut ended = 0;
    for fault in chosen(&calls, &mut random) {
        apply();
        let output = inject(&tree, "rollback", &fault);
        let what = format!("{family:?}, rollback, {fault:?}: {}", said(&output));
        if output.status.code() == Some(0) {
            assert_eq!(
                differences(&start, &tree.files()),
                Vec::<String>::new(),
                "reported as restored: {what}"
            );
        } else {
            ended += 1;
        }
        assert_restored(&tree, &start, &what);
    }
    println!("{family:?}: {ended} runs of rollback ended early");
}

#[test]
fn apply_on_debian() {
    apply_with_faults(Family::Debian);
}

#[test]
fn apply_on_red_hat() {
    apply_with_faults(Family::RedHat);
}

#[test]
fn rollback_on_debian() {
    rollback_with_faults(Family::Debian);
}

#[test]
fn rollback_on_red_hat() {
    rollback_with_faults(Family::RedHat);
}
