//! Ends of a node: each has one reason, which the node reports.

use crate::{
    master_thread::{MasterThread, join, until, writes},
    runtime::in_process::poll_until,
};
use lowlat_ipc::{
    passing,
    region::{Memfd, Region},
};
use lowlat_node::{
    Node, NodeEnded,
    clock::now_ns,
    control::{Lent, ReceiveOutcome, Socket, ToMaster, ToNode, VERSION, WithoutMaster, parse},
};
use lowlat_trade::master::{Happened, Visitors};
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::{
    os::fd::OwnedFd,
    path::Path,
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

/// The word of a node's counters that its master sets to drop the node.
const FENCED_WORD: usize = 32;

fn refused() -> ToNode {
    ToNode::Refused { reason: "join once".to_owned() }
}

/// The master's side of one node, for message orders that are rare with a real master.
struct ScriptedMaster {
    socket: Socket,
    counters: Arc<Memfd>,
}

impl ScriptedMaster {
    /// A node that has joined, with its master.
    fn with_node(without_master: WithoutMaster) -> (Self, Node) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.sock");
        let listener = listen(&path);
        let master = thread::spawn(move || Self::admit(&listener, without_master));
        let node = Node::join(&path, &join("node", None, vec![])).unwrap();
        (master.join().unwrap(), node)
    }

    fn admit(listener: &OwnedFd, without_master: WithoutMaster) -> Self {
        let fd = net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).unwrap();
        let mut socket = Socket::new(fd);
        loop {
            let until_ns = now_ns() + 60_000_000_000;
            let ReceiveOutcome::Message(received) = socket.receive_until(until_ns).unwrap() else {
                panic!("a node that does not join")
            };
            if parse::<ToMaster>(&received.bytes).unwrap() == ToMaster::Ready {
                break;
            }
        }
        let memory = |bytes| Arc::new(Memfd::create_usual("lowlat-test", bytes).unwrap());
        let (inbox, counters, page) = (memory(4096), memory(4096), memory(4096));
        let welcome = ToNode::Welcome { version: VERSION, number: 0, epoch: 1, without_master, markers: 0 };
        let lent = [Lent::to_write(&inbox), Lent::to_write(&counters), Lent::to_read(&page)];
        socket.send(&welcome, lent.into()).unwrap();
        socket.send(&ToNode::Joined, Vec::new()).unwrap();
        Self { socket, counters }
    }

    fn say(&mut self, message: &ToNode) {
        assert!(self.socket.send(message, Vec::new()).unwrap(), "the socket has room");
    }

    fn fence(&self) {
        self.counters.words()[FENCED_WORD].store(1, Ordering::Release);
    }
}

fn listen(path: &Path) -> OwnedFd {
    let fd =
        net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    net::bind(&fd, &SocketAddrUnix::new(path).unwrap()).unwrap();
    net::listen(&fd, 1).unwrap();
    fd
}

#[test]
fn each_end_has_one_reason_whatever_the_node_finds_first() {
    type Script = fn(&mut ScriptedMaster);
    let because = || Some(NodeEnded::Refused { reason: "join once".to_owned() });
    let scripts: [(&str, Script, Option<NodeEnded>); 7] = [
        ("stopped", |master| master.say(&ToNode::Stop), None),
        (
            "stopped, then dropped for not leaving",
            |master| {
                master.say(&ToNode::Stop);
                master.fence();
            },
            None,
        ),
        ("the master died", |_| (), Some(NodeEnded::MasterGone)),
        ("dropped", |master| master.fence(), Some(NodeEnded::Fenced)),
        ("refused", |master| master.say(&refused()), because()),
        (
            "refused, and fenced therefore",
            |master| {
                master.say(&refused());
                master.fence();
            },
            because(),
        ),
        (
            "stopped, then refused",
            |master| {
                master.say(&ToNode::Stop);
                master.say(&refused());
            },
            None,
        ),
    ];
    for (what, script, expected) in scripts {
        let (mut master, mut node) = ScriptedMaster::with_node(WithoutMaster::Stop);
        // Everything, including the close, before the node polls.
        script(&mut master);
        drop(master);
        assert_eq!(poll_until(&mut node, |seen| !seen.is_empty()), ["stop"], "{what}");
        (0..3).for_each(|_| _ = node.poll(&mut |_, event| panic!("{what}: {event:?}")));
        assert_eq!(node.ended(), expected, "{what}");
    }
}

#[test]
fn a_node_that_may_continue_without_its_master_still_reports_a_refusal() {
    let (mut master, mut node) = ScriptedMaster::with_node(WithoutMaster::GoOn);
    master.say(&refused());
    master.fence();
    drop(master);
    assert_eq!(poll_until(&mut node, |seen| !seen.is_empty()), ["stop"]);
    assert_eq!(node.ended(), Some(NodeEnded::Refused { reason: "join once".to_owned() }));
}

#[test]
fn a_master_that_ends_stops_its_nodes_and_refuses_those_that_join() {
    for _ in 0..20 {
        let master = MasterThread::start(|options| options.without_master = WithoutMaster::Stop);
        let mut node = master.join(&join("node", writes("a", 1), vec![]));
        let joining = connect(&master.socket());
        master.expect("the node has joined", |it| matches!(it, Happened::Joined { .. }));
        master.with(|master, _| _ = master.turn(Duration::ZERO));
        drop(master);
        assert_eq!(poll_until(&mut node, |seen| !seen.is_empty()), ["stop"]);
        assert_eq!(node.ended(), None, "the master ended as masters do");
        let received = passing::receive(&joining).unwrap().expect("a reason before the end");
        let ToNode::Refused { reason } = parse(&received.bytes).unwrap() else { panic!("{received:?}") };
        assert!(reason.contains("it is ending"), "{reason}");
    }
}

fn connect(socket: &Path) -> OwnedFd {
    let fd =
        net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    net::connect(&fd, &SocketAddrUnix::new(socket).unwrap()).unwrap();
    fd
}

#[test]
fn visitors_are_asked_to_stop_and_waited_for() {
    let master = MasterThread::start(|_| ());
    let mut writer = master.join(&join("writer", writes("a", 1), vec![]));
    let mut reader = master.join(&join("reader", None, vec![]));
    let left =
        |name: &'static str| move |it: &Happened| matches!(it, Happened::Left { name: left } if left == name);
    thread::scope(|scope| {
        let leaves = scope.spawn(|| {
            poll_until(&mut writer, |seen| seen.contains(&"stop".to_owned()));
            drop(writer);
        });
        let long = Duration::from_secs(60);
        master.with(move |master, _| master.stop_visitors(Visitors::Writers, long).unwrap());
        leaves.join().unwrap();
    });
    until("the writer has left", || master.with(move |_, happened| happened.iter().any(left("writer"))));
    reader.poll(&mut |_, event| panic!("{event:?}"));
    // A visitor that does not react is waited for only as long as requested, and finds the request later.
    master.with(|master, _| master.stop_visitors(Visitors::All, Duration::from_millis(50)).unwrap());
    assert_eq!(poll_until(&mut reader, |seen| !seen.is_empty()), ["stop"]);
    assert_eq!(reader.ended(), None);
}
