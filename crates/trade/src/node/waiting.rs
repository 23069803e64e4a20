//! How a node waits: the one place that knows the ways that `lowlat-ipc` has.

use super::{BEAT_NS, Node, Wait};
use crate::clock::now_ns;
use lowlat_ipc::doorbell::Futex;
use std::{hint, time::Duration};

/// The longest sleep. A publisher that died between its record and its bell is noticed then, and so is a dead master.
const SLEEP_NS_MAX: u64 = 500_000_000;
/// How long it pays to spin before sleeping: about what a sleep and a wake cost.
const SPIN_NS: u64 = 50_000;
/// Looks at the inbox between two looks at the clock.
const LOOKS: u32 = 64;

/// A node's way to wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) wait: Wait,
}

pub(super) fn wait(node: &mut Node, until_ns: Option<u64>) {
    let until_ns = until_ns.unwrap_or(u64::MAX);
    match node.waiting.wait {
        Wait::Fast => _ = spin(node, until_ns),
        Wait::Parked => park(node, until_ns),
        Wait::Adaptive => {
            if !spin(node, now_ns().saturating_add(SPIN_NS).min(until_ns)) {
                park(node, until_ns);
            }
        }
    }
}

/// True when something is there.
fn spin(node: &mut Node, until_ns: u64) -> bool {
    loop {
        for _ in 0..LOOKS {
            if node.is_ready() {
                return true;
            }
            hint::spin_loop();
        }
        let now = now_ns();
        node.beat(now);
        if now >= until_ns {
            return node.is_ready();
        }
    }
}

fn park(node: &mut Node, until_ns: u64) {
    while !node.is_ready() {
        let now = now_ns();
        node.beat(now);
        if now >= until_ns {
            return;
        }
        let longest = Duration::from_nanos((until_ns - now).min(SLEEP_NS_MAX));
        node.inbox.wait(&Futex, longest);
    }
    if node.polls.is_multiple_of(16) {
        node.beat(now_ns());
    }
}

const _: () = assert!(BEAT_NS <= SLEEP_NS_MAX);
