//! Turns of the nodes of a stepped run ([`crate::clock::Pace::Stepped`]): one node works at a time, from a wait to the
//! next, and its master chooses the next one. So what a node finds in a turn does not depend on the speed of others.
//!
//! ```text
//! words of the node's counters
//!  64  the node's bell (16 words)     80  its master's bell (16 words)
//!  96  0 before its first turn, 1 in a turn, 2 waiting
//!  97  until when it waits, in the run's clock, ns; all ones: for something to read. With the highest bit set it yields:
//!      it gets a turn when the time is later than that, and does not make the time move on
//! ```

use super::{Event, Keys, Memory, Node, Publisher, Reads, mark};
use crate::clock::monotonic_ns;
use lowlat_ipc::{
    doorbell::{Bell, Futex},
    region::Region as _,
};
use std::{
    cmp::Ordering::{Equal, Greater, Less},
    mem,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

const NODE_BELL: usize = 64;
const MASTER_BELL: usize = 80;
const STATE: usize = 96;
const UNTIL: usize = 97;
const HELD: u64 = 1;
const PASSED: u64 = 2;
const YIELDS: u64 = 1 << 63;
/// Longest sleep between two signs of life.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// Polls of a turn that find nothing before the turn ends: of a program that polls and never waits.
const IDLE_POLLS_MAX: u32 = 64;

/// What a node that has no turn waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Something to read.
    Records,
    /// That, or this time of the run's clock.
    Time(u64),
    /// That, or any time after this one.
    Later(u64),
}

/// The turns of one node, as it and its master use them.
#[derive(Debug, Clone)]
pub struct NodeTurn {
    pub(super) counters: Memory,
}

impl NodeTurn {
    /// True for a node that takes turns; false for one that reads no record of its own, such as a recorder.
    pub fn is_for(writes: bool, reads: &[Reads]) -> bool {
        writes || reads.iter().any(|reads| !matches!(&reads.keys, Keys::Only(keys) if keys.is_empty()))
    }

    fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.counters.words().get(at)
    }

    fn bell(&self, at: usize) -> Option<&Bell> {
        Bell::in_region(&*self.counters, at)
    }

    fn state(&self) -> u64 {
        // Pairs with the stores in `give` and `end`.
        self.word(STATE).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// True while it is the node's turn.
    pub fn is_held(&self) -> bool {
        self.state() == HELD
    }

    /// Master: what the node waits for; `None` in its turn, and before its first one.
    pub fn awaited(&self) -> Option<Awaited> {
        (self.state() == PASSED).then(|| {
            // Relaxed: ordered by the load of the state.
            let until_ns = self.word(UNTIL).map_or(u64::MAX, |word| word.load(Ordering::Relaxed));
            match until_ns {
                u64::MAX => Awaited::Records,
                _ if until_ns & YIELDS != 0 => Awaited::Later(until_ns & !YIELDS),
                _ => Awaited::Time(until_ns),
            }
        })
    }

    /// Master: gives the node a turn.
    pub fn give(&self) {
        if let Some(word) = self.word(STATE) {
            // Pairs with the load in `state`.
            word.store(HELD, Ordering::Release);
        }
        self.bell(NODE_BELL).map(|bell| bell.ring(&Futex));
    }

    /// Master: waits for the end of the turn, for `longest` at most.
    pub fn await_end(&self, longest: Duration) {
        self.bell(MASTER_BELL).map(|bell| bell.wait(&Futex, longest, || !self.is_held()));
    }

    /// Node: ends its turn.
    fn end(&self, awaited: Awaited) {
        let until_ns = match awaited {
            Awaited::Records => u64::MAX,
            Awaited::Time(at_ns) => at_ns & !YIELDS,
            Awaited::Later(than_ns) => than_ns | YIELDS,
        };
        for (at, value) in [(UNTIL, until_ns), (STATE, PASSED)] {
            if let Some(word) = self.word(at) {
                // Pairs with the load in `state`.
                word.store(value, Ordering::Release);
            }
        }
        self.bell(MASTER_BELL).map(|bell| bell.ring(&Futex));
    }

    /// Node: waits for its next turn, for `longest` at most.
    pub(super) fn wait(&self, longest: Duration) {
        self.bell(NODE_BELL).map(|bell| bell.wait(&Futex, longest, || self.is_held()));
    }
}

impl Node {
    /// Ends the turn, unless something is left to do in it, and waits for the next one, for `longest` at most.
    #[cold]
    pub(super) fn pass_turn(&mut self, turn: &NodeTurn, awaited: Awaited, longest: Duration) {
        if turn.is_held() {
            if self.is_ready() {
                return;
            }
            self.idle_polls = 0;
            turn.end(awaited);
        }
        let start_ns = monotonic_ns();
        while !turn.is_held() && !self.is_ready_beside() {
            let now_ns = monotonic_ns();
            let left = longest.saturating_sub(Duration::from_nanos(now_ns.saturating_sub(start_ns)));
            if left.is_zero() {
                return;
            }
            turn.wait(left.min(SLEEP_MAX));
            self.beat(now_ns);
        }
    }

    /// What a wait until this time of the run's clock waits for.
    pub(super) fn awaited(&self, until_ns: u64) -> Awaited {
        let now_ns = self.now_ns();
        match until_ns.cmp(&now_ns) {
            _ if until_ns == u64::MAX => Awaited::Records,
            Greater => Awaited::Time(until_ns),
            // A turn at the same time would come again and again.
            Equal | Less => Awaited::Later(now_ns),
        }
    }

    /// A poll in a turn: it takes the streams in the order of their names. Outside of one it finds nothing.
    #[cold]
    pub(super) fn poll_in_turn(
        &mut self,
        turn: &NodeTurn,
        take: &mut impl FnMut(&mut Publisher, Event<'_>),
    ) -> usize {
        self.beat(monotonic_ns());
        if !turn.is_held() && !self.is_ready_beside() {
            return 0;
        }
        let events = self.poll_by_name(take);
        self.idle_polls = if events > 0 { 0 } else { self.idle_polls + 1 };
        if self.ready.is_some() && events == 0 && turn.is_held() && !self.is_ready() {
            // Its program waits for the descriptor.
            turn.end(self.awaited(self.publisher.timer_ns()));
        } else if self.idle_polls > IDLE_POLLS_MAX {
            let timer_ns = self.publisher.timer_ns();
            let until_ns = if timer_ns == u64::MAX { 0 } else { timer_ns };
            self.pass_turn(turn, self.awaited(until_ns), Duration::MAX);
        }
        events
    }

    fn poll_by_name(&mut self, take: &mut impl FnMut(&mut Publisher, Event<'_>)) -> usize {
        let pending = &mut self.pending;
        self.inbox.take_ready(|stream| mark(pending, stream));
        let mut events = self.ring(take);
        if self.must_end() {
            events += self.end(take);
            if self.counters.is_fenced() {
                return events;
            }
        }
        let mut streams = mem::take(&mut self.by_name);
        streams.clear();
        // The master's messages have no name, and come first.
        let name = |stream: &u32| {
            let sources = usize::try_from(*stream).ok().and_then(|at| self.incoming.get(at));
            sources.and_then(Option::as_ref).map(|sources| sources.name.as_str())
        };
        for (number, bits) in (0_u32..).zip(&mut self.pending) {
            let bits = mem::take(bits);
            for stream in (0..64).filter(|bit| bits >> bit & 1 != 0).map(|bit| number * 64 + bit) {
                let at = streams.partition_point(|other| name(other) <= name(&stream));
                streams.insert(at, stream);
            }
        }
        for stream in &streams {
            events += if *stream == crate::control::CONTROL_STREAM {
                self.control(take)
            } else {
                self.read(*stream, take)
            };
        }
        self.by_name = streams;
        events
    }
}
