//! A process's side of the pipeline: it joins a master, publishes one stream at most, and reads any number.
//!
//! ```text
//! let mut node = Node::join(&folder.socket(), &Join { name: "s1".into(), role: "strategy".into(), .. })?;
//! while !is_over {
//!     node.wait(None);
//!     node.poll(&mut |publisher, event| match event { Event::Record { .. } => .., Event::Stop => is_over = true, .. });
//! }
//! ```
//!
//! Publishing may begin with [`Event::Begin`]: all readers are connected then. Neither publishing nor reading needs the
//! master, allocates or makes a system call, but for waking who sleeps and sleeping itself.
//!
//! A node belongs to the process that joined. In a process forked from it the node refuses to publish, reports
//! [`Ended::Forked`], and is dropped without a message or a store that the joined process could notice.
//!
//! [`PublishError`] is one of this crate, since a node may have no stream; [`Published`] also says who was given the
//! record; [`Node::ended`] says why a node was stopped without its master's word; [`Keys::Own`] stands for the number
//! that a node does not know before it joins.

mod control;
mod counters;
mod direct;
mod incoming;
mod join;
mod overrun;
mod publisher;
mod rehearsal;
mod waiting;

pub use counters::{Counters, Figures};
pub use incoming::StreamName;
pub use join::JoinError;
pub use overrun::Overrun;
pub use publisher::{PublishError, Published, Publisher};

pub(crate) use counters::COUNTERS_BYTES;
pub(crate) use join::raise_open_files;

use crate::{
    clock::now_ns,
    control::{COMMAND_BYTES_MAX, CONTROL_STREAM, Socket, ToMaster, WithoutMaster},
};
use incoming::{Next, Source, Sources};
use lowlat_ipc::{
    fork::ForkMark,
    inbox::{Inbox, STREAMS_MAX},
    region::Memfd,
    stream::{Record, Segment},
};
#[cfg(test)]
pub(crate) use rehearsal::Rehearsal as NodeRehearsal;
use rehearsal::Rehearsal;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::Path, sync::Arc};
use thiserror::Error;
use waiting::Waiting;

/// Memory that processes share.
pub(crate) type Memory = Arc<Memfd>;
/// What [`Memory`] points to.
pub(crate) type MemoryBehind = Memfd;

/// Records of one stream that a poll takes before it looks at the next one.
const BATCH: usize = 256;
/// Polls between two looks at the clock.
const POLLS_PER_BEAT: u32 = 1 << 12;
/// Records of one batch between two looks at the clock, which are a small part of what so many take.
const RECORDS_PER_BEAT: usize = 16;
const _: () = assert!(BATCH.is_multiple_of(RECORDS_PER_BEAT));
/// Longest time between two looks at what is not in shared memory.
const BEAT_NS: u64 = 100_000_000;
/// Word of the master's page that holds when it was last seen, in the pipeline's clock.
pub(crate) const MASTER_HEARTBEAT: usize = 0;

/// How a process waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// It spins, and never sleeps.
    Fast,
    /// It sleeps until it is woken.
    #[default]
    Parked,
    /// It spins for as long as that pays, then sleeps.
    Adaptive,
}

/// Which records of a stream a node wants, by `stamp.instrument`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keys {
    /// All of them.
    All,
    /// Those of these instruments; of answers: those for these strategies.
    Only(Vec<u32>),
    /// Those whose number is the node's number, which it learns by joining.
    Own,
    /// Those of the node's strategies ([`Join::strategies`]): the answers to their orders.
    Strategies,
}

/// Strategies whose orders a node sends. Their numbers belong to one node each: the master refuses a number that another
/// node has, and td refuses orders of a strategy that is not the sender's.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategies {
    /// None: the node sends no orders.
    #[default]
    None,
    /// One, with a number that the master chooses. A node that restarts under its name gets the same number.
    Free,
    /// The ones with these numbers, each below [`crate::roles::STRATEGIES_MAX`].
    Only(Vec<u32>),
}

/// The stream that a node writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Writes {
    /// Its name.
    pub stream: String,
    /// Bytes of its ring: a power of two from 4 KiB.
    pub capacity_bytes: u64,
    /// Rows of its interest table: instruments are below it.
    pub keys: u32,
    /// Whether it can be told that a record has no room at a reader ([`Overrun::Credit`]), and does something else then.
    #[serde(default)]
    pub gives_credit: bool,
}

/// Streams that a node reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// A stream's name, or the beginning of many and a star (`orders.*`). They need not be there yet.
    pub streams: String,
    /// Which of their records.
    pub keys: Keys,
    /// What happens to those that it is too slow for.
    #[serde(default)]
    pub overrun: Overrun,
}

impl Reads {
    /// Records of these streams, with gaps where this node is too slow.
    pub fn new(streams: &str, keys: Keys) -> Self {
        Self { streams: streams.to_owned(), keys, overrun: Overrun::default() }
    }

    /// Keys that it lists.
    pub(crate) fn keys_listed(&self) -> usize {
        if let Keys::Only(keys) = &self.keys { keys.len() } else { 0 }
    }

    /// With another policy.
    #[must_use]
    pub fn with(self, overrun: Overrun) -> Self {
        Self { overrun, ..self }
    }
}

/// What a node says of itself when it joins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Join {
    /// Its name, which no other node of the master has. One that is started again under it keeps its number.
    pub name: String,
    /// Its role, for those who look at it.
    pub role: String,
    /// What it writes.
    pub writes: Option<Writes>,
    /// What it reads.
    pub reads: Vec<Reads>,
    /// How it waits.
    pub wait: Wait,
    /// Strategies whose orders it sends.
    pub strategies: Strategies,
}

/// What a poll gives.
#[derive(Debug)]
pub enum Event<'a> {
    /// A record of a stream that this node reads.
    Record {
        /// The stream.
        stream: &'a StreamName,
        /// The record.
        record: &'a Record,
        /// Its payload.
        payload: &'a [u8],
    },
    /// Records of that stream that are lost to this node: it was too slow, or its ring was full.
    Lost {
        /// The stream.
        stream: &'a StreamName,
        /// How many.
        count: u64,
    },
    /// All nodes are there: publishing may begin.
    Begin,
    /// The node should end. [`Node::ended`] returns the reason, unless the master asked for it.
    Stop,
    /// A word of the master's user for the role.
    Command(&'a str),
}

/// Why a node ends although its master did not ask it to.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Ended {
    /// The master gave this process up and may have started another in its place.
    #[error(
        "the master gave this process up: it was silent for too long, or the master's user asked for it; it can no \
         longer publish\nhint: start this program again"
    )]
    Fenced,
    /// The master refused the node after it had joined.
    #[error("the master refused this node: {reason}")]
    Refused {
        /// The master's reason, with what to do.
        reason: String,
    },
    /// The master died without asking its nodes to stop, and they stop with it.
    #[error(
        "the master is gone: it ended without stopping its nodes\nhint: start it again, then this program"
    )]
    MasterGone,
    /// The calling process was forked from the one that joined.
    #[error("cannot use the node: {}", publisher::forked(*.pid))]
    Forked {
        /// The process that joined.
        pid: u32,
    },
}

/// What ends a node. The first one counts, whatever comes later.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// The master asked it to stop.
    Stopped,
    /// Anything else.
    Because(Ended),
}

/// A node.
#[derive(Debug)]
pub struct Node {
    number: u32,
    epoch: u64,
    name: String,
    socket: Socket,
    inbox: Inbox<Memory>,
    counters: Counters,
    /// By the bit in the inbox.
    incoming: Vec<Option<Sources>>,
    /// Bits that were taken from the inbox and not worked off, by the same number.
    pending: [u64; STREAMS_MAX as usize / 64],
    /// Streams that it looks for itself, as bits: [`direct`].
    direct: u64,
    /// The next poll takes the bits of those too.
    takes_all: bool,
    /// Of a node that spins.
    rehearsal: Option<Box<Rehearsal>>,
    publisher: Publisher,
    payload: Vec<u8>,
    waiting: Waiting,
    areas: BTreeMap<String, Memory>,
    /// Numbers of its strategies.
    strategies: Vec<u32>,
    /// Their turns, also of those that it released.
    turns: BTreeMap<u32, u32>,
    master: Memory,
    without_master: WithoutMaster,
    has_master: bool,
    end: Option<End>,
    /// [`Event::Stop`] was given.
    is_told: bool,
    polls: u32,
}

impl Node {
    /// Joins the master that listens at this socket. When it returns, all publishers that run know this node, and nothing
    /// is lost that they publish from then on. After the begin it waits for them to poll, up to 30 s.
    pub fn join(master: &Path, join: &Join) -> Result<Self, JoinError> {
        join::join(master, join)
    }

    /// Its number, below 1,024: the same over restarts of the same name.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// How many processes of this name there were, this one counted: 1 for the first.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The numbers of its strategies, in ascending order. One that it claimed is missing if the node gave it up
    /// ([`Node::release`]) before it restarted.
    pub fn strategies(&self) -> &[u32] {
        &self.strategies
    }

    /// How many processes had a strategy of this node before it: [`crate::strategy::Numbers::of_turn`].
    pub fn turn(&self, strategy: u32) -> Option<u32> {
        self.turns.get(&strategy).copied()
    }

    /// Gives up a strategy, which another node may claim from then on. Orders that are on their way are still answered.
    pub fn release(&mut self, strategy: u32) {
        if self.is_forked() {
            return;
        }
        self.strategies.retain(|number| *number != strategy);
        // A master that is gone has no numbers to give.
        self.socket.send(&ToMaster::Release { strategy }, Vec::new()).ok();
    }

    /// Its outgoing stream.
    pub fn publisher(&mut self) -> &mut Publisher {
        &mut self.publisher
    }

    /// Its counters. Master reads them while the node runs.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A named area that is for the writer of this node's stream ([`crate::master::Options::areas`]); none for any other.
    pub fn area(&self, name: &str) -> Option<&Arc<Memfd>> {
        self.areas.get(name)
    }

    /// The segments of the streams that this node reads, of each stream oldest first. For those who follow whole streams by
    /// themselves, as a recorder does: a node that reads with no key at all, `Keys::Only(vec![])`, gives publishers no work.
    pub fn segments(&self) -> impl Iterator<Item = (&StreamName, Segment<Arc<Memfd>>)> {
        let sources = self.incoming.iter().flatten();
        sources.flat_map(|sources| sources.segments().map(|segment| (sources.name(), segment)))
    }

    /// The mark of the process that joined, the only one that the node works in.
    pub fn mark(&self) -> &Arc<ForkMark> {
        self.publisher.mark()
    }

    fn is_forked(&self) -> bool {
        !self.publisher.mark().is_this_process()
    }

    /// Says something to its master's user, of so many bytes as a command may have. Not for the hot path.
    pub fn say(&mut self, text: &str) {
        if self.is_forked() {
            return;
        }
        let text = text.chars().take(COMMAND_BYTES_MAX / 4).collect();
        // A master that is gone hears nothing, which is noticed elsewhere.
        self.socket.send(&ToMaster::Say { text }, Vec::new()).ok();
    }

    /// Why the node ends although its master did not ask it to. None while it may continue, and once the master has
    /// stopped it.
    pub fn ended(&self) -> Option<Ended> {
        if self.is_forked() {
            return Some(Ended::Forked { pid: self.mark().pid() });
        }
        match &self.end {
            Some(End::Because(ended)) => Some(ended.clone()),
            Some(End::Stopped) | None => None,
        }
    }

    /// Takes what is there and never blocks. Gives back how many events there were.
    #[inline]
    pub fn poll(&mut self, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        if self.is_forked() {
            return self.stop(take);
        }
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_PER_BEAT) {
            self.beat(now_ns());
            self.takes_all = true;
        }
        let has_found = self.look();
        let left = if std::mem::take(&mut self.takes_all) { 0 } else { self.direct };
        let pending = &mut self.pending;
        let taken = self.inbox.take_ready_but(left, |stream| mark(pending, stream));
        let mut events = 0;
        if self.must_end() {
            events = self.end(take);
            if self.counters.is_fenced() {
                return events;
            }
        }
        if !has_found && taken == 0 && self.pending.iter().all(|bits| *bits == 0) {
            return events;
        }
        for number in 0..self.pending.len() {
            let mut bits = self.pending.get_mut(number).map_or(0, std::mem::take);
            while bits != 0 {
                let stream = u32::try_from(number).unwrap_or(0) * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                events += if stream == CONTROL_STREAM { self.control(take) } else { self.read(stream, take) };
            }
        }
        events
    }

    /// Shows its master that it lives, for those who work for long on what a poll gave them before they poll again. Polling and
    /// waiting do so by themselves, also between the records of one poll.
    pub fn show_life(&mut self) {
        if !self.is_forked() {
            self.beat(now_ns());
        }
    }

    /// Waits, as [`Join::wait`] says, until something is there or the pipeline's clock shows `until_ns`.
    pub fn wait(&mut self, until_ns: Option<u64>) {
        waiting::wait(self, until_ns, &mut |_, _| ());
    }

    /// [`Node::wait`] for those who rehearse too. A node that spins keeps the way of a record warm while it has nothing to do:
    /// now and then it publishes a quote of instrument 0 to itself, in memory of its own, and reads it. `rehearsed` is given that quote as
    /// a poll would give it, with a publisher that reaches nobody else, and then, once, what it published there itself. It is to
    /// send it through the functions that real ones go through and to change nothing else.
    pub fn wait_rehearsing(
        &mut self,
        until_ns: Option<u64>,
        rehearsed: &mut dyn FnMut(&mut Publisher, Event<'_>),
    ) {
        waiting::wait(self, until_ns, rehearsed);
    }

    /// Rehearses, for those who look at the clock by themselves and have nothing to do: see [`Node::wait_rehearsing`]. Does
    /// nothing for a node that sleeps, nor when something is due at `due_ns` and that is too soon; u64::MAX when nothing is
    /// known to be.
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

    /// Whether a poll would find something.
    fn is_ready(&self) -> bool {
        self.inbox.is_ready() || self.is_ready_beside()
    }

    /// Whether it would find something that is not the inbox's.
    fn is_ready_beside(&self) -> bool {
        self.pending.iter().any(|bits| *bits != 0) || (!self.is_told && self.must_end())
    }

    fn read(&mut self, stream: u32, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        let mut events = 0;
        while events < BATCH {
            let (count, may_go_on) = self.read_some(stream, take);
            events += count;
            if !may_go_on {
                return events;
            }
            // Who works on a record may take its time, and one that is never without work does not come to wait.
            self.beat(now_ns());
        }
        mark(&mut self.pending, stream);
        events
    }

    /// Takes what is there of a stream, up to a bound. Gives back how many events that were, and whether there may be more.
    #[inline]
    fn read_some(&mut self, stream: u32, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> (usize, bool) {
        let place = usize::try_from(stream).ok().and_then(|at| self.incoming.get_mut(at));
        let Some(sources) = place.and_then(Option::as_mut) else { return (0, false) };
        for count in 0..RECORDS_PER_BEAT {
            // Given up in the middle of a batch, it leaves the rest to the process after it.
            if self.counters.is_fenced() {
                mark(&mut self.pending, stream);
                return (count, false);
            }
            match sources.next(&mut self.payload) {
                Next::Record(record) => {
                    self.counters.add_read(1);
                    let payload = &self.payload;
                    let event = Event::Record { stream: sources.name(), record: &record, payload };
                    take(&mut self.publisher, event);
                }
                Next::Lost(count) => {
                    self.counters.add_lost(count);
                    take(&mut self.publisher, Event::Lost { stream: sources.name(), count });
                }
                Next::Evicted(first) => {
                    let (writer, after) = (sources.name().writer(), sources.last_sequence());
                    // One that cannot say it is connected anew when its writer is.
                    self.socket.send(&ToMaster::Again { writer, after, first }, Vec::new()).ok();
                }
                Next::Nothing => return (count, false),
            }
        }
        (RECORDS_PER_BEAT, true)
    }

    /// Says that it lives, and looks at what no bit announces: whether the master is still there. At most every 100 ms.
    fn beat(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.counters.heartbeat_ns()) >= BEAT_NS {
            self.counters.set_heartbeat(now_ns);
            self.counters.set_woken_and_missed(self.inbox.woken_and_missed());
            self.look_for_master(now_ns);
        }
    }

    fn end(&mut self, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        self.hear_last_words();
        self.end.get_or_insert(End::Because(Ended::Fenced));
        self.stop(take)
    }

    /// Whether it was given up, or has another reason to end.
    fn must_end(&self) -> bool {
        self.end.is_some() || self.counters.is_fenced()
    }

    /// Gives [`Event::Stop`], unless it was given before. Returns how many events that were.
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
            // Closing and unmapping what was inherited is this process's own affair. Nothing else is.
            self.publisher.forget_wake_helper();
            return;
        }
        if self.has_master && !matches!(self.end, Some(End::Because(_))) {
            // A master that does not hear it sees the socket closed.
            self.socket.send(&ToMaster::Leave, Vec::new()).ok();
        }
    }
}

fn mark(pending: &mut [u64], stream: u32) {
    if let Some(bits) = usize::try_from(stream / 64).ok().and_then(|at| pending.get_mut(at)) {
        *bits |= 1 << (stream % 64);
    }
}
