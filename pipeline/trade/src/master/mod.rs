//! The process that allocates all memory, shares it with the nodes, and supervises them.
//!
//! ```text
//! let mut master = Master::open(Options::new(RunFolder::named("main")?))?;
//! loop { for happened in master.turn(Duration::from_millis(100))? { .. } }
//! ```
//!
//! A master executes one turn after the other in one thread. It is off the hot path: nodes publish and read
//! without it, and continue if it dies.

mod admit;
mod bury;
mod claims;
mod connection;
mod descriptors;
mod linking;
mod links;
mod lock;
mod member;
mod memory;
mod options;
mod program;
mod ready;
mod silence;
mod step;
mod used;
mod visitors;

pub use lowlat_ipc::region::Access;
pub use options::{Area, Happened, NodeStatus, Options, Standing};
pub use program::{Program, Stopped};
pub use used::{Use, private_bytes};
pub use visitors::Visitors;

use crate::roles::td::HALT;
use claims::Claims;
use connection::{Connection, ConnectionPhase};
use links::Links;
use lowlat_ipc::region::{Memfd, Region};
use lowlat_node::{
    Counters, MASTER_HEARTBEAT, Memory, Refusal, TD_STREAM,
    address::RunFolder,
    clock::{RunClock, now_ns},
    control::{COMMAND_BYTES_MAX, CONTROL_STREAM, Lent, ToNode},
    ledger::{self, Ledger},
};
use member::{Member, Stream};
use memory::{Maker, WrittenBy};
use ready::{EventTag, ReadyList};
use rustix::{
    fs::{Gid, Mode, chmod, chown, rename},
    io::Errno,
    net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType},
    thread::{CpuSet, sched_getaffinity},
};
use std::{
    collections::BTreeMap,
    os::fd::OwnedFd,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

/// Longest interval of its heartbeat.
const HEARTBEAT: Duration = Duration::from_millis(100);
const BACKLOG: i32 = 1024;
/// Interval of checks of the logs' lengths.
const TRIM_NS: u64 = 1_000_000_000;
/// Maximum messages queued for a node that does not read them: a few times what a publisher gets if all others
/// join at once.
const WAITING_MAX: usize = 8192;

#[derive(Debug)]
pub struct Master {
    options: Options,
    listener: OwnedFd,
    ready_list: ReadyList,
    connections: BTreeMap<u64, Connection>,
    next_connection: u64,
    members: Vec<Member>,
    links: Links,
    areas: Vec<(Area, Memory)>,
    page: Memory,
    /// The clock of a run over a recording.
    clock: Option<RunClock>,
    claims: Claims,
    maker: Maker,
    generation: u64,
    has_begun: bool,
    happened: Vec<Happened>,
    /// Events of internal turns, for the user's next turn.
    kept: Vec<Happened>,
    programs: Vec<program::Running>,
    is_stopping: bool,
    /// Affinity of this thread when the master was opened; `None` if unknown.
    cpus: Option<CpuSet>,
    /// When heartbeats were last checked.
    looked_ns: u64,
    /// When logs were last shortened.
    trimmed_ns: u64,
    /// No connection is accepted before that time, because descriptors are short.
    accept_ns: u64,
    /// Nodes with too many queued messages.
    clogged: Vec<u32>,
    // Last: the folder is unlocked after everything else is dropped.
    held: lock::LockedFolder,
}

impl Master {
    /// Locks the run folder, creates the named areas and listens.
    pub fn open(options: Options) -> Result<Self, Refusal> {
        let held = lock::hold(&options.folder, options.group)?;
        lowlat_node::raise_open_files();
        let mut maker = Maker::new(options.may_use_huge_pages, options.memory_bytes_max);
        let page = maker.make(WrittenBy::Own, "master", 4096).map_err(Refusal::of)?;
        // Fails now, not at its first node, if it cannot create read-only descriptors.
        page.reader_fd().map_err(Refusal::of)?;
        let clock = options.clock.and_then(|(pace, time_ns)| RunClock::create(&page, pace, time_ns));
        let mut areas = Vec::new();
        for area in &options.areas {
            areas.push((
                area.clone(),
                maker.make(WrittenBy::Shared, &area.name, area.bytes).map_err(Refusal::of)?,
            ));
        }
        let claims = Claims::new(&mut maker).map_err(Refusal::of)?;
        areas.push(claims.area());
        let listener = listen(&options.folder, options.group)?;
        let ready_list =
            ReadyList::new(&listener).map_err(socket_error("wait on socket", &options.folder))?;
        let master = Self {
            options,
            listener,
            ready_list,
            connections: BTreeMap::new(),
            next_connection: 0,
            members: Vec::new(),
            links: Links::default(),
            areas,
            page,
            clock,
            claims,
            maker,
            generation: 0,
            has_begun: false,
            happened: Vec::new(),
            kept: Vec::new(),
            programs: Vec::new(),
            is_stopping: false,
            cpus: sched_getaffinity(None).ok(),
            looked_ns: 0,
            trimmed_ns: 0,
            accept_ns: 0,
            clogged: Vec::new(),
            held,
        };
        master.beat();
        Ok(master)
    }

    pub fn folder(&self) -> &RunFolder {
        &self.options.folder
    }

    /// All nodes that ever joined, by number.
    pub fn nodes(&self) -> Vec<NodeStatus> {
        self.members.iter().map(Member::status).collect()
    }

    /// Records in a node's stream, of all its processes; `None` if it has none.
    pub fn published(&self, number: u32) -> Option<u64> {
        let member = self.member(number)?;
        member.published()
    }

    /// Records delivered to a node that it has not taken; 0 if it does not exist.
    pub fn waiting(&self, name: &str) -> u64 {
        self.named(name).map_or(0, |member| self.links.waiting(member.number))
    }

    /// Counters of a node's present process; `None` if the node does not exist, or has left.
    pub fn counters(&self, name: &str) -> Option<&Counters> {
        self.named(name)?.counters.as_ref()
    }

    /// A named area; `None` if it does not exist.
    pub fn area(&self, name: &str) -> Option<&Arc<Memfd>> {
        self.areas.iter().find(|(area, _)| area.name == name).map(|(_, memory)| memory)
    }

    /// Allocated memory by kind of page, in bytes.
    pub fn backing_bytes(&self) -> &BTreeMap<String, u64> {
        &self.maker.backing_bytes
    }

    /// Bytes of it that could not be locked, because the limit on locked memory is too low.
    pub fn unlocked_bytes(&self) -> u64 {
        self.maker.unlocked_bytes
    }

    /// All nodes have joined: notifies every node, and each that joins from now on.
    pub fn begin(&mut self) {
        self.has_begun = true;
        self.clock.iter().for_each(RunClock::start);
        self.tell_all(&ToNode::Begin);
    }

    /// Asks every node to stop.
    pub fn stop(&mut self) {
        self.tell_all(&ToNode::Stop);
    }

    /// Asks one node to stop.
    pub fn stop_node(&mut self, name: &str) -> Result<(), Refusal> {
        let number = self.find(name)?;
        self.tell(number, &ToNode::Stop, Vec::new());
        Ok(())
    }

    /// Sends a command to the role of a node.
    pub fn command(&mut self, name: &str, text: &str) -> Result<(), Refusal> {
        if text.len() > COMMAND_BYTES_MAX {
            return Err(Refusal::new(format!(
                "cannot send a command of {} bytes: the maximum is {COMMAND_BYTES_MAX}",
                text.len()
            )));
        }
        let number = self.find(name)?;
        self.tell(number, &ToNode::Command { text: text.to_owned() }, Vec::new());
        Ok(())
    }

    /// Halts a strategy, or all of them, or ends that, for td and its successors. td then cancels their open orders.
    fn halt(&mut self, strategy: Option<u32>, is_halted: bool) -> Result<(), String> {
        let area = self.area(ledger::AREA).cloned();
        let area = area.ok_or("this run has no td\nhint: lowlat pipeline ps lists the nodes of a run")?;
        Ledger::look(area).map_err(|error| error.to_string())?.set_halted(strategy, is_halted);
        // A td that is dead has a successor, which looks at its start.
        self.command(TD_STREAM, HALT).ok();
        let whom = strategy.map_or("all strategies".to_owned(), |number| format!("strategy {number}"));
        let text = format!("{} {whom}", if is_halted { "halted" } else { "resumed" });
        self.happened.push(Happened::Said { name: "its user".to_owned(), text });
        Ok(())
    }

    /// Waits, for `longest` at most, until something happens, and handles it. Returns what happened.
    pub fn turn(&mut self, longest: Duration) -> Result<Vec<Happened>, Refusal> {
        let longest = self.step(longest.min(HEARTBEAT));
        let ready = self.wait(longest)?;
        self.beat();
        // Existing connections before new ones: the end of a process is handled before its restart.
        for tag in &ready {
            if let EventTag::Connection(id) = *tag {
                self.flush(id);
                self.listen(id);
            }
        }
        for tag in &ready {
            if let EventTag::Member(number) = *tag {
                self.hear_out(number);
                self.bury(number, "its process ended", Standing::Dead);
            }
        }
        self.reap(&ready);
        self.accept()?;
        self.bury_clogged();
        let now_ns = now_ns();
        self.connect_again(now_ns);
        self.end_waits(now_ns);
        self.tidy_connections(now_ns);
        self.look_for_silence(now_ns);
        self.start_due(now_ns);
        if now_ns.saturating_sub(self.trimmed_ns) >= TRIM_NS {
            self.trimmed_ns = now_ns;
            self.trim_logs();
        }
        let mut happened = std::mem::take(&mut self.kept);
        happened.append(&mut self.happened);
        Ok(happened)
    }

    /// Drops nodes that do not read their messages.
    fn bury_clogged(&mut self) {
        for number in std::mem::take(&mut self.clogged) {
            let reason = format!("dropped: it has not read {WAITING_MAX} messages");
            self.bury(number, &reason, Standing::Dead);
        }
    }

    /// Reads what a node sent before it is dropped: that still counts.
    fn hear_out(&mut self, number: u32) {
        if let Some(id) = self.member(number).and_then(|member| member.connection) {
            self.listen(id);
        }
    }

    fn beat(&self) {
        if let Some(word) = self.page.words().get(MASTER_HEARTBEAT) {
            // Relaxed: the word does not order other memory. Read by `Node::look_for_master`.
            word.store(now_ns(), Ordering::Relaxed);
        }
    }

    fn find(&self, name: &str) -> Result<u32, Refusal> {
        let found = self.named(name).filter(|member| member.is_there());
        found.map(|member| member.number).ok_or_else(|| {
            let known = self.members.iter().filter(|member| member.is_there());
            let known: Vec<_> = known.map(|member| member.name.as_str()).collect();
            Refusal::new(format!("no node {name} has joined; joined nodes: {}", known.join(", ")))
        })
    }

    fn named(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }

    /// Numbers of the nodes for which this holds.
    fn numbers(&self, holds: impl Fn(&Member) -> bool) -> Vec<u32> {
        self.members.iter().filter(|member| holds(member)).map(|member| member.number).collect()
    }

    fn member(&self, number: u32) -> Option<&Member> {
        self.members.get(usize::try_from(number).ok()?)
    }

    /// The stream of a node, if it writes one.
    fn stream(&self, number: u32) -> Option<&Stream> {
        self.member(number)?.stream.as_ref()
    }

    fn member_mut(&mut self, number: u32) -> Option<&mut Member> {
        self.members.get_mut(usize::try_from(number).ok()?)
    }

    fn tell_all(&mut self, message: &ToNode) {
        for number in self.numbers(Member::is_running) {
            self.tell(number, message, Vec::new());
        }
    }

    /// Sends a message to a node and marks its inbox. Ended nodes are detected elsewhere.
    fn tell(&mut self, number: u32, message: &ToNode, memory: Vec<Lent>) {
        let Some(id) = self.member(number).and_then(|member| member.connection) else { return };
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.socket.send(message, memory).ok();
        self.ready_list.follow(id, connection);
        if connection.socket.waiting() > WAITING_MAX {
            self.clogged.push(number);
        }
        if let Some(member) = self.member(number) {
            member.notify(CONTROL_STREAM);
        }
    }

    fn flush(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id).filter(|other| other.socket.is_waiting()) else {
            return;
        };
        connection.socket.flush().ok();
        self.ready_list.follow(id, connection);
        if let ConnectionPhase::Member(number) = connection.phase
            && let Some(member) = self.member(number)
        {
            member.notify(CONTROL_STREAM);
        }
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        self.say_goodbye();
        self.kill_programs();
        std::fs::remove_file(self.options.folder.socket()).ok();
    }
}

/// The refusal for an error of the socket; `doing` is the attempted operation.
fn socket_error(doing: &str, folder: &RunFolder) -> impl Fn(Errno) -> Refusal {
    move |error| Refusal::new(format!("cannot {doing} {}: {error}", folder.socket().display()))
}

fn listen(folder: &RunFolder, group: Option<u32>) -> Result<OwnedFd, Refusal> {
    let path = folder.socket();
    let failed = |doing| socket_error(doing, folder);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(failed("create socket"))?;
    // Nodes wait until the socket has its name: it then listens.
    let unnamed = path.with_file_name("master.new");
    // Left by a master that was killed.
    std::fs::remove_file(&unnamed).ok();
    let address = SocketAddrUnix::new(&unnamed).map_err(failed("use the path of socket"))?;
    net::bind(&fd, &address).map_err(failed("bind socket"))?;
    // Before it listens. Other users would be refused anyway, but must not even connect.
    let of_group = if group.is_some() { Mode::RGRP | Mode::WGRP } else { Mode::empty() };
    chown(&unnamed, None, group.map(Gid::from_raw)).map_err(failed("change the group of socket"))?;
    chmod(&unnamed, Mode::RUSR | Mode::WUSR | of_group).map_err(failed("protect socket"))?;
    net::listen(&fd, BACKLOG).map_err(failed("listen"))?;
    rename(&unnamed, &path).map_err(failed("name socket"))?;
    Ok(fd)
}
