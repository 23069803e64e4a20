//! Descriptors that a node is given: with none of them can it change what it only reads.
//!
//! The attacker is a process of the same user that joins a running pipeline, reads every stream, and tries on each
//! descriptor whatever the kernel offers for writing.

use crate::common::binary;
use lowlat_ipc::{
    passing,
    region::{Access, Memfd, Region},
};
use lowlat_node::{
    Keys, Overrun, Wait, Writes,
    control::{ToMaster, ToNode, VERSION, encode, parse},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{self, FallocateFlags, Mode, OFlags, SealFlags},
    io::{self, Errno},
    net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
    process::{Pid, Signal, kill_process},
};
use serde_json::Value;
use std::{
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::Ordering,
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Guards against a hang; not an expected duration.
const PATIENCE: Duration = Duration::from_secs(120);

/// A pipeline, ended with the test.
struct Pipeline(Option<Child>);

impl Drop for Pipeline {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            kill_process(Pid::from_child(&child), Signal::TERM).ok();
            child.wait().ok();
        }
    }
}

/// Starts a pipeline and waits for its master.
fn pipeline(runs: &Path) -> (Pipeline, PathBuf) {
    let mut command = Command::new(binary());
    command.args([
        "pipeline",
        "run",
        "--strategies",
        "2",
        "--rate",
        "300",
        "--duration",
        "6s",
        "--force",
        "--json",
    ]);
    command.env("XDG_RUNTIME_DIR", runs).stdout(Stdio::piped()).stderr(Stdio::piped());
    let pipeline = Pipeline(Some(command.spawn().unwrap()));
    let start = Instant::now();
    loop {
        let folders = std::fs::read_dir(runs.join("lowlat")).into_iter().flatten().flatten();
        let mut sockets = folders.map(|folder| folder.path().join("master.sock"));
        if let Some(socket) = sockets.find(|socket| socket.exists()) {
            return (pipeline, socket);
        }
        assert!(start.elapsed() < PATIENCE, "no master");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A message of the master with its descriptors.
type Message = (ToNode, Vec<OwnedFd>);

/// The attacker's connection, and what came over it until it had joined.
struct Attacker {
    socket: OwnedFd,
    messages: Vec<Message>,
}

impl Attacker {
    /// Joins. `on_welcome` is run with the first descriptors, before the attacker says that it has mapped them. The error is
    /// the master's reason.
    fn join(path: &Path, stream: &str, on_welcome: impl Fn(&[OwnedFd])) -> Result<Self, String> {
        let mut attacker = Self::connect(path);
        attacker.hello(stream);
        attacker.wait_until_joined(on_welcome).map(|()| attacker)
    }

    fn connect(path: &Path) -> Self {
        let kind = SocketType::SEQPACKET;
        let socket = net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        let address = SocketAddrUnix::new(path).unwrap();
        // A socket that has its name listens.
        net::connect(&socket, &address).unwrap();
        Self { socket, messages: Vec::new() }
    }

    fn hello(&self, stream: &str) {
        let (name, role) = ("spy".to_owned(), "spy".to_owned());
        let writes = Some(Writes::new(stream, 65536, 1).giving_credit());
        self.say(&ToMaster::Hello { version: VERSION, name, role, writes, wait: Wait::Parked });
        for streams in ["md", "td", "orders.*"].map(str::to_owned) {
            self.say(&ToMaster::Reads { streams, keys: Keys::All, overrun: Overrun::Gap });
        }
        self.say(&ToMaster::Ready);
    }

    fn wait_until_joined(&mut self, on_welcome: impl Fn(&[OwnedFd])) -> Result<(), String> {
        loop {
            let (message, descriptors) = self.hear();
            match &message {
                ToNode::Refused { reason } => return Err(reason.clone()),
                ToNode::Joined => return Ok(()),
                ToNode::Welcome { .. } => {
                    on_welcome(&descriptors);
                    self.say(&ToMaster::Mapped);
                }
                _ => {}
            }
            self.messages.push((message, descriptors));
        }
    }

    /// Listens until the run has begun: every node of it has joined.
    fn wait_for_begin(&mut self) {
        while self.messages.iter().all(|(message, _)| *message != ToNode::Begin) {
            let message = self.hear();
            self.messages.push(message);
        }
    }

    /// A master that has refused does not listen, so nothing said is sure to arrive.
    fn say(&self, message: &ToMaster) {
        passing::send(&self.socket, &encode(message).unwrap(), &[]).ok();
    }

    fn hear(&self) -> Message {
        loop {
            poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], None).unwrap();
            match passing::receive(&self.socket) {
                // The master closed before it had read everything. Its last message comes next.
                Err(Errno::CONNRESET) => {}
                received => {
                    let received = received.unwrap().expect("the master talks");
                    return (parse(&received.bytes).unwrap(), received.descriptors);
                }
            }
        }
    }

    /// The descriptors of all messages of a kind at a place in them, each with a name for a report.
    fn given(&self, is_kind: impl Fn(&ToNode) -> bool, place: usize) -> Vec<(String, &OwnedFd)> {
        let of_kind = self.messages.iter().filter(|(message, _)| is_kind(message));
        let found = of_kind.filter_map(|(message, descriptors)| {
            let link = std::fs::read_link(path_of(descriptors.get(place)?)).unwrap();
            Some((format!("{message:?} {}", link.display()), &descriptors[place]))
        });
        found.collect()
    }
}

fn path_of(fd: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// Every way to change memory with a descriptor that works.
fn ways_to_write(fd: &OwnedFd) -> Vec<&'static str> {
    let copy = || fd.try_clone().unwrap();
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let zero = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
    let tried = [
        ("mmap", Memfd::open(copy(), Access::Write).is_ok()),
        ("write", io::write(fd, &[1]).is_ok()),
        ("pwrite", io::pwrite(fd, &[1], 0).is_ok()),
        ("ftruncate", fs::ftruncate(fd, 0).is_ok() || fs::ftruncate(fd, 1 << 30).is_ok()),
        ("punch a hole", fs::fallocate(fd, hole, 0, 4096).is_ok()),
        ("zero a range", fs::fallocate(fd, zero, 0, 4096).is_ok()),
    ];
    tried.into_iter().filter_map(|(what, has_worked)| has_worked.then_some(what)).collect()
}

/// The same through a descriptor that the attacker opens for writing.
fn ways_to_write_reopened(fd: &OwnedFd) -> Vec<&'static str> {
    let reopened = [OFlags::RDWR, OFlags::WRONLY, OFlags::RDWR | OFlags::TRUNC]
        .map(|flags| fs::open(path_of(fd), flags | OFlags::CLOEXEC, Mode::empty()));
    reopened.into_iter().flatten().flat_map(|fd| ways_to_write(&fd)).collect()
}

#[test]
fn a_reader_cannot_write_what_it_reads_and_the_others_go_on() {
    let runs = TempDir::new().unwrap();
    let (pipeline, socket) = pipeline(runs.path());
    let mut attacker = Attacker::join(&socket, "orders.spy", |_| ()).unwrap();
    attacker.wait_for_begin();
    let is_in = |message: &ToNode| matches!(message, ToNode::In { .. });
    let is_welcome = |message: &ToNode| matches!(message, ToNode::Welcome { .. });
    let is_area = |message: &ToNode| matches!(message, ToNode::Area { .. });
    let segments = attacker.given(is_in, 0);
    assert!(segments.len() >= 4, "streams md, td and two of orders: {segments:?}");
    let only_read = [segments, attacker.given(is_welcome, 2), attacker.given(is_welcome, 4)].concat();
    let mut possible: Vec<_> = only_read.iter().map(|(name, fd)| (name, ways_to_write(fd))).collect();
    // Its segment too: the mapping that its writer has is the only way to write it.
    let own = attacker.given(is_welcome, 3);
    let has_the_seal = Memfd::create_usual("probe", 4096).unwrap().seal_writes().unwrap();
    if has_the_seal {
        let sealed = only_read.iter().chain(&own);
        possible.extend(sealed.map(|(name, fd)| (name, ways_to_write_reopened(fd))));
    } else {
        eprintln!("skipped: descriptors that are opened again: no F_SEAL_FUTURE_WRITE (Linux 5.1)");
    }
    possible.retain(|(_, ways)| !ways.is_empty());
    assert!(possible.is_empty(), "a reader can write:\n{possible:#?}");
    // Of the areas it gets td's ledger alone, to read. That cannot be sealed, because td's successors write it.
    let areas = attacker.given(is_area, 0);
    let messages: Vec<_> =
        attacker.messages.iter().map(|(message, _)| message).filter(|it| is_area(it)).collect();
    assert_eq!(messages, [&ToNode::Area { name: "ledger".to_owned(), is_writable: false }]);
    assert_eq!(ways_to_write(areas[0].1), Vec::<&str>::new());
    // Whatever it writes into the memory that it shares with one publisher, no other process loses a record.
    for (name, ring) in attacker.given(is_in, 1) {
        assert!(fs::ftruncate(ring, 0).is_err(), "{name}");
        let memory = Memfd::open(ring.try_clone().unwrap(), Access::Write).unwrap();
        memory.words().iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fs::fallocate(ring, hole, 0, memory.bytes()).unwrap();
        assert!(fs::fcntl_add_seals(ring, SealFlags::FUTURE_WRITE).is_err(), "{name}");
    }
    let ran = outcome(pipeline);
    assert_eq!((&ran["lost"], &ran["restarts"]), (&0.into(), &0.into()), "{ran}");
    assert_eq!(
        (&ran["ticks_published"], &ran["orders"]),
        (&ran["ticks_scheduled"], &ran["answers"]),
        "{ran}"
    );
    assert!(ran["orders"].as_u64() > Some(0), "{ran}");
}

/// Document of a pipeline, which must end without an error.
fn outcome(mut pipeline: Pipeline) -> Value {
    let output = pipeline.0.take().unwrap().wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A node can punch holes into its segment before it shares it. In pages of the reserved pool, each access to them
/// could end a reader, or the master.
#[test]
fn a_writer_that_punches_holes_before_it_shares_its_segment_is_refused() {
    let runs = TempDir::new().unwrap();
    let (_pipeline, socket) = pipeline(runs.path());
    let punch = |descriptors: &[OwnedFd]| {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fs::fallocate(&descriptors[3], hole, 4096, 8192).unwrap();
    };
    let answer = Attacker::join(&socket, "holes", punch).map(|_| ());
    assert!(answer.as_ref().is_err_and(|reason| reason.contains("segment")), "{answer:?}");
}
