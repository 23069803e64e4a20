//! A real process, really killed.

use super::{super::*, Host};
use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

const ROOT: &str = "LOWLAT_UNDO_KILL_ROOT";
const ROUNDS: u32 = 24;

/// The child's work until it is killed.
#[test]
#[ignore = "the other half of a_killed_process_leaves_both_ways_open, which starts it"]
fn child() {
    let root = std::env::var(ROOT).unwrap();
    let root = Path::new(&root);
    let writer = Writer::below(&root.join("host")).unwrap();
    let mut log =
        UndoLog::open(PrivateDirectory::create(root, &["undo"]).unwrap(), writer, |_| true).unwrap();
    // All hosts of these tests are alike, so a fresh one gives the plan, whatever remains of this one.
    let plan = Host::new().plan();
    println!("\nready");
    loop {
        log.apply("p", &plan, OnFailure::RollBack).unwrap();
        log.rollback_where(|_| true);
    }
}

#[test]
fn a_killed_process_leaves_both_ways_open() {
    let seed = std::env::var("LOWLAT_UNDO_SEED").ok().and_then(|s| s.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| u64::from(std::process::id()) * 2_654_435_761 + 1);
    println!("LOWLAT_UNDO_SEED={seed}");
    let mut random = seed;
    let host = Host::new();
    let (start, plan) = (host.tree(true), host.plan());
    let mut caught_within = 0;
    for round in 0..ROUNDS {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::kill::child", "--ignored", "--nocapture"])
            .env(ROOT, host.root.parent().unwrap())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(
            lines.any(|line| line.is_ok_and(|line| line == "ready")),
            "round {round}: the child ended early"
        );
        std::thread::sleep(Duration::from_micros(random % 10_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut log = host.open(Faults::none()).unwrap();
        assert_eq!(log.damage(), None, "round {round}");
        caught_within += u32::from(log.history().is_open("p") || !log.history().entries.is_empty());
        if random & 0x100 == 0 {
            log.apply("p", &plan, OnFailure::RollBack).unwrap_or_else(|e| panic!("round {round}: {e}"));
        }
        let report = log.rollback_where(|_| true);
        assert!(report.is_complete(), "round {round}: {report}");
        assert_eq!(host.tree(true), start, "round {round}");
    }
    assert!(caught_within > 0, "no kill came within a plan");
}
