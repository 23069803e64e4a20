//! Nodes that take more than their share of the master, and nodes that are refused.

use super::pipeline::{Pipeline, role, wait_for, warnings};
use crate::common::binary;
use lowlat_ipc::passing;
use lowlat_node::{
    Wait, Writes,
    control::{ToMaster, ToNode, VERSION, encode, parse},
};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use std::{fs, os::fd::OwnedFd, process::Command};

/// Connects, and sends nothing.
fn knock(pipeline: &Pipeline, more: SocketFlags) -> Option<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | more;
    let fd = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    connect(&fd, &SocketAddrUnix::new(pipeline.socket()).unwrap()).ok().map(|()| fd)
}

/// The binary under a resource limit, in the syntax of prlimit(1).
fn limited(limit: &str) -> Command {
    let mut command = Command::new("prlimit");
    command.arg(limit).arg("--").arg(binary());
    command
}

/// Joins without the library, and returns the master's reason for refusing.
fn refusal(pipeline: &Pipeline, writes: Writes) -> Option<String> {
    let fd = knock(pipeline, SocketFlags::empty())?;
    let (name, role, writes) = ("greedy".to_owned(), "test".to_owned(), Some(writes));
    let hello = ToMaster::Hello { version: VERSION, name, role, writes, wait: Wait::Parked };
    for message in [hello, ToMaster::Ready] {
        passing::send(&fd, &encode(&message).unwrap(), &[]).ok();
    }
    // The first error may only report that the connection is closed; the reason is read next.
    let received = (0..2).find_map(|_| passing::receive(&fd).ok())??;
    if let ToNode::Refused { reason } = parse(&received.bytes).ok()? { Some(reason) } else { None }
}

/// Waits until the run has started and md's stream exists: a node that joins earlier waits for it.
fn wait_for_md(pipeline: &Pipeline) {
    let folder = pipeline.folder().display().to_string();
    wait_for("md has its stream", || {
        let of_md = |pid: &str| {
            let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let (words, maps) = (read("cmdline"), read("maps"));
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            words.contains("role md ")
                && words.contains(&folder)
                && String::from_utf8_lossy(&maps).contains("lowlat:md")
        };
        let pids = fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().into_string().ok()).any(|pid| of_md(&pid))
    });
}

#[test]
fn silent_connections_do_not_end_a_run_with_few_files() {
    let pipeline = Pipeline::start_by(limited("--nofile=150"), &["--duration", "5s"]);
    let silent: Vec<_> = (0..200).filter_map(|_| knock(&pipeline, SocketFlags::NONBLOCK)).collect();
    assert!(silent.len() > 150, "they are accepted, or queued: {}", silent.len());
    // A genuine node still gets through.
    let joined = role(&pipeline.socket(), &["strategies", "--number", "0"]);
    let said = String::from_utf8_lossy(&joined.stderr).into_owned();
    assert!(
        said.contains("the run starts node s0 itself"),
        "its message is read, and refused for its name: {said}"
    );
    let document = pipeline.document();
    assert_eq!(document["orders"], document["ticks_published"], "{document}");
    assert_eq!(document["is_interrupted"], false, "{document}");
    drop(silent);
}

#[test]
fn a_ring_of_64_gib_is_refused_before_it_is_made() {
    // A master that creates it is stopped by the limit, not by the host's lack of memory.
    let pipeline = Pipeline::start_by(limited("--fsize=1073741824"), &["--duration", "4s"]);
    let writes = Writes::new("greedy", 1 << 36, 1);
    let reason = refusal(&pipeline, writes).expect("the master answers");
    assert!(reason.contains("cannot make greedy: it takes 6553"), "{reason}");
    assert!(reason.contains("hint: ") && reason.contains("--memory-max"), "{reason}");
    let document = pipeline.document();
    assert_eq!(document["orders"], document["ticks_published"], "{document}");
    assert!(warnings(&document).contains("greedy was refused: "), "{document}");
}

#[test]
fn a_run_stays_within_its_memory_limit() {
    let pipeline = Pipeline::start(&["--duration", "4s", "--memory-max", "64M"]);
    let writes = Writes::new("greedy", 1 << 25, 1);
    let reason = refusal(&pipeline, writes).expect("the master answers");
    assert!(reason.contains("may use 16 MiB of memory"), "{reason}");
    pipeline.document();
}

#[test]
fn a_refused_join_shows_the_masters_reason_and_the_run_reports_its_name() {
    let pipeline = Pipeline::start(&["--duration", "6s"]);
    wait_for_md(&pipeline);
    // Repeated, because the order of the last writes on both sides is random.
    for _ in 0..8 {
        let output = role(&pipeline.socket(), &["strategies", "--number", "999"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("refuses node s999") && said.contains("its keys are 0 to 1"), "{said}");
    }
    let document = pipeline.document();
    assert!(warnings(&document).contains("s999 was refused: "), "{document}");
}
