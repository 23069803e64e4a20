//! C programs that fork, and that use one node from two threads.

use crate::compile;
use crate::master_thread::{LONG, MasterThread, join, reads, until};
use lowlat_capi::{LOWLAT_WAIT_FAST, LOWLAT_WAIT_PARKED};
use lowlat_node::{Event, Keys, Node};
use lowlat_trade::master::Happened;
use std::{
    process::{Child, Output},
    thread,
    time::Instant,
};

const ROUNDS: usize = 8;

fn words(output: &Output) -> String {
    let (said, complaint) = (&output.stdout, &output.stderr);
    format!("{}: {}{}", output.status, String::from_utf8_lossy(said), String::from_utf8_lossy(complaint))
}

/// Output of the program after its end, while the reader reads. Panics if the reader gets anything but
/// consecutive records.
fn ended(mut child: Child, reader: &mut Node, last: &mut u64) -> Output {
    let start = Instant::now();
    let mut is_ended = false;
    // Once more after its end, for the last records.
    while !std::mem::replace(&mut is_ended, child.try_wait().unwrap().is_some()) {
        if start.elapsed() > LONG {
            child.kill().unwrap();
            panic!("the program hangs: {}", words(&child.wait_with_output().unwrap()));
        }
        reader.wait(Some(lowlat_node::clock::now_ns() + 5_000_000));
        reader.poll(&mut |_, event| match event {
            Event::Record { payload, .. } => {
                *last += 1;
                assert_eq!(payload, last.to_le_bytes(), "a foreign record");
            }
            Event::Lost { count, .. } => panic!("{count} lost"),
            _ => {}
        });
    }
    child.wait_with_output().unwrap()
}

#[test]
fn forked_children_cannot_use_or_end_their_parents_node() {
    let test = "forked_children_cannot_use_or_end_their_parents_node";
    let programs = tempfile::tempdir().unwrap();
    let source = "tests/programs/fork.c";
    let master = MasterThread::start(|_| ());
    for wait in [LOWLAT_WAIT_PARKED, LOWLAT_WAIT_FAST] {
        let Some(mut program) = compile::program(test, source, programs.path()) else { return };
        program.arg(master.socket()).args([ROUNDS.to_string(), wait.to_string()]);
        let mut reader = master.join(&join("reader", None, vec![reads("numbers", Keys::All)]));
        let child = program.spawn().unwrap();
        let is_parent = |it: &Happened| matches!(it, Happened::Joined { name, .. } if name == "parent");
        master.expect("the parent has joined", is_parent);
        master.begin();
        let mut last = 0;
        let output = ended(child, &mut reader, &mut last);
        assert!(output.status.success(), "{}", words(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), last.to_string(), "all are read");
        let has_left = |it: &Happened| matches!(it, Happened::Left { name } if name == "parent");
        master.expect("the parent has left", has_left);
        let happened = master.with(|_, happened| std::mem::take(happened));
        let count = |is_it: fn(&Happened) -> bool| happened.iter().filter(|it| is_it(it)).count();
        assert_eq!(count(|it| matches!(it, Happened::Died { .. })), 0, "{happened:?}");
        let has_joined =
            |it: &Happened| matches!(it, Happened::Joined { name, .. } if name.starts_with("child"));
        assert_eq!(count(has_joined), ROUNDS / 4, "children that joined themselves: {happened:?}");
    }
}

#[test]
fn a_second_thread_is_refused() {
    let programs = tempfile::tempdir().unwrap();
    let source = "tests/programs/threads.c";
    let Some(mut program) = compile::program("a_second_thread_is_refused", source, programs.path()) else {
        return;
    };
    let master = MasterThread::start(|_| ());
    let child = program.arg(master.socket()).spawn().unwrap();
    master.expect("it has joined", |it| matches!(it, Happened::Joined { .. }));
    master.begin();
    let ended = thread::spawn(move || child.wait_with_output().unwrap());
    until("the program ends", || ended.is_finished());
    let output = ended.join().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    master.expect("it has left", |it| matches!(it, Happened::Left { .. }));
}
