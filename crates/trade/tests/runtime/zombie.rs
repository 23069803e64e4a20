//! A process that is stopped, given up, and goes on.

use crate::{
    child::{self, FENCED},
    master_thread::{MasterThread, join, reads, until},
};
use lowlat_ipc::liveness::Life;
use lowlat_trade::{
    master::{Happened, Standing},
    node::{Event, Keys, Node},
};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;

fn read(node: &mut Node, by: &mut BTreeMap<u32, Vec<u64>>) {
    node.poll(&mut |_, event| {
        if let Event::Record { record, .. } = event {
            by.entry(record.stamp.source).or_default().push(record.sequence);
        }
    });
}

#[test]
fn a_writer_that_was_given_up_is_fenced_and_ends() {
    let master = MasterThread::start(|options| options.silence_ns_max = Some(300_000_000));
    let socket = master.socket().display().to_string();
    let mut reader = master.join(&join("reader", None, vec![reads("count", Keys::All)]));
    master.begin();
    let mut first = child::start(&format!("writer:{socket} writer 500"));
    let mut seen = BTreeMap::new();
    until("it publishes", || {
        read(&mut reader, &mut seen);
        seen.get(&first.0.id()).is_some_and(|sequences| sequences.len() > 10)
    });
    kill_process(Pid::from_child(&first.0), Signal::STOP).unwrap();
    // Told apart from death: it is silent, and its process is stopped.
    until("it is told that it is stopped", || {
        read(&mut reader, &mut seen);
        master.with(|_, happened| {
            happened.iter().any(
                |happened| matches!(happened, Happened::Silent { name, reason } if name == "writer" && reason.contains("SIGSTOP")),
            )
        })
    });
    let nodes = master.with(|master, _| master.nodes());
    let writer = nodes.iter().find(|node| node.name == "writer").unwrap();
    assert_eq!((writer.standing, writer.owner.life()), (Standing::Silent, Life::Stopped));
    master.with(|master, _| master.give_up("writer").unwrap());
    let second = child::start(&format!("writer:{socket} writer 500"));
    until("the second publishes", || {
        read(&mut reader, &mut seen);
        seen.get(&second.0.id()).is_some_and(|sequences| sequences.len() > 10)
    });
    let count = seen[&first.0.id()].len();
    kill_process(Pid::from_child(&first.0), Signal::CONT).unwrap();
    assert_eq!(first.0.wait().unwrap().code(), Some(FENCED));
    read(&mut reader, &mut seen);
    assert_eq!(seen[&first.0.id()].len(), count, "nothing of it is read any more");
    let (last, next) = (seen[&first.0.id()].last().unwrap(), seen[&second.0.id()][0]);
    assert_eq!(*last + 2, next, "sequences go on behind the record that says what was abandoned");
    drop(second);
    master.expect("its death is seen", |happened| {
        matches!(happened, Happened::Died { name, reason } if name == "writer" && !reason.contains("given up"))
    });
}
