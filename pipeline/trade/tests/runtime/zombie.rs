//! A process that is stopped, dropped, and continues.

use crate::{
    master_thread::{MasterThread, join, reads, until},
    runtime::child::{self, FENCED},
};
use lowlat_ipc::{liveness::Life, stream::Stamp};
use lowlat_node::{Event, Keys, Node, Writes};
use lowlat_trade::master::{Happened, Standing};
use rustix::process::{Pid, Signal, kill_process};
use std::{collections::BTreeMap, fs, path::Path};

fn read(node: &mut Node, by: &mut BTreeMap<u32, Vec<u64>>) {
    node.poll(&mut |_, event| {
        if let Event::Record { record, .. } = event {
            by.entry(record.stamp.source).or_default().push(record.sequence);
        }
    });
}

#[test]
fn a_dropped_writer_is_fenced_and_ends() {
    let master = MasterThread::start(|options| options.silence_ns_max = 300_000_000);
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
    // Distinguished from death: it is silent, and its process is stopped.
    until("its stop is reported", || {
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
    master.with(|master, _| master.drop_node("writer").unwrap());
    let second = child::start(&format!("writer:{socket} writer 500"));
    until("the second publishes", || {
        read(&mut reader, &mut seen);
        seen.get(&second.0.id()).is_some_and(|sequences| sequences.len() > 10)
    });
    let count = seen[&first.0.id()].len();
    kill_process(Pid::from_child(&first.0), Signal::CONT).unwrap();
    assert_eq!(first.0.wait().unwrap().code(), Some(FENCED));
    read(&mut reader, &mut seen);
    assert_eq!(seen[&first.0.id()].len(), count, "none of its records is read any more");
    let (last, next) = (seen[&first.0.id()].last().unwrap(), seen[&second.0.id()][0]);
    assert_eq!(*last + 2, next, "sequences continue after the abandoned marker");
    drop(second);
    master.expect("its death is seen", |happened| {
        matches!(happened, Happened::Died { name, reason } if name == "writer" && !reason.contains("dropped"))
    });
}

#[test]
fn a_dropped_reader_takes_nothing_from_its_successor() {
    const COUNT: u64 = 200;
    let master = MasterThread::start(|_| {});
    let socket = master.socket().display().to_string();
    let files = ["first", "second"].map(|name| master.socket().with_file_name(name));
    let start = |file: &Path| child::start(&format!("reader:{socket} reader {}", file.display()));
    let numbers = |file: &Path| -> Vec<u64> {
        let text = fs::read_to_string(file).unwrap_or_default();
        text.lines().map(|line| line.parse().expect("no losses")).collect()
    };
    // Room for everything that is published while the second one starts, however long that takes.
    let room = Some(Writes::new("count", 1 << 22, 1).giving_credit());
    let mut writer = master.join(&join("writer", room, vec![]));
    let mut first = start(&files[0]);
    master.expect(
        "the reader joins",
        |happened| matches!(happened, Happened::Joined { name, epoch: 1 } if name == "reader"),
    );
    master.begin();
    let mut publish = |count| {
        for _ in 0..count {
            writer.publisher().publish(&Stamp::default(), b"").unwrap();
            writer.poll(&mut |_, _| ());
        }
    };
    publish(COUNT);
    until("some are read", || !numbers(&files[0]).is_empty());
    kill_process(Pid::from_child(&first.0), Signal::STOP).unwrap();
    // For it while it is stopped, while it is dropped, and for its successor.
    publish(COUNT);
    master.with(|master, _| master.drop_node("reader").unwrap());
    publish(COUNT);
    let second = start(&files[1]);
    until("the second joins", || {
        publish(1);
        let nodes = master.with(|master, _| master.nodes());
        nodes.iter().any(|node| (node.name.as_str(), node.standing) == ("reader", Standing::Running))
    });
    kill_process(Pid::from_child(&first.0), Signal::CONT).unwrap();
    publish(COUNT);
    let last = master.with(|master, _| master.counters("writer").unwrap().published());
    assert_eq!(first.0.wait().unwrap().code(), Some(FENCED));
    until("the second has read all", || numbers(&files[1]).last() == Some(&last));
    drop(second);
    let (first, second) = (numbers(&files[0]), numbers(&files[1]));
    // Both may have read the one record that the first was working on when it was stopped.
    let (end, begin) = (*first.last().unwrap(), second[0]);
    assert!(begin == end + 1 || begin == end, "{end}, then {begin}");
    assert!(second.windows(2).all(|pair| pair[0] + 1 == pair[1]), "every one of them");
}
