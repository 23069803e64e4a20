//! Programs whose threads use memory in one way each.

use super::{falsely_shared, watch_hastily};
use crate::alone;
use lowlat_cache::finder::{AccessRate, FinderRecord};
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A running shape. Ends with the test.
struct Shape {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The line that its threads use.
    line: u64,
}

impl Shape {
    /// `None` without a C compiler, or with a single CPU.
    fn start(name: &str) -> Option<Self> {
        static PROGRAM: OnceLock<Option<TempDir>> = OnceLock::new();
        let folder = PROGRAM.get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/finder/shapes.c");
            let program = folder.path().join("shapes");
            let built =
                Command::new("cc").args(["-O1", "-g", "-pthread", "-o"]).arg(program).arg(source).status();
            built.is_ok_and(|status| status.success()).then_some(folder)
        });
        let Some(folder) = folder else {
            eprintln!("skipped: {name}: no C compiler");
            return None;
        };
        let mut command = Command::new(folder.path().join("shapes"));
        let mut child = command.arg(name).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut shape = Self { child, input, output, line: 0 };
        let address = shape.read();
        if address.is_empty() {
            eprintln!("skipped: {name}: needs two CPUs");
            return None;
        }
        shape.line = u64::from_str_radix(address.trim().trim_start_matches("0x"), 16).unwrap() & !63;
        assert_eq!(shape.read(), "ready\n");
        Some(shape)
    }

    fn read(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Returns what it has counted.
    fn count(&mut self) -> u64 {
        self.input.write_all(b"\n").unwrap();
        self.read().trim().parse().unwrap()
    }

    /// With `is_hasty`, ends once it has seen a shared line. `None` if that is not permitted here.
    fn watch(&self, test: &str, is_hasty: bool, seconds: u64) -> Option<FinderRecord> {
        watch_hastily(test, (self.child.id(), true), is_hasty, Duration::from_secs(seconds))
    }
}

impl Drop for Shape {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Watches a shape until something is found; longer where other work leaves its threads little time.
fn watch_until(
    name: &str,
    is_found: impl Fn(&Shape, &FinderRecord) -> bool,
) -> Option<(Shape, FinderRecord)> {
    let shape = Shape::start(name)?;
    let mut last = None;
    for seconds in [3, 10, 45, 120] {
        let record = shape.watch(name, seconds == 3, seconds)?;
        let is_done = is_found(&shape, &record);
        last = Some(record);
        if is_done {
            return Some((shape, last?));
        }
    }
    panic!("{name}: {:?}", last?);
}

fn is_line_found(shape: &Shape, record: &FinderRecord) -> bool {
    falsely_shared(record).contains(&shape.line)
}

#[test]
fn lines_are_found_beside_idle_threads_in_shared_memory_and_with_readers() {
    let _alone = alone();
    for name in ["idle", "shared", "forked", "readers", "regression", "huge"] {
        // The second element of an array that starts at the sixth word of a line: its first fields are read, those of
        // the one before it are written.
        let is_found = |shape: &Shape, record: &FinderRecord| {
            is_line_found(shape, record)
                || (name == "regression" && falsely_shared(record).contains(&(shape.line + 64)))
        };
        let Some((_shape, record)) = watch_until(name, is_found) else { return };
        assert!(record.processes.len() == if name == "forked" { 2 } else { 1 }, "{record:?}");
    }
}

#[test]
fn a_rate_is_that_of_the_clock_or_a_least_one() {
    let _alone = alone();
    for (name, per_second) in [("slow", 1_000.0), ("bursts", 1_000.0)] {
        let pace_of = |shape: &Shape, record: &FinderRecord| -> Option<(AccessRate, AccessRate)> {
            let found = record.findings().into_iter().find(|finding| finding.line == shape.line)?;
            let pace = |at: u64| {
                let field = found.fields.iter().find(|field| field.address == shape.line + at)?;
                field.users[0].pace
            };
            Some((pace(0)?, pace(8)?))
        };
        let Some(shape) = Shape::start(name) else { return };
        let Some(record) = shape.watch(name, false, 4) else { return };
        // Bursts are often not met, and cost nothing.
        let Some((fast, slow)) = pace_of(&shape, &record) else { continue };
        assert!(fast.is_more, "{fast:?}");
        // A window sees it 0 or 1 times, or a burst of which it is not known how much more there was.
        assert!(slow.per_second < per_second * if slow.is_more { 8.0 } else { 4.0 }, "{name}: {slow:?}");
    }
}

#[test]
fn lines_without_conflicts_are_not_found() {
    for name in ["clean", "only_read", "one_cpu", "turns"] {
        let Some(shape) = Shape::start(name) else { return };
        let Some(record) = shape.watch(name, false, 2) else { return };
        assert!(falsely_shared(&record).is_empty() && record.suspects().is_empty(), "{name}: {record:?}");
    }
}

#[test]
fn a_line_that_moves_is_suspected() {
    let _alone = alone();
    // Of threads with little time, the first line alone is caught at first.
    watch_until("ring", |_, record| record.suspects().first().is_some_and(|suspect| suspect.lines > 1));
}

fn huge_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("AnonHugePages:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn huge_pages_stay_whole() {
    let _alone = alone();
    let Some(shape) = Shape::start("huge") else { return };
    let before = huge_kib(shape.child.id());
    if before == 0 {
        eprintln!("skipped: huge_pages_stay_whole: the kernel gives no huge pages");
        return;
    }
    let Some(record) = shape.watch("huge_pages_stay_whole", false, 3) else { return };
    assert_eq!(huge_kib(shape.child.id()), before, "{record:?}");
    assert!(record.caught_count > 0);
}

#[test]
fn threads_and_signals_are_not_stopped_for_more_than_a_quarter() {
    let _alone = alone();
    for name in ["threads", "signals"] {
        let Some(mut shape) = Shape::start(name) else { return };
        // Beside runs alone before and after, since other work comes and goes.
        let mut rate = |watched: bool| {
            let (begun, before) = (Instant::now(), shape.count());
            let record = if watched { Some(shape.watch(name, false, 3)?) } else { None };
            if !watched {
                thread::sleep(Duration::from_secs(1));
            }
            Some(((shape.count() - before) as f64 / begun.elapsed().as_secs_f64(), record))
        };
        let mut shares = Vec::new();
        // It was a fifteenth to a two hundredth.
        while !shares.iter().any(|share| *share > 0.4) {
            assert!(shares.len() < 3, "{name}: {shares:.2?} of the speed");
            let (Some(alone), Some((watched, Some(record)))) = (rate(false), rate(true)) else { return };
            assert!(record.stalled_share() > 0.02, "stops count: {name} {}", record.stalled_share());
            assert!(record.stalled_share() < 0.3, "{name}: {}", record.stalled_share());
            shares.push(watched / alone.0);
        }
        eprintln!("{name}: {shares:.2?} of the speed");
    }
}
