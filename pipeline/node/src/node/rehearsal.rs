//! Keeps the path of a record warm.
//!
//! An idle node that spins runs only a few instructions, and what a record needs is evicted from the core's
//! caches and branch predictors; the first record after a millisecond then takes several times as long as one
//! of a burst. So a spinning node rehearses every few microseconds: it publishes a quote to itself, in private
//! memory, reads it, and passes it to its role, through the same functions as a real one. Rehearsals are
//! neither visible nor counted.

use super::{
    Counters, Event, Memory, Publisher,
    counters::COUNTERS_BYTES,
    incoming::{ReadOutcome, Source, Sources, StreamName},
    overrun::Overrun,
    publisher::Own,
};
use crate::records::{PAYLOAD_BYTES, Quote, SCHEMA, kind};
use lowlat_ipc::{
    fork::ForkMark,
    inbox::{self, Inbox},
    interest::{self, Interest},
    region::Memfd,
    router::Router,
    stream::{Owner, Segment, Stamp, Writer},
};
use std::sync::Arc;

/// Interval of rehearsals: shorter than the time in which other work on the core evicts something, and long
/// enough that a record seldom collides with one, which takes a tenth of a microsecond when warm.
const INTERVAL_NS: u64 = 20_000;
/// Anything due sooner than this is awaited without a rehearsal.
const DUE_NS_MAX: u64 = 3_000;
/// Small enough for the first-level cache.
const CAPACITY_BYTES: u64 = 4096;
const ENTRIES: u64 = 8;
/// A quote, and what is published because of it.
const RECORDS: u32 = 2;

/// A stream with one subscriber, both in this node.
#[derive(Debug)]
pub struct Rehearsal {
    publisher: Publisher,
    sources: Sources,
    quote: [u8; PAYLOAD_BYTES],
    payload: Vec<u8>,
    next_ns: u64,
}

impl Rehearsal {
    /// `None` without memory for it: it only saves nanoseconds, and is not essential.
    pub fn new(mark: Arc<ForkMark>) -> Option<Box<Self>> {
        let memory = |bytes: u64| Memfd::create("lowlat-rehearsal", bytes).map(Arc::new).ok();
        let segment = memory(Segment::<Memory>::bytes(CAPACITY_BYTES))?;
        let ring = memory(Overrun::Gap.bytes(ENTRIES))?;
        let counters = Counters::new(memory(COUNTERS_BYTES)?);
        let inbox = Inbox::new(memory(inbox::BYTES)?)?;
        let table = Interest::create(memory(interest::bytes(1))?, 1)?;
        table.set(0, Some(0), true);
        let made = Segment::create(Arc::clone(&segment), CAPACITY_BYTES, 0, 1, 0, Owner::default()).ok()?;
        let own = Own { writer: Writer::new(made), router: Router::new(table), markers: 0 };
        let mut publisher = Publisher::new(Some(Box::new(own)), counters, mark);
        publisher.connect(0, Overrun::Gap.give(Arc::clone(&ring), ENTRIES)?, inbox, 0);
        let mut sources = Sources::new(StreamName::new("rehearsal".to_owned(), 0));
        sources.queue.push_back(Source::of(segment, ring, Overrun::Gap)?);
        let quote = Quote { bid: 1, ask: 1, ..Quote::default() }.encode();
        let payload = Vec::with_capacity(quote.len());
        Some(Box::new(Self { publisher, sources, quote, payload, next_ns: 0 }))
    }

    /// Rehearses if it is time to, and there is time for it before what is due; returns true if it did.
    #[inline]
    pub fn run(
        &mut self,
        now_ns: u64,
        due_ns: u64,
        rehearsed: &mut dyn FnMut(&mut Publisher, Event<'_>),
    ) -> bool {
        let is_time = now_ns >= self.next_ns && due_ns.saturating_sub(now_ns) > DUE_NS_MAX;
        if is_time {
            self.next_ns = now_ns + INTERVAL_NS;
            self.play(rehearsed);
        }
        is_time
    }

    #[inline(never)]
    fn play(&mut self, rehearsed: &mut dyn FnMut(&mut Publisher, Event<'_>)) {
        let stamp = Stamp { kind: kind::QUOTE, schema: SCHEMA, ..Stamp::default() };
        // Its memory is private, so nothing is refused; if a role publishes more, the remainder is dropped and
        // is nobody's record.
        self.publisher.publish(&stamp, &self.quote).ok();
        for _ in 0..RECORDS {
            let ReadOutcome::Record(record) = self.sources.next(&mut self.payload) else { break };
            let event = Event::Record { stream: &self.sources.name, record: &record, payload: &self.payload };
            rehearsed(&mut self.publisher, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Order;

    fn rehearsal() -> Box<Rehearsal> {
        Rehearsal::new(Arc::new(ForkMark::new().unwrap())).unwrap()
    }

    #[test]
    fn every_rehearsed_record_is_read_and_nothing_grows() {
        let mut kinds = Vec::new();
        let mut rehearsal = rehearsal();
        let capacity = rehearsal.payload.capacity();
        for number in 0..10_000 {
            for now_ns in [number * INTERVAL_NS, number * INTERVAL_NS + 1] {
                rehearsal.run(now_ns, u64::MAX, &mut |publisher, event| {
                    let Event::Record { record, payload, .. } = event else { panic!("{event:?}") };
                    kinds.push(record.stamp.kind);
                    if record.stamp.kind == kind::QUOTE {
                        Quote::decode(payload).unwrap();
                        let order = Stamp { kind: kind::ORDER, ..record.stamp };
                        publisher.publish(&order, &Order::default().encode()).unwrap();
                    }
                });
            }
        }
        assert_eq!(rehearsal.publisher.next_sequence(), Some(20_000), "once in an interval");
        assert_eq!(rehearsal.sources.last_sequence, Some(19_999));
        assert_eq!(kinds, [kind::QUOTE, kind::ORDER].repeat(10_000));
        assert_eq!(rehearsal.payload.capacity(), capacity);
    }

    #[test]
    fn a_role_that_answers_everything_does_not_loop() {
        let mut rehearsal = rehearsal();
        for number in 0..1_000 {
            let mut told = 0;
            rehearsal.run(number * INTERVAL_NS, u64::MAX, &mut |publisher, _| {
                told += 1;
                publisher.publish(&Stamp::default(), &[]).unwrap();
            });
            assert!(told <= RECORDS, "{told}");
        }
    }
}
