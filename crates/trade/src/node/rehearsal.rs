//! Keeping a record's way warm.
//!
//! A node that spins runs a few instructions for as long as nothing comes, and what a record needs leaves the core's caches
//! and branch tables meanwhile; the first record after a millisecond takes several times as long as one of a burst. So a
//! spinning node rehearses every few microseconds: it publishes a record to itself, in memory that nobody else has, and reads
//! it, through the very functions that a real one goes through. Nothing of it is seen or counted.

use super::{
    Counters, Memory, Publisher,
    counters::COUNTERS_BYTES,
    incoming::{Next, Source, Sources, StreamName},
    overrun::Overrun,
    publisher::Own,
};
use lowlat_ipc::{
    inbox::{self, Inbox},
    interest::{self, Interest},
    region::{Memfd, RegionError},
    router::Router,
    stream::{Owner, Segment, Stamp, Writer},
};
use std::sync::Arc;

/// Between two rehearsals. Shorter than what it takes others on a core to push something out; so long that a record seldom
/// comes into one, which takes a tenth of a microsecond once it is warm.
const INTERVAL_NS: u64 = 20_000;
/// What is due sooner is waited for without a rehearsal.
const DUE_NS_MAX: u64 = 3_000;
/// Small enough to stay in the nearest cache.
const CAPACITY_BYTES: u64 = 4096;
const ENTRIES: u64 = 8;
/// As long as the payloads of a pipeline.
const PAYLOAD: [u8; 64] = [0; 64];

/// A stream with one subscriber, both this node's.
#[derive(Debug)]
pub(super) struct Rehearsal {
    publisher: Publisher,
    sources: Sources,
    payload: Vec<u8>,
    next_ns: u64,
}

impl Rehearsal {
    /// None where there is no memory for it: it is a matter of nanoseconds, and no reason not to run.
    pub(super) fn new() -> Option<Box<Self>> {
        Self::make().ok().flatten().map(Box::new)
    }

    fn make() -> Result<Option<Self>, RegionError> {
        let memory = |bytes: u64| Memfd::create("lowlat-rehearsal", bytes).map(Arc::new);
        let segment = memory(Segment::<Memory>::bytes(CAPACITY_BYTES))?;
        let table = Interest::create(memory(interest::bytes(1))?, 1);
        let counters = Counters::new(memory(COUNTERS_BYTES)?);
        let inbox = Inbox::new(memory(inbox::BYTES)?);
        let ring = memory(Overrun::Gap.bytes(ENTRIES))?;
        let made = Segment::create(Arc::clone(&segment), CAPACITY_BYTES, 0, 1, 0, Owner::default()).ok();
        let given = Overrun::Gap.give(Arc::clone(&ring), ENTRIES);
        let (Some(table), Some(inbox), Some(made), Some(given)) = (table, inbox, made, given) else {
            return Ok(None);
        };
        table.set(0, Some(0), true);
        let name = StreamName::new("rehearsal".to_owned(), 0);
        let own = Own { name: name.clone(), writer: Writer::new(made), router: Router::new(table) };
        let mut publisher = Publisher::new(Some(Box::new(own)), counters);
        publisher.connect(0, given, inbox, 0);
        let mut sources = Sources::new(name);
        let Some(source) = Source::of(segment, ring, Overrun::Gap) else { return Ok(None) };
        sources.push(source);
        Ok(Some(Self { publisher, sources, payload: Vec::with_capacity(PAYLOAD.len()), next_ns: 0 }))
    }

    /// Rehearses when it is time to, and there is time for it before what is due; true when it did.
    #[inline]
    pub(super) fn run(&mut self, now_ns: u64, due_ns: u64) -> bool {
        let is_time = now_ns >= self.next_ns && due_ns.saturating_sub(now_ns) > DUE_NS_MAX;
        if is_time {
            self.next_ns = now_ns + INTERVAL_NS;
            self.play();
        }
        is_time
    }

    #[inline(never)]
    fn play(&mut self) {
        // Its own memory, so nothing is refused, and what is not given now is next time.
        self.publisher.publish(&Stamp::default(), &PAYLOAD).ok();
        while let Next::Record(_) = self.sources.next(&mut self.payload) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_comes_back_and_nothing_grows() {
        let mut rehearsal = Rehearsal::new().unwrap();
        let capacity = rehearsal.payload.capacity();
        for number in 0..10_000 {
            rehearsal.run(number * INTERVAL_NS, u64::MAX);
            rehearsal.run(number * INTERVAL_NS + 1, u64::MAX);
        }
        assert_eq!(rehearsal.publisher.next_sequence(), Some(10_000), "once in an interval");
        assert_eq!(rehearsal.sources.last_sequence(), Some(9_999));
        assert_eq!(rehearsal.payload.capacity(), capacity);
    }
}
