//! cached: follows everything and keeps the latest state.

use super::{MD_STREAM, ORDERS_PREFIX, RoleError, TD_STREAM};
use crate::{
    cached::{Cached, Opened, Seen, StoreError, What},
    clock::now_ns,
    node::{Event, Join, Keys, Node, Reads, Strategies, Wait},
    records::{Answer, Order, Quote, kind},
};
use lowlat_ipc::stream::Record;
use std::{path::PathBuf, thread, time::Duration};

/// How long it sleeps between two looks. It is never asleep for its publishers: waking it would cost md a system call for
/// each quote, and nobody waits for what it does.
const NAP: Duration = Duration::from_millis(10);
/// After a store that failed, the next try.
const RETRY_NS: u64 = 1_000_000_000;

/// What cached does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedOptions {
    /// The store's file.
    pub path: PathBuf,
    /// Saves once so many records are not saved,
    pub records_max: u64,
    /// or one of them for so long, ns.
    pub age_ns_max: u64,
}

impl CachedOptions {
    /// The usual, in this file.
    pub fn new(path: PathBuf) -> Self {
        Self { path, records_max: 10_000, age_ns_max: 100_000_000 }
    }
}

/// What it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CachedDone {
    /// Records applied.
    pub applied: u64,
    /// Records that came again and were known.
    pub known: u64,
    /// Records of other kinds, or damaged.
    pub others: u64,
    /// Records that were lost to it.
    pub lost: u64,
    /// Batches saved.
    pub batches: u64,
}

/// How cached joins.
pub fn join() -> Join {
    let orders = format!("{ORDERS_PREFIX}*");
    let reads = [MD_STREAM, &orders, TD_STREAM].map(|streams| Reads::new(streams, Keys::All));
    Join {
        name: "cached".to_owned(),
        role: "cached".to_owned(),
        writes: None,
        reads: reads.to_vec(),
        wait: Wait::Parked,
        strategies: Strategies::None,
    }
}

/// Follows everything until the word to end. `tell` is given what somebody should know: a store that was set aside, a disk
/// that is full.
pub fn run(
    mut node: Node,
    options: &CachedOptions,
    tell: &mut dyn FnMut(&str),
) -> Result<CachedDone, RoleError> {
    let (mut cached, opened) = Cached::open(&options.path)?;
    if let Opened::SetAside { to } = &opened {
        tell(&format!(
            "{}: was damaged; it is kept as {}, and a new store begins",
            options.path.display(),
            to.display()
        ));
    }
    if node.epoch() == 1 {
        cached.begin_run();
    }
    let mut done = CachedDone::default();
    let mut saver = Saver { options, since_ns: None, retry_ns: 0, has_told: false };
    let (mut is_over, mut events) = (false, 0);
    // What was there before the word to end is taken as well.
    while !is_over || events > 0 {
        events = node.poll(&mut |_, event| match event {
            Event::Record { stream, record, payload } => match seen(stream.as_str(), record, payload) {
                Some(seen) if cached.apply(&seen) => done.applied += 1,
                Some(_) => done.known += 1,
                None => done.others += 1,
            },
            Event::Lost { count, .. } => done.lost += count,
            Event::Stop => is_over = true,
            Event::Begin | Event::Command(_) => {}
        });
        done.batches += u64::from(saver.look(&mut cached, tell)?);
        if events == 0 && !is_over {
            let now = now_ns();
            // A sign of life.
            node.wait(Some(now));
            thread::sleep(NAP);
        }
    }
    if cached.unsaved() > 0 {
        cached.flush()?;
        done.batches += 1;
    }
    node.ended().map_or(Ok(done), |ended| Err(ended.into()))
}

/// When to save.
struct Saver<'a> {
    options: &'a CachedOptions,
    /// Since when something is not saved.
    since_ns: Option<u64>,
    retry_ns: u64,
    has_told: bool,
}

impl Saver<'_> {
    /// Saves when it is time; true when it did.
    fn look(&mut self, cached: &mut Cached, tell: &mut dyn FnMut(&str)) -> Result<bool, StoreError> {
        if cached.unsaved() == 0 {
            return Ok(false);
        }
        let now = now_ns();
        let since = *self.since_ns.get_or_insert(now);
        let is_time = cached.unsaved() >= self.options.records_max
            || now.saturating_sub(since) >= self.options.age_ns_max;
        if !is_time || now < self.retry_ns {
            return Ok(false);
        }
        match cached.flush() {
            Ok(()) => {
                if std::mem::take(&mut self.has_told) {
                    tell("the store takes records again; nothing is missing");
                }
                self.since_ns = None;
                Ok(true)
            }
            // Others may end it; what is not saved stays in memory until then.
            Err(error @ (StoreError::Full { .. } | StoreError::Locked { .. })) => {
                if !std::mem::replace(&mut self.has_told, true) {
                    tell(&error.to_string());
                }
                self.retry_ns = now + RETRY_NS;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

fn seen<'a>(stream: &'a str, record: &Record, payload: &[u8]) -> Option<Seen<'a>> {
    let stamp = record.stamp;
    let what = match stamp.kind {
        kind::QUOTE => What::Quote(Quote::decode(payload).ok()?),
        kind::ORDER => What::Order(Order::decode(payload).ok()?),
        kind::ANSWER => What::Answer(Answer::decode(payload).ok()?),
        _ => return None,
    };
    Some(Seen {
        stream,
        sequence: record.sequence,
        generated_ns: stamp.generated,
        key: stamp.instrument,
        source: stamp.source,
        what,
    })
}
