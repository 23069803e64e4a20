//! A process's side of the pipeline: it joins a master, publishes at most one stream, and reads any number.
//!
//! ```text
//! let mut node = Node::join(&folder.socket(), &Join { name: "s1".into(), role: "strategy".into(), .. })?;
//! while !is_over {
//!     node.wait(None);
//!     node.poll(&mut |publisher, event| match event {
//!         Event::Record { .. } => .., Event::Stop => is_over = true, ..
//!     });
//! }
//! ```
//!
//! Publishing may start with [`Event::Begin`]: all readers are connected then. Neither publishing nor reading
//! needs the master, allocates, or makes a system call, except to wake sleeping readers and to sleep.
//!
//! A node belongs to the process that joined. In a process forked from it the node refuses to publish, reports
//! [`NodeEnded::Forked`], and is dropped without a message or a store that the joined process could notice.
//!
//! [`NodePublishError`] is specific to this crate, because a node may have no stream; [`Published`] also contains
//! the deliveries; [`Node::ended`] returns why a node was stopped other than by its master's request;
//! [`Keys::Own`] stands for the number that a node does not know before it joins.

mod backlog;
mod control;
mod counters;
mod direct;
mod incoming;
mod join;
mod overrun;
mod publisher;
mod ready;
mod rehearsal;
mod slice;
mod turn;
mod waiting;

pub use counters::{COUNT_MAX, COUNTERS_BYTES, Counters, Figures, Received};
pub use incoming::StreamName;
pub use join::{JoinError, ask, raise_open_files};
pub use overrun::Overrun;
pub use publisher::{NodePublishError, Published, Publisher, cpu_set};
pub use turn::{Awaited, NodeTurn};

use crate::{
    Refusal,
    clock::{RunClock, monotonic_ns},
    control::{COMMAND_BYTES_MAX, CONTROL_STREAM, Socket, ToMaster, WithoutMaster},
    ledger::{self, Ledger},
};
use incoming::{ReadOutcome, Source, Sources};
use lowlat_ipc::{
    fork::ForkMark,
    inbox::{Inbox, STREAMS_MAX},
    region::Memfd,
    stream::{Record, Segment},
};
use ready::ReadyDescriptor;
#[cfg(feature = "testing")]
pub use rehearsal::Rehearsal;
#[cfg(not(feature = "testing"))]
use rehearsal::Rehearsal;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};
use thiserror::Error;
use waiting::Waiting;

pub type Memory = Arc<Memfd>;
/// The type that [`Memory`] points to.
pub type MemoryBehind = Memfd;

/// Records of one stream that a poll takes before it continues with the next.
const BATCH: usize = 256;
/// Polls between two reads of the clock.
const POLLS_PER_BEAT: u32 = 1 << 12;
/// Records of a batch between two reads of the clock, which take a small part of the time of the records.
const RECORDS_PER_BEAT: usize = 16;
const _: () = assert!(BATCH.is_multiple_of(RECORDS_PER_BEAT));
/// Longest interval of checks of anything outside shared memory.
const BEAT_NS: u64 = 100_000_000;
/// Word of the master's page with its last heartbeat, in the pipeline's clock.
pub const MASTER_HEARTBEAT: usize = 0;

/// Waiting mode of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// It spins, and never sleeps.
    Fast,
    /// It sleeps until it is woken.
    #[default]
    Parked,
    /// It spins as long as that pays, then sleeps.
    Adaptive,
}

/// Records of a stream that a node wants, by `stamp.instrument`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keys {
    All,
    /// Those of these instruments; for answers, those for these strategies.
    Only(Vec<u32>),
    /// Those with the node's own number, which it learns by joining.
    Own,
    /// Those of the node's strategies ([`Join::strategies`]): the answers to their orders.
    Strategies,
}

/// Strategies whose orders a node sends. Each number belongs to one node: the master refuses a number of
/// another node, and td refuses orders of a strategy that is not the sender's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategies {
    /// None: the node sends no orders.
    #[default]
    None,
    /// One, with a number that the master assigns. A node that restarts under its name gets the same number.
    Free,
    /// Those with these numbers, each below [`crate::STRATEGIES_MAX`].
    Only(Vec<u32>),
}

/// The stream that a node writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Writes {
    pub stream: String,
    /// Bytes of its ring: a power of two, at least 4 KiB.
    pub capacity_bytes: u64,
    /// Rows of its interest table: an upper bound of instruments.
    pub keys: u32,
    /// The writer supports being refused when a reader has no room ([`Overrun::Credit`]), and then does something else.
    #[serde(default)]
    pub gives_credit: bool,
}

impl Writes {
    /// A stream whose writer does not wait for its readers.
    pub fn new(stream: &str, capacity_bytes: u64, keys: u32) -> Self {
        Self { stream: stream.to_owned(), capacity_bytes, keys, gives_credit: false }
    }

    /// The same with [`Writes::gives_credit`].
    #[must_use]
    pub fn giving_credit(self) -> Self {
        Self { gives_credit: true, ..self }
    }
}

/// The first record of a stream that a node gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadsFrom {
    /// The first one that is published after it has joined.
    #[default]
    Head,
    /// The oldest one that the stream's ring has kept.
    Oldest,
    /// The one after this sequence: of the last record that the node has read in a recording of the same run, so that
    /// it gets each record once. Records that are not kept any more are lost; they count whether or not the node wants
    /// them.
    After(u64),
}

/// Streams that a node reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reads {
    /// A stream's name, or a prefix and a star (`orders.*`). The streams need not exist yet.
    pub streams: String,
    pub keys: Keys,
    /// Policy for records that the node is too slow for.
    #[serde(default)]
    pub overrun: Overrun,
    /// The first record that the node gets.
    #[serde(default)]
    pub from: ReadsFrom,
}

impl Reads {
    /// Records of these streams, with gaps where this node is too slow.
    pub fn new(streams: &str, keys: Keys) -> Self {
        Self { streams: streams.to_owned(), keys, overrun: Overrun::default(), from: ReadsFrom::default() }
    }

    /// True if these include the stream.
    pub fn is_of(&self, stream: &str) -> bool {
        let start = self.streams.strip_suffix('*');
        start.map_or(self.streams == stream, |start| stream.starts_with(start))
    }

    /// Number of keys that it lists.
    pub fn keys_listed(&self) -> usize {
        if let Keys::Only(keys) = &self.keys { keys.len() } else { 0 }
    }

    #[must_use]
    pub fn with(self, overrun: Overrun) -> Self {
        Self { overrun, ..self }
    }

    /// The same with another first record. A restarted process continues where its predecessor ended instead.
    #[must_use]
    pub fn starting(self, from: ReadsFrom) -> Self {
        Self { from, ..self }
    }
}

/// A node's request to join.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Join {
    /// Its name, unique among the nodes of the master. A process restarted under it keeps its number.
    pub name: String,
    /// Its role, for display.
    pub role: String,
    /// The stream that it writes.
    pub writes: Option<Writes>,
    /// The streams that it reads.
    pub reads: Vec<Reads>,
    pub wait: Wait,
    /// Strategies whose orders it sends.
    pub strategies: Strategies,
}

impl Join {
    /// A node that neither reads nor writes yet, and sleeps while it waits.
    pub fn new(name: &str, role: &str) -> Self {
        Self { name: name.to_owned(), role: role.to_owned(), ..Self::default() }
    }

    /// The same with the stream that it writes, if any.
    #[must_use]
    pub fn writing(self, writes: impl Into<Option<Writes>>) -> Self {
        Self { writes: writes.into(), ..self }
    }

    /// The same with the streams that it reads.
    #[must_use]
    pub fn reading(self, reads: impl IntoIterator<Item = Reads>) -> Self {
        Self { reads: reads.into_iter().collect(), ..self }
    }

    /// The same with another way to wait.
    #[must_use]
    pub fn waiting(self, wait: Wait) -> Self {
        Self { wait, ..self }
    }

    /// The same with strategies whose orders it sends.
    #[must_use]
    pub fn claiming(self, strategies: Strategies) -> Self {
        Self { strategies, ..self }
    }
}

/// An event of a poll.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A record of a stream that this node reads.
    Record { stream: &'a StreamName, record: &'a Record, payload: &'a [u8] },
    /// Records of that stream that this node lost: it was too slow, or its ring was full.
    Lost { stream: &'a StreamName, count: u64 },
    /// All nodes have joined: publishing may start. Records of nodes that learnt it earlier may come before it.
    Begin,
    /// The node should stop. [`Node::ended`] returns the reason, unless the master requested it.
    Stop,
    /// A command of the master's user for the role.
    Command(&'a str),
    /// The time set with [`Publisher::set_timer`] has come.
    Timer { due_ns: u64 },
}

/// Reason why a node ends without a request of its master.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NodeEnded {
    /// The master dropped this process and may have started another in its place.
    #[error(
        "the master dropped this process: it was silent for too long, or the master's user requested it; it can no \
         longer publish\nhint: restart this program"
    )]
    Fenced,
    /// The master refused the node after it had joined.
    #[error("the master refused this node: {reason}")]
    Refused {
        /// The master's reason, with a hint.
        reason: String,
    },
    /// The master died without stopping its nodes, and they stop with it.
    #[error("the master has died without stopping its nodes\nhint: restart it, then this program")]
    MasterGone,
    /// The calling process was forked from the one that joined.
    #[error("cannot use the node: {}", publisher::forked(*.pid))]
    Forked {
        /// The process that joined.
        pid: u32,
    },
}

/// Cause of a node's end. The first one counts.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    Stopped,
    Because(NodeEnded),
}

/// Message to the master from a node that is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnDrop {
    Leave,
    /// No message, unless it was stopped: it counts as dead.
    Die,
}

#[derive(Debug)]
pub struct Node {
    number: u32,
    epoch: u64,
    name: String,
    socket: Socket,
    inbox: Inbox<Memory>,
    inbox_memory: Memory,
    /// Once its descriptor is wanted.
    ready: Option<ReadyDescriptor>,
    counters: Counters,
    /// By bit in the inbox; that of the master's messages has none.
    incoming: Vec<Option<Sources>>,
    /// Bits that were taken from the inbox and not yet processed, by the same number.
    pending: [u64; STREAMS_MAX as usize / 64],
    /// Streams that it polls itself, as bits: [`direct`].
    direct: u64,
    /// Those of them that it follows.
    followed: u64,
    /// What it asked to read.
    reads: Vec<Reads>,
    /// The next poll takes the bits of those too.
    takes_all: bool,
    /// Only in a node that spins.
    rehearsal: Option<Box<Rehearsal>>,
    publisher: Publisher,
    payload: Vec<u8>,
    waiting: Waiting,
    areas: BTreeMap<String, Memory>,
    strategies: Vec<u32>,
    /// Their turns, including released ones.
    turns: BTreeMap<u32, u32>,
    master: Memory,
    /// The clock of a run over a recording.
    clock: Option<RunClock>,
    /// Its turns in a stepped run.
    turn: Option<NodeTurn>,
    /// Polls of this turn that found nothing, in a row.
    idle_polls: u32,
    /// Streams of a poll in a turn.
    by_name: Vec<u32>,
    without_master: WithoutMaster,
    has_master: bool,
    end: Option<End>,
    /// True once [`Event::Stop`] was returned.
    is_told: bool,
    polls: u32,
    drop: OnDrop,
}

impl Node {
    /// Joins the master that listens at this socket. When it returns, all running publishers know this node,
    /// and it loses nothing that they publish from then on. After the begin it waits for them to poll, up to 250
    /// ms each; of one that does not, it gets what that one publishes after its next poll, and a successor
    /// everything that was kept for its predecessor.
    pub fn join(master: &Path, join: &Join) -> Result<Self, JoinError> {
        Self::join_within(master, join, join::ANSWER_MAX)
    }

    /// Joins, unless it takes longer than this.
    pub fn join_within(master: &Path, join: &Join, within: Duration) -> Result<Self, JoinError> {
        join::join_within(master, join, within)
    }

    /// From here on, only a stop request ends the node in order. If it is dropped before, it dies, and what it
    /// has not read is kept for its successor, as it is after a panic. Otherwise a node that is dropped leaves.
    pub fn must_be_stopped(&mut self) {
        self.drop = OnDrop::Die;
    }

    /// Its number, below 1,024: the same after a restart under the same name.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Number of processes under this name, including this one: 1 for the first.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The numbers of its strategies, in ascending order. A claimed number is missing if the node released it
    /// ([`Node::release`]) before a restart.
    pub fn strategies(&self) -> &[u32] {
        &self.strategies
    }

    /// Number of processes that had a strategy of this node before it: [`crate::strategy::Numbers::of_turn`].
    pub fn turn(&self, strategy: u32) -> Option<u32> {
        self.turns.get(&strategy).copied()
    }

    /// Releases a strategy, which another node may claim from then on. Pending orders are still answered.
    pub fn release(&mut self, strategy: u32) {
        if self.is_forked() {
            return;
        }
        self.strategies.retain(|number| *number != strategy);
        // A master that has ended assigns no numbers.
        self.socket.send(&ToMaster::Release { strategy }, Vec::new()).ok();
    }

    /// Now, in the clock of its run, ns.
    fn now_ns(&self) -> u64 {
        self.clock.as_ref().map_or_else(monotonic_ns, RunClock::now_ns)
    }

    /// True if its run is stepped ([`crate::clock::Pace::Stepped`]): nodes work in turns.
    pub fn is_stepped(&self) -> bool {
        self.clock.as_ref().is_some_and(RunClock::is_stepped)
    }

    pub fn waits(&self) -> Wait {
        self.waiting.wait
    }

    /// Records in its stream, including those of its predecessors: see [`Publisher::published`].
    pub fn published(&self) -> u64 {
        self.publisher.published()
    }

    pub fn publisher(&mut self) -> &mut Publisher {
        &mut self.publisher
    }

    /// Its counters. The master reads them while the node runs.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A named area for the writer of this node's stream (an option of its master); `None` for any
    /// other.
    pub fn area(&self, name: &str) -> Option<&Arc<Memfd>> {
        self.areas.get(name)
    }

    /// td's ledger: the positions and open orders of strategies. `None` if the run has none, or this node sends no
    /// orders. td enters a decision after it has published it, so an answer may be read first.
    pub fn ledger(&self) -> Option<Result<Ledger<Memory>, Refusal>> {
        self.area(ledger::AREA).cloned().map(Ledger::look)
    }

    /// The segments of the streams that this node reads, oldest first per stream. For programs that follow
    /// whole streams themselves, such as a recorder: a node without any key, `Keys::Only(vec![])`, costs
    /// publishers nothing.
    pub fn segments(&self) -> impl Iterator<Item = (&StreamName, Segment<Arc<Memfd>>)> {
        let sources = self.incoming.iter().flatten();
        sources.flat_map(|sources| sources.segments().map(|segment| (&sources.name, segment)))
    }

    /// The mark of the process that joined, the only one in which the node works.
    pub fn mark(&self) -> &Arc<ForkMark> {
        self.publisher.mark()
    }

    fn is_forked(&self) -> bool {
        !self.publisher.mark().is_this_process()
    }

    /// Sends a message to the master's user, at most as long as a command. Not for the hot path.
    pub fn say(&mut self, text: &str) {
        if self.is_forked() {
            return;
        }
        let text = text.chars().take(COMMAND_BYTES_MAX / 4).collect();
        // A master that has ended is detected elsewhere.
        self.socket.send(&ToMaster::Say { text }, Vec::new()).ok();
    }

    /// Returns the reason why the node ends without a request of its master; `None` while it may continue, and after
    /// the master has stopped it.
    pub fn ended(&self) -> Option<NodeEnded> {
        if self.is_forked() {
            return Some(NodeEnded::Forked { pid: self.mark().pid() });
        }
        match &self.end {
            Some(End::Because(ended)) => Some(ended.clone()),
            Some(End::Stopped) | None => None,
        }
    }

    /// The result of a role whose work has ended, unless the node has ended without a request of its master.
    pub fn result<T>(&self, done: T) -> Result<T, Refusal> {
        self.ended().map_or(Ok(done), |ended| Err(Refusal::of(ended)))
    }

    /// Handles what is available and never blocks. Returns the number of events.
    #[inline]
    pub fn poll(&mut self, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        if self.is_forked() {
            return self.stop(take);
        }
        if self.ready.is_some() {
            return self.poll_ready(take);
        }
        self.poll_all(take)
    }

    /// A poll of a node with a descriptor.
    #[cold]
    fn poll_ready(&mut self, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        self.ready.iter().for_each(ReadyDescriptor::clear);
        self.beat(monotonic_ns());
        let events = self.poll_all(take);
        let until_ns = match &self.turn {
            // The poll after it ends the turn.
            Some(_) if events > 0 => 0,
            Some(_) => u64::MAX,
            None => self.monotonic_of(self.publisher.timer_ns()),
        };
        self.ready.iter().for_each(|ready| ready.arm(until_ns));
        events
    }

    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn poll_all(&mut self, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        if let Some(turn) = self.turn.clone() {
            return self.poll_in_turn(&turn, take);
        }
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_PER_BEAT) {
            self.beat(monotonic_ns());
            self.takes_all = true;
        }
        let has_found = self.look();
        let left = if std::mem::take(&mut self.takes_all) {
            self.mark_followed();
            0
        } else {
            self.direct
        };
        let pending = &mut self.pending;
        let taken = self.inbox.take_ready_but(left, |stream| mark(pending, stream));
        let mut events = self.ring(take);
        if self.must_end() {
            events += self.end(take);
            if self.counters.is_fenced() {
                return events;
            }
        }
        if !has_found && taken == 0 && !self.is_pending() {
            return events;
        }
        for number in 0..self.inbox.words_expected() {
            let mut bits = self.pending.get_mut(number).map_or(0, std::mem::take);
            while bits != 0 {
                let stream = u32::try_from(number).unwrap_or(0) * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                events += if stream == CONTROL_STREAM { self.control(take) } else { self.read(stream, take) };
            }
        }
        events
    }

    /// Sends a heartbeat, for programs that work for long on the result of a poll. Polling and waiting do so
    /// automatically, also between the records of one poll.
    pub fn show_life(&mut self) {
        if !self.is_forked() {
            self.beat(monotonic_ns());
        }
    }

    /// Waits, as defined by [`Join::wait`], until something is available or the pipeline's clock shows
    /// `until_ns`.
    pub fn wait(&mut self, until_ns: Option<u64>) {
        self.wait_rehearsing(until_ns, &mut |_, _| ());
    }

    /// Rehearses, for idle programs that read the clock themselves: see [`Node::wait_rehearsing`]. Does nothing
    /// in a node that sleeps, or if something is due at `due_ns` and that is too soon; pass u64::MAX if nothing
    /// is known to be due.
    #[inline]
    pub fn rehearse(
        &mut self,
        now_ns: u64,
        due_ns: u64,
        rehearsed: &mut dyn FnMut(&mut Publisher, Event<'_>),
    ) {
        if self.is_forked() {
            return;
        }
        if self.rehearsal.as_mut().is_some_and(|rehearsal| rehearsal.run(now_ns, due_ns, rehearsed)) {
            self.publisher.warm();
        }
    }

    /// True if a poll would find something.
    fn is_ready(&self) -> bool {
        self.inbox.is_ready() || self.is_ready_beside()
    }

    /// True if a poll would find something outside the inbox.
    fn is_ready_beside(&self) -> bool {
        self.is_pending() || (!self.is_told && self.must_end())
    }

    fn is_pending(&self) -> bool {
        self.pending.iter().take(self.inbox.words_expected()).any(|bits| *bits != 0)
    }

    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn read(&mut self, stream: u32, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        let mut events = 0;
        while events < BATCH {
            let (count, may_go_on) = self.read_some(stream, take);
            events += count;
            if !may_go_on {
                return events;
            }
            // Work on a record may take long, and a node that always has work never waits.
            self.beat(monotonic_ns());
        }
        mark(&mut self.pending, stream);
        events
    }

    /// Handles what is available of a stream, up to a limit. Returns the number of events, and whether there
    /// may be more.
    #[inline]
    fn read_some(&mut self, stream: u32, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> (usize, bool) {
        let place = usize::try_from(stream).ok().and_then(|at| self.incoming.get_mut(at));
        let Some(sources) = place.and_then(Option::as_mut) else { return (0, false) };
        for count in 0..RECORDS_PER_BEAT {
            // If it is dropped in the middle of a batch, it leaves the rest to its successor.
            if self.counters.is_fenced() {
                mark(&mut self.pending, stream);
                return (count, false);
            }
            match sources.next(&mut self.payload) {
                ReadOutcome::Record(record) => {
                    self.counters.add_read(sources.counted_as);
                    let payload = &self.payload;
                    let event = Event::Record { stream: &sources.name, record: &record, payload };
                    take(&mut self.publisher, event);
                }
                ReadOutcome::Lost(count) => {
                    self.counters.add_lost(sources.counted_as, count);
                    take(&mut self.publisher, Event::Lost { stream: &sources.name, count });
                }
                ReadOutcome::Evicted(first) => {
                    let (writer, after) = (sources.name.writer(), sources.last_sequence);
                    // If this cannot be sent, the node is reconnected when its writer is.
                    self.socket.send(&ToMaster::Again { writer, after, first }, Vec::new()).ok();
                }
                ReadOutcome::Nothing => return (count, false),
            }
        }
        (RECORDS_PER_BEAT, true)
    }

    /// Sends a heartbeat, and checks what no bit announces: whether the master is still running. At most every
    /// 100 ms.
    #[inline]
    fn beat(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.counters.heartbeat_ns()) >= BEAT_NS {
            self.beat_now(now_ns);
        }
    }

    #[cold]
    fn beat_now(&mut self, now_ns: u64) {
        self.counters.set_heartbeat(now_ns);
        self.counters.set_woken_and_missed(self.inbox.woken_and_missed());
        self.look_for_master(now_ns);
    }

    /// Returns [`Event::Timer`] if a timer is due. Returns the number of events.
    #[inline]
    fn ring(&mut self, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        if self.publisher.timer_ns() == u64::MAX { 0 } else { self.ring_at(self.now_ns(), take) }
    }

    #[cold]
    fn ring_at(&mut self, now_ns: u64, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        let due_ns = self.publisher.timer_ns();
        if now_ns < due_ns {
            return 0;
        }
        self.publisher.set_timer(u64::MAX);
        take(&mut self.publisher, Event::Timer { due_ns });
        1
    }

    #[cold]
    fn end(&mut self, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        self.hear_last_words();
        self.end.get_or_insert(End::Because(NodeEnded::Fenced));
        self.stop(take)
    }

    /// True if it was dropped, or has another reason to end.
    fn must_end(&self) -> bool {
        self.end.is_some() || self.counters.is_fenced()
    }

    /// Returns [`Event::Stop`], once. Returns the number of events.
    #[cold]
    fn stop(&mut self, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        if std::mem::replace(&mut self.is_told, true) {
            return 0;
        }
        take(&mut self.publisher, Event::Stop);
        1
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.is_forked() {
            // Closing and unmapping inherited resources only affects this process. Nothing else would.
            self.publisher.forget_wake_helper();
            return;
        }
        let leaves = match self.end {
            Some(End::Stopped) => true,
            Some(End::Because(_)) => false,
            None => self.drop == OnDrop::Leave && !std::thread::panicking(),
        };
        if self.has_master && leaves {
            // If it fails, the master sees the socket close.
            self.socket.send(&ToMaster::Leave, Vec::new()).ok();
        }
    }
}

fn mark(pending: &mut [u64], stream: u32) {
    if let Some(bits) = usize::try_from(stream / 64).ok().and_then(|at| pending.get_mut(at)) {
        *bits |= 1 << (stream % 64);
    }
}
