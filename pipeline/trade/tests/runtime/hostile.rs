//! Processes that send invalid messages.

use crate::master_thread::{MasterThread, join, writes};
use lowlat_ipc::passing;
use lowlat_node::{
    Wait, Writes,
    control::{ToMaster, ToNode, VERSION, encode, parse},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
};
use std::os::fd::OwnedFd;

fn connect(master: &MasterThread) -> OwnedFd {
    let fd =
        net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    net::connect(&fd, &SocketAddrUnix::new(master.socket()).unwrap()).unwrap();
    fd
}

/// The master's answers to these messages, up to its refusal.
fn refusal(master: &MasterThread, messages: &[&[u8]]) -> String {
    let fd = connect(master);
    for message in messages {
        passing::send(&fd, message, &[]).ok();
    }
    loop {
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], None).unwrap();
        let received = match passing::receive(&fd) {
            // The master closed without having read everything; its last message follows.
            Err(Errno::CONNRESET) => continue,
            received => received.unwrap(),
        };
        let Some(received) = received else { return "closed".to_owned() };
        if let ToNode::Refused { reason } = parse(&received.bytes).unwrap() {
            return reason;
        }
    }
}

fn hello(version: u32, name: &str, writes: Option<Writes>) -> Vec<u8> {
    let (name, role) = (name.to_owned(), "test".to_owned());
    encode(&ToMaster::Hello { version, name, role, writes, wait: Wait::Parked }).unwrap()
}

#[test]
fn malformed_messages_are_refused_with_a_reason_and_other_nodes_continue() {
    let master = MasterThread::start(|_| {});
    let good = master.join(&join("good", writes("a", 1), vec![]));
    let ready = encode(&ToMaster::Ready).unwrap();
    let usual = hello(VERSION, "x", None);
    let cases = [
        (b"\xff\x00garbage".to_vec(), "use one lowlat version"),
        (b"{\"message\":\"hello\"}".to_vec(), "use one lowlat version"),
        (ready.clone(), "must be hello"),
        (hello(4711, "x", None), "version 4711"),
        (usual[..usual.len() - 1].to_vec(), "control message of"),
        ([&usual[..], b"more"].concat(), "control message of"),
        (hello(VERSION, "../x", None), "is not a valid name"),
        (hello(VERSION, "x", Some(Writes::new("s", 5000, 1))), "power of two"),
    ];
    for (message, expected) in cases {
        let reason = refusal(&master, &[&message, &ready]);
        assert!(reason.contains(expected), "{}: {reason}", String::from_utf8_lossy(&message));
    }
    let huge = hello(VERSION, "x", Some(Writes::new("s", 1 << 60, 1)));
    assert!(refusal(&master, &[&huge, &ready]).contains("a ring of"));
    // A node that has joined and then sends nonsense is expelled.
    let reason = refusal(&master, &[&usual, &ready, b"{}"]);
    assert!(reason.contains("control message"), "{reason}");
    // A node that disconnects in the middle does no harm.
    passing::send(connect(&master), &usual, &[]).unwrap();
    drop(master.join(&join("other", None, vec![])));
    assert_eq!(good.ended(), None);
}
