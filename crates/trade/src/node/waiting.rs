//! How a node waits: the one place that knows the ways that `lowlat-ipc` has.

use super::{BEAT_NS, Event, Node, Publisher, Wait};
use crate::clock::now_ns;
use lowlat_ipc::{
    doorbell::Futex,
    waiter::{Mode, SpinPolicy, Waiter, WakeCost},
};
use std::time::Duration;

/// The longest sleep. A publisher that died between its record and its bell is noticed then, and so is a dead master.
const SLEEP_NS_MAX: u64 = 500_000_000;
/// Wakes that are measured when a node joins that looks for as long as that pays: some milliseconds.
const WAKES_MEASURED: u32 = 20;
/// Polls between two looks at the clock of a node that is never without work.
const POLLS_PER_BEAT: u32 = 64;
/// What a wake takes when it could not be measured.
const WAKE_NS: u64 = 20_000;

/// A node's way to wait.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) wait: Wait,
    waiter: Waiter,
    slice_ns: u64,
}

impl Waiting {
    pub(super) fn new(wait: Wait) -> Self {
        let (mode, slice_ns) = match wait {
            // A spinning node shows between two slices that it lives.
            Wait::Fast => (Mode::Fast, BEAT_NS),
            Wait::Parked => (Mode::Parked, SLEEP_NS_MAX),
            Wait::Adaptive => {
                let cost = WakeCost::measure(WAKES_MEASURED, || ());
                let wake_ns = cost.map_or(WAKE_NS, |cost| cost.wake_ns);
                (Mode::Adaptive(SpinPolicy::new(wake_ns)), SLEEP_NS_MAX)
            }
        };
        Self { wait, waiter: Waiter::new(mode), slice_ns }
    }
}

pub(super) fn wait(
    node: &mut Node,
    until_ns: Option<u64>,
    rehearsed: &mut dyn FnMut(&mut Publisher, Event<'_>),
) {
    if node.is_forked() {
        return;
    }
    let until_ns = until_ns.unwrap_or(u64::MAX);
    // One that always finds something lives too.
    if node.polls.is_multiple_of(POLLS_PER_BEAT) {
        node.beat(now_ns());
    }
    if node.direct != 0 {
        if !node.is_ready_beside() {
            node.wait_directly(until_ns, rehearsed);
        }
        return;
    }
    while !node.is_ready() {
        let now_ns = now_ns();
        node.beat(now_ns);
        if now_ns >= until_ns {
            return;
        }
        let longest = Duration::from_nanos((until_ns - now_ns).min(node.waiting.slice_ns));
        node.waiting.waiter.wait(&node.inbox, &Futex, longest);
    }
}
