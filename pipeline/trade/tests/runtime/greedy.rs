//! Nodes that request more than their share.

use crate::master_thread::{LONG, MasterThread, join, reads, until, writes};
use lowlat_ipc::passing;
use lowlat_node::{
    Event, Join, Keys, Node, Overrun, Wait, Writes,
    control::{ToMaster, ToNode, VERSION, encode, parse},
};
use lowlat_trade::master::Happened;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::{fs, os::fd::OwnedFd, time::Instant};

/// Numbers of the writers whose rings two tests count. All tests share this process, and none of the others has as many
/// nodes.
const ASKED: u32 = 131;
const EVICTING: u32 = 132;

/// Rings of a writer that this process has open: the master's, and those of the test's nodes.
fn rings_of(writer: u32) -> usize {
    let name = format!("memfd:lowlat:ring.{writer}-");
    let entries = fs::read_dir("/proc/self/fd").unwrap().flatten();
    entries
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|target| target.to_string_lossy().contains(&name))
        .count()
}

fn connect(master: &MasterThread) -> OwnedFd {
    let fd =
        net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    net::connect(&fd, &SocketAddrUnix::new(master.socket()).unwrap()).unwrap();
    fd
}

fn say(fd: &OwnedFd, message: &ToMaster) -> bool {
    passing::send(fd, &encode(message).unwrap(), &[]).is_ok()
}

/// Joins without the library, which would not misbehave, and reads the stream `md`.
fn join_by_hand(master: &MasterThread, name: &str) -> OwnedFd {
    let fd = connect(master);
    let (name, role) = (name.to_owned(), "test".to_owned());
    let hello = ToMaster::Hello { version: VERSION, name, role, writes: None, wait: Wait::Parked };
    let wants = ToMaster::Reads { streams: "md".to_owned(), keys: Keys::All, overrun: Overrun::Gap };
    assert!(say(&fd, &hello) && say(&fd, &wants) && say(&fd, &ToMaster::Ready));
    loop {
        let received = passing::receive(&fd).unwrap().expect("the master answers");
        match parse(&received.bytes).unwrap() {
            ToNode::Welcome { .. } => assert!(say(&fd, &ToMaster::Mapped)),
            ToNode::Joined => return fd,
            ToNode::Refused { reason } => panic!("{reason}"),
            _ => {}
        }
    }
}

/// A master whose next node has that number.
fn master_with(nodes: u32) -> MasterThread {
    let master = MasterThread::start(|_| {});
    for node in 0..nodes {
        drop(master.join(&join(&format!("n{node}"), None, vec![])));
    }
    master
}

#[test]
fn memory_beyond_the_budget_is_refused_before_it_is_made() {
    let master = MasterThread::start(|options| options.memory_bytes_max = Some(64 << 20));
    let of = |bytes| Writes::new("greedy", bytes, 1);
    let mut good = master.join(&join("good", writes("md", 1), vec![]));
    for bytes in [1 << 36, 1 << 25] {
        let start = Instant::now();
        let error = Node::join(&master.socket(), &join("greedy", Some(of(bytes)), vec![])).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("cannot make greedy: it takes") && error.contains("16 MiB"), "{error}");
        assert!(error.contains("hint: ask for less"), "{error}");
        assert!(start.elapsed() < LONG);
    }
    master.expect("the master reports it", |happened| {
        matches!(happened, Happened::Refused { name, reason } if name == "greedy" && reason.contains("MiB"))
    });
    // A table with a million rows is memory too.
    let keys = Writes::new("wide", 4096, 1 << 20);
    let error = Node::join(&master.socket(), &join("wide", Some(keys), vec![])).unwrap_err().to_string();
    assert!(error.contains("cannot make interest.wide: it takes 129 MiB"), "{error}");
    // A refused node leaves nothing behind.
    drop(master.join(&join("greedy", Some(of(1 << 20)), vec![])));
    good.poll(&mut |_, _| ());
    assert_eq!(good.ended(), None);
}

/// A reader that repeatedly claims to have been evicted, which it was not.
#[test]
fn a_reader_that_keeps_requesting_rings_gets_none() {
    const WORDS: usize = 3000;
    let master = master_with(ASKED);
    let _md = master.join(&join("md", writes("md", 1), vec![]));
    let reader = join_by_hand(&master, "reader");
    let before = rings_of(ASKED);
    let again = ToMaster::Again { writer: ASKED, after: None, first: 0 };
    for _ in 0..WORDS {
        assert!(say(&reader, &again));
    }
    // Messages are handled in order, so the earlier ones were handled too.
    assert!(say(&reader, &ToMaster::Say { text: "done".to_owned() }));
    master.expect(
        "the master has handled all",
        |happened| matches!(happened, Happened::Said { text, .. } if text == "done"),
    );
    let after = rings_of(ASKED);
    assert!(after <= before + 2, "{after} rings after {before}");
    assert_eq!(master.with(|master, _| master.nodes().len()), ASKED as usize + 2);
}

/// A node that is really evicted repeatedly: the rings that it has left are freed.
#[test]
fn replaced_rings_are_freed() {
    let master = master_with(EVICTING);
    let mut md = master.join(&join("md", writes("md", 1), vec![]));
    let slow = reads("md", Keys::All).with(Overrun::Evict { behind_max: 4 });
    let mut reader = master.join(&join("reader", None, vec![slow]));
    master.begin();
    for round in 0..10 {
        until("it is evicted", || {
            eprintln!("{round} {:?}", md.counters().figures());
            md.poll(&mut |_, _| ());
            md.publisher().publish(&lowlat_ipc::stream::Stamp::default(), b"quote").unwrap();
            master.with(move |master, _| master.nodes()[EVICTING as usize].figures.evicted > round)
        });
        let mut is_told = false;
        until("it is reconnected, and knows what it lost", || {
            md.poll(&mut |_, _| ());
            reader.poll(&mut |_, event| is_told |= matches!(event, Event::Lost { .. }));
            is_told
        });
    }
    // Those of the master, md and the reader: the ring in use, and at most one being replaced.
    until("they are freed", || {
        reader.poll(&mut |_, _| ());
        md.poll(&mut |_, _| ());
        rings_of(EVICTING) <= 6
    });
}

#[test]
fn a_node_that_does_not_read_is_dropped() {
    let master = MasterThread::start(|_| {});
    let _deaf = join_by_hand(&master, "deaf");
    master.with(|master, _| {
        // A socket's buffer holds some hundreds.
        for _ in 0..20_000 {
            if master.command("deaf", "hear").is_err() {
                break;
            }
        }
    });
    master.expect("it is dropped", |happened| {
        matches!(happened, Happened::Died { name, reason } if name == "deaf" && reason.contains("has not read"))
    });
}

#[test]
fn endless_lists_are_refused() {
    let master = MasterThread::start(|_| {});
    let refused = |join: &Join| Node::join(&master.socket(), join).unwrap_err().to_string();
    let keys = Keys::Only((0..100_000).collect());
    let error = refused(&join("many", None, vec![reads("md", keys)]));
    assert!(error.contains("node many: more than 65536 keys\nhint: read all keys"), "{error}");
    let error = refused(&join("lists", None, vec![reads("md", Keys::All); 3000]));
    assert!(error.contains("more than 2048 lists"), "{error}");
}
