//! Joins that fail, and joins of a reader and its writer at the same time.

use crate::master_thread::{MasterThread, join, until, writes};
use lowlat_ipc::{
    index_ring,
    region::{Access, Memfd},
    stream::Stamp,
};
use lowlat_node::{
    Event, JoinError, Keys, Node, Overrun, Reads, Wait, Writes,
    clock::now_ns,
    control::{ReceiveOutcome, Socket, ToMaster, ToNode, VERSION, parse},
};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::{os::fd::OwnedFd, thread, time::Duration};

/// A writer is silent while its reader has died: the reader's successor fails to join, and dies. Records that were
/// kept for the first reader reach the third.
#[test]
fn a_failed_join_takes_nothing_from_the_next() {
    let master = MasterThread::start(|_| ());
    // From then on, a join waits for the writers.
    master.begin();
    let orders = Reads::new("orders.*", Keys::All).with(Overrun::Credit);
    let reader = join("reader", None, vec![orders]);
    let mut writer = master.join(&join("writer", writes("orders.w", 1), Vec::new()));
    let join_beside = |writer: &mut Node| {
        thread::scope(|scope| {
            let joining = scope.spawn(|| master.join(&reader));
            while !joining.is_finished() {
                writer.poll(&mut |_, _| ());
                thread::sleep(Duration::from_millis(1));
            }
            joining.join().unwrap()
        })
    };
    let mut first = join_beside(&mut writer);
    for _ in 0..3 {
        writer.publisher().publish(&Stamp::default(), b"order").unwrap();
    }
    // It sends the master no message, as when it is killed.
    first.must_be_stopped();
    drop(first);
    let failed = Node::join_within(&master.socket(), &reader, Duration::from_millis(5));
    assert!(matches!(failed, Err(JoinError::Silent { .. })));
    let mut third = join_beside(&mut writer);
    let (mut records, mut lost) = (0, 0);
    until("the records of the first", || {
        third.poll(&mut |_, event| match event {
            Event::Record { .. } => records += 1,
            Event::Lost { count, .. } => lost += count,
            _ => {}
        });
        records + lost >= 3
    });
    assert_eq!((records, lost), (3, 0));
}

/// A node whose join is in the test's hands.
struct Scripted(Socket);

impl Scripted {
    fn greet(master: &MasterThread, name: &str, writes: Option<Writes>, reads: Option<&str>) -> Self {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        net::connect(&fd, &SocketAddrUnix::new(master.socket()).unwrap()).unwrap();
        let mut node = Self(Socket::new(fd));
        let (version, name, role) = (VERSION, name.to_owned(), "test".to_owned());
        node.say(&ToMaster::Hello { version, name, role, writes, wait: Wait::Parked });
        if let Some(streams) = reads {
            let streams = streams.to_owned();
            node.say(&ToMaster::Reads { streams, keys: Keys::All, overrun: Overrun::Gap });
        }
        node.say(&ToMaster::Ready);
        node
    }

    fn say(&mut self, message: &ToMaster) {
        self.0.send(message, Vec::new()).unwrap();
    }

    /// The messages up to one of that kind, with their descriptors.
    fn until(&mut self, is_last: impl Fn(&ToNode) -> bool) -> Vec<(ToNode, Vec<OwnedFd>)> {
        let mut all = Vec::new();
        loop {
            let received = self.0.receive_until(now_ns() + 60_000_000_000).unwrap();
            let ReceiveOutcome::Message(received) = received else { panic!("the master is silent") };
            all.push((parse(&received.bytes).unwrap(), received.descriptors));
            if is_last(&all[all.len() - 1].0) {
                return all;
            }
        }
    }
}

/// The writer joins while the reader is between its welcome and its memory, so it gets two rings for it. The reader is told
/// of them in the order in which they are filled: it leaves one that is empty once it knows of another.
#[test]
fn rings_are_told_in_the_order_in_which_they_are_filled() {
    let master = MasterThread::start(|_| ());
    master.begin();
    let is_welcome = |message: &ToNode| matches!(message, ToNode::Welcome { .. });
    let is_out = |message: &ToNode| matches!(message, ToNode::Out { .. });
    let mut reader = Scripted::greet(&master, "reader", None, Some("count"));
    reader.until(is_welcome);
    let mut writer = Scripted::greet(&master, "writer", writes("count", 1), None);
    writer.until(is_welcome);
    writer.say(&ToMaster::Mapped);
    let mut outs = vec![writer.until(is_out).pop().unwrap()];
    // It has not told that it is connected when the reader's memory is there.
    reader.say(&ToMaster::Mapped);
    outs.push(writer.until(is_out).pop().unwrap());
    let mut pushers = Vec::new();
    for (message, descriptors) in outs {
        let ToNode::Out { subscriber, generation, entries, .. } = message else { panic!("{message:?}") };
        let ring = descriptors.into_iter().next().unwrap();
        pushers.push(index_ring::create(Memfd::open(ring, Access::Write).unwrap(), entries).unwrap());
        writer.say(&ToMaster::Linked { subscriber, generation, position: 0, sequence: 1 });
    }
    let mut last = pushers.pop().unwrap();
    assert!(last.push(5));
    let told = reader.until(|message| *message == ToNode::Joined).into_iter();
    let rings = told.filter(|(message, _)| matches!(message, ToNode::In { .. }));
    let waiting: Vec<u64> = rings
        .map(|(_, mut descriptors)| {
            let ring = Memfd::open(descriptors.pop().unwrap(), Access::Write).unwrap();
            index_ring::open(ring).unwrap().waiting()
        })
        .collect();
    assert_eq!(waiting, [0, 1]);
}
