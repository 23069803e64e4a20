//! Master and nodes as threads of the test.

use crate::master_thread::{LONG, MasterThread, join, reads, until, writes};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{Event, Join, JoinError, Keys, Node, Wait, clock::now_ns};
use std::{thread, time::Duration};

/// Polls until the closure returns true. Returns the events as text.
pub fn poll_until(node: &mut Node, mut is_enough: impl FnMut(&[String]) -> bool) -> Vec<String> {
    let mut seen = Vec::new();
    let end = now_ns() + u64::try_from(LONG.as_nanos()).unwrap();
    while !is_enough(&seen) {
        assert!(now_ns() < end, "waited in vain; so far {seen:?}");
        node.wait(Some(now_ns() + 20_000_000));
        node.poll(&mut |_, event| seen.push(told(&event)));
    }
    seen
}

pub fn told(event: &Event<'_>) -> String {
    match event {
        Event::Record { stream, record, payload } => {
            format!("{stream} {} {}", record.stamp.instrument, String::from_utf8_lossy(payload))
        }
        Event::Lost { stream, count } => format!("{stream} lost {count}"),
        Event::Begin => "begin".to_owned(),
        Event::Stop => "stop".to_owned(),
        Event::Command(text) => format!("command {text}"),
        other => format!("{other:?}"),
    }
}

fn stamp(instrument: u32) -> Stamp {
    Stamp { instrument, kind: 1, ..Stamp::default() }
}

#[test]
fn two_nodes_and_a_master() {
    [Wait::Parked, Wait::Fast, Wait::Adaptive].into_iter().for_each(two_nodes_that_wait);
}

fn two_nodes_that_wait(wait: Wait) {
    let master = MasterThread::start(|_| {});
    let joins = [
        join("md", writes("md", 4), vec![reads("orders.*", Keys::All)]),
        join("s1", writes("orders.s1", 1), vec![reads("md", Keys::Only(vec![1, 3]))]),
    ];
    let [mut md, mut s1] = joins.map(|join| master.join(&join.waiting(wait)));
    assert_eq!((md.number(), s1.number(), s1.epoch()), (0, 1, 1));
    assert!(md.area("stages").is_some() && s1.area("stages").is_none());
    master.begin();
    assert_eq!(poll_until(&mut md, |seen| !seen.is_empty()), ["begin"]);
    assert_eq!(poll_until(&mut s1, |seen| !seen.is_empty()), ["begin"]);
    for instrument in 0..4 {
        let published = md.publisher().publish(&stamp(instrument), b"quote").unwrap();
        let told = if wait == Wait::Fast { 0 } else { instrument % 2 };
        assert_eq!(published.delivered.subscribers, told, "only what is wanted; one that spins looks itself");
    }
    assert_eq!(poll_until(&mut s1, |seen| seen.len() == 2), ["md 1 quote", "md 3 quote"]);
    // An order from the callback, as strategies send theirs.
    md.publisher().publish(&stamp(3), b"another").unwrap();
    until("the order is sent", || {
        s1.poll(&mut |publisher, event| {
            if matches!(event, Event::Record { .. }) {
                publisher.publish(&stamp(0), b"order").unwrap();
            }
        }) > 0
    });
    assert_eq!(poll_until(&mut md, |seen| !seen.is_empty()), ["orders.s1 0 order"]);
    let nodes = master.with(|master, _| master.nodes());
    let figures: Vec<_> =
        nodes.iter().map(|node| (node.figures.published, node.figures.read, node.figures.lost)).collect();
    assert_eq!(figures, [(5, 1, 0), (1, 3, 0)]);
    master.with(|master, _| {
        master.command("s1", "pause").unwrap();
        master.stop();
    });
    assert_eq!(poll_until(&mut s1, |seen| seen.len() == 2), ["command pause", "stop"]);
}

#[test]
fn invalid_joins_are_refused_with_a_reason() {
    let master = MasterThread::start(|_| {});
    let refused = |join: &Join| Node::join(&master.socket(), join).unwrap_err().to_string();
    let _md = master.join(&join("md", writes("md", 4), vec![]));
    let error = refused(&join("md", None, vec![]));
    assert!(error.contains("has this name and is running"), "{error}");
    let error = refused(&join("md2", writes("md", 4), vec![]));
    assert!(error.contains("stream md belongs to node md"), "{error}");
    let error = refused(&join("s", None, vec![reads("md", Keys::Only(vec![4]))]));
    assert!(error.contains("its keys are 0 to 3"), "{error}");
    let error = refused(&join("m", writes("m", 0), vec![]));
    assert!(error.contains("0 keys"), "{error}");
    let name = Node::join(&master.socket(), &join("a b", None, vec![])).unwrap_err();
    assert!(matches!(name, JoinError::Name { what: "node", .. }), "{name}");
    let nobody = Node::join(&master.socket().with_file_name("none"), &join("a", None, vec![])).unwrap_err();
    assert!(nobody.to_string().contains("start one"), "{nobody}");
}

/// A node that works long on each record, and never waits because it always has another, still sends
/// heartbeats.
#[test]
fn a_busy_node_sends_heartbeats() {
    let master = MasterThread::start(|_| {});
    let mut md = master.join(&join("md", writes("md", 1), vec![]));
    let mut busy = master.join(&join("busy", None, vec![reads("md", Keys::All)]));
    md.poll(&mut |_, _| ());
    let mut poll = || {
        let before = busy.counters().heartbeat_ns();
        let count = busy.poll(&mut |_, _| thread::sleep(Duration::from_millis(1)));
        assert!(busy.counters().heartbeat_ns() > before, "a tenth of a second or more later");
        count
    };
    let mut publish = |count| {
        (0..count).for_each(|_| _ = md.publisher().publish(&stamp(0), b"quote").unwrap());
    };
    // A whole batch, and less than one.
    publish(500);
    assert_eq!([poll(), poll()], [256, 244]);
    publish(150);
    assert_eq!(poll(), 150);
}
