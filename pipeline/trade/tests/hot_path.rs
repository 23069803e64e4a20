//! Publishing and polling allocate nothing and make no system call once a node has joined.
//!
//! The test process is killed at its first system call (seccomp's strict mode) while it acts like a process in
//! fast mode.

use crate::allocator;
use lowlat_ipc::stream::Stamp;
use lowlat_node::{Event, Join, Keys, Node, Reads, Wait, Writes, address::RunFolder};
use lowlat_trade::master::{Master, Options};
use rustix::thread::{SecureComputingMode, set_secure_computing_mode};
use std::{
    env, hint,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

const ROLE: &str = "LOWLAT_TEST_STRICT";
/// Exit code of a process whose thread was killed for a system call.
const CALLED: i32 = 9;
/// Fewer polls than between two reads of the clock: strict mode also blocks the time-stamp counter behind the
/// clock.
const ROUNDS: u64 = 2000;

fn node(socket: &Path, name: &str, writes: &str, reads: &str) -> Node {
    let join = Join::new(name, "test")
        .writing(Writes::new(writes, 1 << 16, 2))
        .reading([Reads::new(reads, Keys::Only(vec![1]))])
        .waiting(Wait::Fast);
    Node::join(socket, &join).unwrap()
}

/// A master in a thread, and two nodes that read each other.
fn pair(folder: &Path, is_over: &Arc<AtomicBool>) -> (thread::JoinHandle<()>, Node, Node) {
    let folder = RunFolder::at(folder).unwrap();
    let socket = folder.socket();
    let mut master = Master::open(Options::new(folder)).unwrap();
    let is_over = Arc::clone(is_over);
    let thread = thread::spawn(move || {
        while !is_over.load(Ordering::Acquire) {
            master.turn(Duration::from_millis(5)).unwrap();
        }
    });
    let mut one = node(&socket, "one", "a", "b");
    let mut other = node(&socket, "other", "b", "a");
    settle(&mut one, &mut other);
    (thread, one, other)
}

/// Publishes in both directions until each node has received a record and none is left. From then on the links
/// are connected, so the master sends nothing more, and no poll reads the control socket.
fn settle(one: &mut Node, other: &mut Node) {
    let stamp = Stamp { instrument: 1, kind: 1, ..Stamp::default() };
    let mut received = [false; 2];
    while received != [true; 2] {
        for node in [&mut *one, &mut *other] {
            node.publisher().publish(&stamp, &[]).unwrap();
        }
        received[0] |= drain(one);
        received[1] |= drain(other);
        thread::sleep(Duration::from_millis(1));
    }
    while drain(one) | drain(other) {}
}

/// Takes what is available. Returns true if it included a record.
fn drain(node: &mut Node) -> bool {
    let mut has_record = false;
    node.poll(&mut |_, event| has_record |= matches!(event, Event::Record { .. }));
    has_record
}

/// Repeated round trips, with or without waiting, which reads the clock now and then. Returns the number of
/// records.
fn exchange(one: &mut Node, other: &mut Node, waits: bool) -> u64 {
    let stamp = Stamp { instrument: 1, kind: 1, ..Stamp::default() };
    let mut came = 0;
    for _ in 0..ROUNDS {
        one.publisher().publish(&stamp, &[7; 64]).unwrap();
        if waits {
            other.wait(None);
        }
        other.poll(&mut |publisher, event| {
            if let Event::Record { record, payload, .. } = event {
                came += 1;
                publisher.publish(&Stamp { cause: record.sequence, ..stamp }, payload).unwrap();
            }
        });
        if waits {
            one.wait(None);
        }
        one.poll(&mut |_, event| came += u64::from(matches!(event, Event::Record { .. })));
    }
    came
}

#[test]
fn publishing_and_polling_allocate_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let (thread, mut one, mut other) = pair(&folder.path().join("run"), &is_over);
    let (asked, came) = allocator::asked(|| exchange(&mut one, &mut other, true));
    assert_eq!((came, asked.allocations, asked.releases), (2 * ROUNDS, 0, 0));
    is_over.store(true, Ordering::Release);
    thread.join().unwrap();
}

/// Does nothing as a test; the test below starts it to do the exchange where system calls are forbidden.
#[test]
fn strict_child() {
    let Ok(kind) = env::var(ROLE) else { return };
    let folder = tempfile::tempdir().unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let (_thread, mut one, mut other) = pair(&folder.path().join("run"), &is_over);
    let came = Arc::new(AtomicU64::new(0));
    let (seen, thread_id) = (Arc::clone(&came), Arc::new(AtomicU64::new(0)));
    let own_id = Arc::clone(&thread_id);
    thread::spawn(move || {
        own_id
            .store(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs().into(), Ordering::Release);
        if let Err(errno) = set_secure_computing_mode(SecureComputingMode::Strict) {
            eprintln!("skipped: seccomp: {errno}");
            came.store(2 * ROUNDS, Ordering::Release);
        } else if kind == "with-a-call" {
            rustix::thread::sched_yield();
        } else {
            came.store(exchange(&mut one, &mut other, false), Ordering::Release);
        }
        // The end of a thread is a system call.
        loop {
            hint::spin_loop();
        }
    });
    while seen.load(Ordering::Acquire) == 0 {
        thread::sleep(Duration::from_millis(5));
        let id = thread_id.load(Ordering::Acquire);
        // The kernel kills only the calling thread.
        if id != 0 && !Path::new(&format!("/proc/self/task/{id}")).exists() {
            drop(folder);
            std::process::exit(CALLED);
        }
    }
    drop(folder);
    std::process::exit(i32::from(seen.load(Ordering::Acquire) != 2 * ROUNDS));
}

#[test]
fn publishing_and_polling_in_fast_mode_make_no_system_call() {
    let run = |kind| {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["hot_path::strict_child", "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, kind);
        command.output().unwrap()
    };
    let output = run("exchange");
    assert!(output.status.success(), "{output:?}");
    if String::from_utf8_lossy(&output.stderr).contains("skipped") {
        eprintln!("skipped: system calls of the hot path: this kernel has no seccomp");
        return;
    }
    assert_eq!(run("with-a-call").status.code(), Some(CALLED), "a single call is fatal");
}
