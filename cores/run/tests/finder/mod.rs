//! The finder of shared lines, on a program that has some.

mod shapes;

use crate::alone;
use lowlat_cache::finder::{Code, End, FinderRecord, Sharing};
use lowlat_cores_run::cache::finder::{FinderError, run};
use lowlat_host_run::Root;
use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The planted program. Without a C compiler, or without permission, a test is skipped.
struct Planted {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// Kind of each line: planted, innocent or common.
    lines: BTreeMap<u64, String>,
    /// Its descriptors before it was watched.
    descriptors: Vec<String>,
    _folder: TempDir,
}

impl Planted {
    fn start(test: &str, argument: Option<&str>) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("planted");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/finder/planted.c");
        let built =
            Command::new("cc").args(["-O1", "-g", "-pthread", "-o"]).arg(&program).arg(source).status();
        if !built.is_ok_and(|status| status.success()) {
            eprintln!("skipped: {test}: no C compiler");
            return None;
        }
        let mut command = Command::new(&program);
        command.args(argument).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut planted =
            Self { child, input, output, lines: BTreeMap::new(), descriptors: Vec::new(), _folder: folder };
        if argument != Some("exec") {
            planted.read_lines();
        }
        planted.descriptors = planted.open();
        Some(planted)
    }

    /// Lists the program's open descriptors.
    fn open(&self) -> Vec<String> {
        let entries = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let mut all: Vec<String> = entries
            .filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok())
            .map(|link| link.to_string_lossy().into_owned())
            .collect();
        all.sort();
        all
    }

    fn read_lines(&mut self) {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "it ended early");
            let Some((kind, address)) = line.trim().split_once(" 0x") else { return };
            let line = u64::from_str_radix(address, 16).unwrap() & !63;
            self.lines.insert(line, kind.to_owned());
        }
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// CPU time of its sender and its receiver, in seconds.
    fn ran_s(&self) -> f64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap().flatten();
        let read = |task: &Path, name| std::fs::read_to_string(task.join(name)).unwrap_or_default();
        let ran_ns = tasks.map(|task| task.path()).filter_map(|task| {
            let is_one = ["sender", "receiver"].contains(&read(&task, "comm").trim());
            read(&task, "schedstat").split(' ').next().filter(|_| is_one)?.parse::<f64>().ok()
        });
        ran_ns.sum::<f64>() / 1e9
    }

    /// Its counts of the first planted line.
    fn counts(&mut self) -> (u64, u64) {
        self.input.as_mut().unwrap().write_all(b"\n").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let (sent, received) = line.trim().split_once(' ').unwrap();
        (sent.parse().unwrap(), received.parse().unwrap())
    }

    /// Asserts that it still works, then ends it.
    fn finish(mut self) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        assert!(status.contains("TracerPid:\t0\n"), "{status}");
        assert_eq!(self.open(), self.descriptors, "a descriptor was left");
        let before = self.counts();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            let now = self.counts();
            if now.0 > before.0 && now.1 > before.1 {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(rest.ends_with("right\n"), "{rest}");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Watches it; `None` if that is not permitted here.
fn watch(test: &str, pid: u32, duration: Duration, stop: &AtomicBool) -> Option<FinderRecord> {
    is_measured(test, run(&Root::live(), pid, false, duration, stop, &|_| {}))
}

/// Watches it, and its children if `has_children`; with `is_hasty` until a shared line was seen.
fn watch_hastily(
    test: &str,
    (pid, has_children): (u32, bool),
    is_hasty: bool,
    duration: Duration,
) -> Option<FinderRecord> {
    let stop = AtomicBool::new(false);
    // Relaxed: orders nothing.
    let say = |said: &str| {
        stop.fetch_or(is_hasty && !said.ends_with(" 0 lines shared"), Ordering::Relaxed);
    };
    is_measured(test, run(&Root::live(), pid, has_children, duration, &stop, &say))
}

fn is_measured(test: &str, record: Result<FinderRecord, FinderError>) -> Option<FinderRecord> {
    match record {
        Ok(record) => Some(record),
        Err(FinderError::Breakpoints { source, .. }) => {
            eprintln!("skipped: {test}: {source}");
            None
        }
        Err(FinderError::Watch(error)) if !rustix::process::geteuid().is_root() => {
            eprintln!("skipped: {test}: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn falsely_shared(record: &FinderRecord) -> Vec<u64> {
    let found = record.findings().into_iter().filter(|finding| finding.sharing != Sharing::True);
    found.map(|finding| finding.line).collect()
}

#[test]
fn planted_lines_are_found_and_innocent_ones_are_not() {
    let _alone = alone();
    let test = "planted_lines_are_found";
    let Some(planted) = Planted::start(test, None) else { return };
    // Longer where other work leaves the program's threads little time, and fewer where they rarely run at the same time;
    // wrong names are never excused.
    let (mut right, mut last, mut wanted) = (BTreeSet::<u64>::new(), None, 18);
    let mut variables = BTreeSet::new();
    for seconds in [6, 20, 60, 60] {
        let (duration, ran_s) = (Duration::from_secs(seconds), planted.ran_s());
        let Some(record) = watch(test, planted.pid(), duration, &AtomicBool::new(false)) else { return };
        let found = falsely_shared(&record);
        let is_planted = |line: &u64| planted.lines.get(line).is_some_and(|of| of == "planted");
        let (of_this, wrong): (Vec<u64>, Vec<u64>) = found.iter().partition(|line| is_planted(line));
        right.extend(&of_this);
        let (found_count, wrong) = (right.len(), wrong.len());
        let both_share = ((planted.ran_s() - ran_s) / 2.0 / duration.as_secs_f64()).powi(2);
        wanted = if both_share < 0.25 { 3 } else { 18 };
        eprintln!(
            "{} of 20 found in {seconds} s, {found_count} in all, {wrong} wrong; waited {:.3} of the time; both \
             threads ran {both_share:.2} of it, so {wanted} are expected",
            of_this.len(),
            record.stalled_share()
        );
        assert!(wrong <= 1, "{found:x?}\n{:x?}\n{record:x?}", planted.lines);
        let named = record.places.iter().filter(|place| place.is_variable);
        variables.extend(named.map(|place| place.name.clone()));
        last = Some(record);
        if right.len() >= 18 {
            break;
        }
    }
    let record = last.unwrap();
    assert!(right.len() >= wanted, "{:x?}\n{record:x?}", planted.lines);
    assert!(record.threads.iter().any(|thread| thread.name == "sender"));
    let is_global = |name: &String| (0..6).any(|number| *name == format!("near_globals[{number}].received"));
    assert!(variables.iter().any(is_global), "{variables:?}");
    let is_code = |code: &Code| code.function == "sender" && code.line.starts_with("planted.c:");
    assert!(record.code.iter().any(is_code), "{:?}", record.code);
    planted.finish();
}

#[test]
fn a_program_that_ends_or_is_left_early_gives_what_was_seen() {
    // A process that another test is just starting has this one's breakpoints until it runs its own program.
    let _alone = alone();
    let test = "a_program_that_ends";
    let Some(mut planted) = Planted::start(test, None) else { return };
    let stop = AtomicBool::new(false);
    let pid = planted.pid();
    let record = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(test, pid, Duration::from_secs(600), &stop));
        thread::sleep(Duration::from_secs(1));
        // Relaxed: orders nothing.
        stop.store(true, Ordering::Relaxed);
        watching.join().unwrap()
    });
    let Some(record) = record else { return };
    assert!(record.end == End::Interrupted && record.caught_count > 0, "{record:?}");
    let input = planted.input.take();
    let record = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(test, pid, Duration::from_secs(600), &AtomicBool::new(false)));
        thread::sleep(Duration::from_secs(2));
        drop(input);
        watching.join().unwrap()
    });
    let Some(record) = record else { return };
    assert_eq!(record.end, End::Ended);
    let mut rest = String::new();
    planted.output.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("right\n"), "{rest}");
}

#[test]
fn a_program_that_replaces_itself_or_filters_its_calls_is_watched() {
    let _alone = alone();
    let test = "a_program_that_replaces_itself";
    for argument in ["exec", "filter"] {
        let Some(mut planted) = Planted::start(test, Some(argument)) else { return };
        let pid = planted.pid();
        let mut planted_found = 0;
        // Longer where other work leaves both threads one CPU.
        for seconds in [3, 10, 60] {
            let duration = Duration::from_secs(seconds);
            let Some(record) = watch_hastily(test, (pid, false), seconds == 3, duration) else {
                return;
            };
            if argument == "exec" && planted.lines.is_empty() {
                planted.read_lines();
            }
            let found = falsely_shared(&record);
            planted_found =
                found.iter().filter(|line| planted.lines.get(line).is_some_and(|of| of == "planted")).count();
            if planted_found > 0 {
                break;
            }
        }
        assert!(planted_found > 0, "{argument}");
        planted.finish();
    }
}

#[test]
fn what_cannot_be_watched_is_refused_with_a_hint() {
    let refused =
        |pid| run(&Root::live(), pid, false, Duration::from_secs(1), &AtomicBool::new(false), &|_| {});
    for (pid, cause) in [(0x3fff_fff0, "no such process"), (2, "no memory of its own")] {
        let error = refused(pid).unwrap_err().to_string();
        if error.contains("breakpoints") {
            eprintln!("skipped: what_cannot_be_watched: {error}");
            return;
        }
        assert!(error.contains(cause) && error.contains("hint:"), "{error}");
    }
}

#[test]
fn a_sleep_is_resumed_where_it_was() {
    let begun = Instant::now();
    let mut child = Command::new("sleep").arg("3").spawn().unwrap();
    thread::sleep(Duration::from_millis(300));
    let record = watch("a_sleep_is_resumed", child.id(), Duration::from_secs(1), &AtomicBool::new(false));
    assert!(child.wait().unwrap().success());
    let Some(record) = record else { return };
    assert_eq!(record.findings(), []);
    assert!(begun.elapsed() >= Duration::from_secs(3), "its system call was interrupted");
}
