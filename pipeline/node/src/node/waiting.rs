//! Waiting modes of a node, mapped to those of `lowlat-ipc`.

use super::{BEAT_NS, Event, Node, Publisher, Wait, slice};
use crate::clock::monotonic_ns;
use lowlat_ipc::{
    doorbell::Futex,
    waiter::{Mode, SpinPolicy, Waiter, wake_ns},
};
use std::time::Duration;

/// The longest sleep. It bounds the detection of a publisher that died between its record and its ring, and of
/// a dead master. A thousand sleepers wake five hundred times a second because of it, beside the records.
const SLEEP_NS_MAX: u64 = 2_000_000_000;
/// Wakes measured by a node that joins in adaptive mode: some milliseconds.
const WAKES_MEASURED: u32 = 20;
/// Polls between two reads of the clock in a node that always has work.
const POLLS_PER_BEAT: u32 = 64;
/// Assumed cost of a wake if it could not be measured.
const WAKE_NS: u64 = 20_000;

/// The waiting mode of a node.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) wait: Wait,
    waiter: Waiter,
    slice_ns: u64,
}

impl Waiting {
    /// Waiting of the calling thread, whose time slice is shortened unless it spins.
    pub(super) fn new(wait: Wait) -> Self {
        if wait != Wait::Fast {
            slice::shorten();
        }
        let (mode, slice_ns) = match wait {
            // A spinning node sends a heartbeat between two slices.
            Wait::Fast => (Mode::Fast, BEAT_NS),
            Wait::Parked => (Mode::Parked, SLEEP_NS_MAX),
            Wait::Adaptive => {
                let wake_ns = wake_ns(WAKES_MEASURED).unwrap_or(WAKE_NS);
                (Mode::Adaptive(SpinPolicy::new(wake_ns)), SLEEP_NS_MAX)
            }
        };
        Self { wait, waiter: Waiter::new(mode), slice_ns }
    }
}

impl Node {
    /// When the run's clock will show this time, in CLOCK_MONOTONIC; `u64::MAX` if that is unknown.
    pub fn monotonic_of(&self, time_ns: u64) -> u64 {
        self.clock.as_ref().map_or(time_ns, |clock| clock.monotonic_of(time_ns))
    }

    /// Waits as [`Node::wait`] does, but no longer than this by the wall clock, whatever that of the run is.
    pub fn wait_at_most(&mut self, until_ns: Option<u64>, longest: Duration) {
        self.wait_within(until_ns, Some(longest), &mut |_, _| ());
    }

    /// Like [`Node::wait`], with rehearsals. An idle node that spins keeps the path of a record warm: now and
    /// then it publishes a quote of instrument 0 to itself, in private memory, and reads it. `rehearsed` gets
    /// that quote as from a poll, with a publisher that reaches no other node, and then, once, what it
    /// published there itself. It must send it through the same functions as real records and change nothing
    /// else.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub fn wait_rehearsing(
        &mut self,
        until_ns: Option<u64>,
        rehearsed: &mut dyn FnMut(&mut Publisher, Event<'_>),
    ) {
        self.wait_within(until_ns, None, rehearsed);
    }

    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn wait_within(
        &mut self,
        until_ns: Option<u64>,
        longest: Option<Duration>,
        rehearsed: &mut dyn FnMut(&mut Publisher, Event<'_>),
    ) {
        if self.is_forked() {
            return;
        }
        let until_ns = until_ns.unwrap_or(u64::MAX).min(self.publisher.timer_ns());
        if let Some(turn) = self.turn.clone().filter(|_| self.ready.is_none()) {
            return self.pass_turn(&turn, self.awaited(until_ns), longest.unwrap_or(Duration::MAX));
        }
        let mut until_ns = self.monotonic_of(until_ns);
        if let Some(longest) = longest {
            let longest_ns = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
            until_ns = until_ns.min(monotonic_ns().saturating_add(longest_ns));
        }
        // A node that always finds something needs a heartbeat too.
        if self.polls.is_multiple_of(POLLS_PER_BEAT) {
            self.beat(monotonic_ns());
        }
        if self.ready.is_some() {
            self.wait_by_descriptor(until_ns);
            return;
        }
        if self.direct != 0 {
            if !self.is_ready_beside() {
                self.wait_directly(until_ns, rehearsed);
            }
            return;
        }
        while !self.is_ready() {
            let now_ns = monotonic_ns();
            self.beat(now_ns);
            if now_ns >= until_ns {
                return;
            }
            let longest = Duration::from_nanos((until_ns - now_ns).min(self.waiting.slice_ns));
            self.waiting.waiter.wait(&self.inbox, &Futex, longest);
        }
    }
}
