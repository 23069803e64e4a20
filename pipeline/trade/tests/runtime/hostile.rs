//! Processes that send invalid messages.

use crate::master_thread::{MasterThread, join, writes};
use lowlat_ipc::passing;
use lowlat_node::control::{ToNode, VERSION, parse};
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

fn hello(change: impl Fn(&mut serde_json::Value)) -> Vec<u8> {
    let mut value = serde_json::json!({
        "message": "hello", "version": VERSION,
        "name": "x", "role": "test", "writes": null, "wait": "parked",
    });
    change(&mut value);
    serde_json::to_vec(&value).unwrap()
}

#[test]
fn malformed_messages_are_refused_with_a_reason_and_other_nodes_continue() {
    let master = MasterThread::start(|_| {});
    let good = master.join(&join("good", writes("a", 1), vec![]));
    let ready: &[u8] = br#"{"message":"ready"}"#;
    let cases: [(Vec<u8>, &str); 7] = [
        (b"\xff\x00garbage".to_vec(), "use one lowlat version"),
        (b"[]".to_vec(), "use one lowlat version"),
        (ready.to_vec(), "must be hello"),
        (hello(|value| value["version"] = 4711.into()), "version 4711"),
        (hello(|value| _ = value.as_object_mut().unwrap().remove("version")), "version none"),
        (hello(|value| value["name"] = "../x".into()), "is not a valid name"),
        (
            hello(|value| {
                value["writes"] = serde_json::json!({"stream": "s", "capacity_bytes": 5000, "keys": 1});
            }),
            "power of two",
        ),
    ];
    for (message, expected) in cases {
        let reason = refusal(&master, &[&message, ready]);
        assert!(reason.contains(expected), "{}: {reason}", String::from_utf8_lossy(&message));
    }
    let huge = hello(|value| {
        value["writes"] = serde_json::json!({"stream": "s", "capacity_bytes": 1_u64 << 60, "keys": 1});
    });
    assert!(refusal(&master, &[&huge, ready]).contains("a ring of"));
    // A node that has joined and then sends nonsense is expelled.
    let reason = refusal(&master, &[&hello(|_| {}), ready, b"{}"]);
    assert!(reason.contains("control message"), "{reason}");
    // A node that disconnects in the middle does no harm.
    passing::send(connect(&master), &hello(|_| {}), &[]).unwrap();
    drop(master.join(&join("other", None, vec![])));
    assert_eq!(good.ended(), None);
}
