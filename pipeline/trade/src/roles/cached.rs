//! cached: follows everything and keeps the latest state.

use crate::cached::{Cached, StoreError};
use lowlat_ipc::stream::Record;
use lowlat_node::{
    Event, Join, Keys, MD_STREAM, Node, ORDERS_PREFIX, Reads, Refusal, TD_STREAM,
    clock::now_ns,
    records::{Answer, Order, Quote, kind},
    state::{Payload, RecordSeen},
};
use std::{path::Path, thread, time::Duration};

/// Duration of a sleep between polls. It never sleeps on its bell: waking it would cost md a system call per
/// quote, and nothing depends on its latency.
const NAP: Duration = Duration::from_millis(10);
/// Delay after a failed save.
const RETRY_NS: u64 = 1_000_000_000;
/// Saves after this many unsaved records,
const RECORDS_MAX: u64 = 10_000;
/// or when one of them is this old.
const AGE_NS_MAX: u64 = 100_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CachedDone {
    pub applied: u64,
    /// Repeated records, which were recognized.
    pub known: u64,
    /// Records of other kinds, or damaged ones.
    pub others: u64,
    pub lost: u64,
}

/// The request with which cached joins.
pub fn join() -> Join {
    Join::new("cached", "cached").reading(reads_all())
}

/// Every record of every stream.
pub(super) fn reads_all() -> Vec<Reads> {
    let orders = format!("{ORDERS_PREFIX}*");
    [MD_STREAM, &orders, TD_STREAM].map(|streams| Reads::new(streams, Keys::All)).to_vec()
}

/// Follows everything until it is stopped, for a run of so many strategies of its own. `tell` gets messages for
/// the user: a store that was set aside, a full disk.
pub fn run(
    mut node: Node,
    store: &Path,
    strategies: u32,
    tell: &mut dyn FnMut(&str),
) -> Result<CachedDone, Refusal> {
    node.must_be_stopped();
    let (mut cached, set_aside) = Cached::open(store).map_err(Refusal::of)?;
    if let Some(to) = set_aside {
        tell(&format!("{} is damaged: kept as {}, starting a new store", store.display(), to.display()));
    }
    if node.epoch() == 1 {
        cached.state.begin_run();
    }
    cached.state.reserved = strategies;
    let mut done = CachedDone::default();
    let mut saver = Saver { since_ns: None, retry_ns: 0, has_told: false };
    let (mut is_over, mut events) = (false, 0);
    // Records from before the stop request are applied too.
    while !is_over || events > 0 {
        events = node.poll(&mut |_, event| match event {
            Event::Record { stream, record, payload } => match seen(stream.as_str(), record, payload) {
                Some(seen) if cached.state.apply(&seen) => done.applied += 1,
                Some(_) => done.known += 1,
                None => done.others += 1,
            },
            Event::Lost { stream, count } => {
                done.lost += count;
                if stream.as_str() == TD_STREAM {
                    cached.state.lose_answers();
                }
            }
            Event::Stop => is_over = true,
            _ => {}
        });
        saver.look(&mut cached, tell).map_err(Refusal::of)?;
        if events == 0 && !is_over {
            let now = now_ns();
            // A heartbeat.
            node.wait(Some(now));
            thread::sleep(NAP);
        }
    }
    if cached.state.unsaved() > 0 {
        cached.flush().map_err(Refusal::of)?;
    }
    node.result(done)
}

struct Saver {
    /// Since when something is unsaved.
    since_ns: Option<u64>,
    retry_ns: u64,
    has_told: bool,
}

impl Saver {
    /// Saves if it is time.
    fn look(&mut self, cached: &mut Cached, tell: &mut dyn FnMut(&str)) -> Result<(), StoreError> {
        if cached.state.unsaved() == 0 {
            return Ok(());
        }
        let now = now_ns();
        let since = *self.since_ns.get_or_insert(now);
        let is_time = cached.state.unsaved() >= RECORDS_MAX || now.saturating_sub(since) >= AGE_NS_MAX;
        if !is_time || now < self.retry_ns {
            return Ok(());
        }
        match cached.flush() {
            Ok(()) => {
                if std::mem::take(&mut self.has_told) {
                    tell("the store accepts records again; nothing is missing");
                }
                self.since_ns = None;
                Ok(())
            }
            // Others may unlock the file; unsaved state stays in memory until then.
            Err(error @ (StoreError::Full { .. } | StoreError::Locked { .. })) => {
                if !std::mem::replace(&mut self.has_told, true) {
                    tell(&error.to_string());
                }
                self.retry_ns = now + RETRY_NS;
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

fn seen<'a>(stream: &'a str, record: &Record, payload: &[u8]) -> Option<RecordSeen<'a>> {
    let stamp = record.stamp;
    let what = match stamp.kind {
        kind::QUOTE => Payload::Quote(Quote::decode(payload).ok()?),
        kind::ORDER => Payload::Order(Order::decode(payload).ok()?),
        kind::ANSWER => Payload::Answer(Answer::decode(payload).ok()?),
        _ => return None,
    };
    Some(RecordSeen {
        stream,
        sequence: record.sequence,
        generated_ns: stamp.generated,
        key: stamp.instrument,
        source: stamp.source,
        what,
    })
}
