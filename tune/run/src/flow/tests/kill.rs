//! A real process, really killed in the middle of an apply or a rollback.

use super::super::*;
use super::bench::{Bench, FakeManager, differences, is_root, site};
use lowlat_undo::Faults;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const TREE: &str = "LOWLAT_FLOW_KILL_TREE";
const PLAN: &str = "LOWLAT_FLOW_KILL_PLAN";
const ROUNDS: u32 = 12;

/// Applies and rolls back in a child process until it is killed.
#[test]
#[ignore = "the other half of a_killed_process_leaves_the_way_back_open, which starts it"]
fn child() {
    let tree = std::env::var(TREE).unwrap();
    let tree = Path::new(&tree);
    let site = site(tree, &tree.parent().unwrap().join("state"), FakeManager::default(), Faults::none());
    let plan: lowlat_plan::Plan = serde_json::from_str(&std::env::var(PLAN).unwrap()).unwrap();
    let host = site.snapshot();
    println!("\nready");
    loop {
        let ready = Ready::new(&site, &host, plan.clone(), PlanFrom::Host, ApplyOptions::default()).unwrap();
        ready.carry_out(&site, &host, &mut |_| ()).unwrap();
        rollback(&site, &RollbackRequest::default()).unwrap();
    }
}

/// Bytes of the undo log.
fn records(bench: &Bench) -> u64 {
    let segments = std::fs::read_dir(bench.state().join("undo")).into_iter().flatten().flatten();
    segments
        .filter_map(|entry| entry.metadata().ok())
        .filter(std::fs::Metadata::is_file)
        .map(|meta| meta.len())
        .sum()
}

#[test]
fn a_killed_process_leaves_the_way_back_open() {
    if !is_root() {
        return;
    }
    let bench = Bench::new();
    let start = bench.files();
    let plan = serde_json::to_string(&bench.plan).unwrap();
    let mut random = u64::from(std::process::id()) * 2_654_435_761 + 1;
    println!("seed {random}");
    let mut caught_within = 0;
    for round in 0..ROUNDS {
        // xorshift64
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "flow::tests::kill::child", "--ignored", "--nocapture"])
            .env(TREE, bench.tree())
            .env(PLAN, &plan)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(
            lines.any(|line| line.is_ok_and(|line| line == "ready")),
            "round {round}: the child ended early"
        );
        // Waits for the first record, which takes time on a loaded machine.
        let recorded = records(&bench);
        while records(&bench) == recorded && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // Every other time the moment is random; otherwise the plan is partly or completely in force.
        std::thread::sleep(Duration::from_micros(random % 30_000));
        let is_in_force = || !differences(&start, &bench.files()).is_empty();
        while round % 2 == 1 && !is_in_force() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(child.try_wait().unwrap().is_none(), "round {round}: the child ended by itself");
        child.kill().unwrap();
        child.wait().unwrap();
        let site = bench.site(Faults::none());
        caught_within += u32::from(!differences(&start, &bench.files()).is_empty());
        if random & 0x100 == 0 {
            bench.apply(&site, ApplyOptions::default()).unwrap_or_else(|e| panic!("round {round}: {e}"));
        }
        let report = rollback(&site, &RollbackRequest::default()).unwrap();
        assert!(report.is_complete(), "round {round}: {report:#?}");
        assert_eq!(differences(&start, &bench.files()), Vec::<String>::new(), "round {round}");
    }
    assert!(caught_within > 0, "no kill came within a plan");
}
