//! A node as its master keeps it, over restarts.

use super::options::{Standing, Status};
use crate::node::{Counters, Figures, Keys, Memory, Overrun, Reads, Wait, Writes};
use lowlat_ipc::{
    doorbell::Futex,
    inbox::Inbox,
    interest::Interest,
    layout::KIND_ABANDONED,
    stream::{Owner, Read, Reader, Segment},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    os::fd::OwnedFd,
    slice,
};

/// The stream of a node.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) writes: Writes,
    pub(super) segment: Memory,
    pub(super) table: Memory,
}

/// A node.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) role: String,
    pub(super) epoch: u64,
    pub(super) owner: Owner,
    pub(super) pidfd: Option<OwnedFd>,
    pub(super) standing: Standing,
    pub(super) wait: Wait,
    pub(super) reads: Vec<Reads>,
    pub(super) inbox: Memory,
    pub(super) counters: Counters,
    /// What the processes of that name before this one counted.
    pub(super) past: Figures,
    pub(super) stream: Option<Stream>,
    /// Its connection, while it has one.
    pub(super) connection: Option<u64>,
    /// Publishers that have to connect it before it has joined.
    pub(super) waits: BTreeSet<u32>,
    /// Bits of its inbox by the publisher's number, kept over restarts.
    pub(super) places: BTreeMap<u32, u32>,
    /// Of streams whose records are not kept for it: the first that it has not read, by the writer's number.
    pub(super) unread: BTreeMap<u32, u64>,
}

/// The last record of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) position: u64,
    pub(super) instrument: u32,
    pub(super) sequence: u64,
}

impl Member {
    /// Whether a process is behind it.
    pub(super) fn is_there(&self) -> bool {
        matches!(self.standing, Standing::Joining | Standing::Running | Standing::Silent)
    }

    /// Rings its bell because of stream number `place`.
    pub(super) fn notify(&self, place: u32) {
        if let Some(inbox) = Inbox::new(&*self.inbox) {
            inbox.notify(place, &Futex);
        }
    }

    pub(super) fn figures(&self) -> Figures {
        let (woken, missed) = Inbox::new(&*self.inbox).map_or((0, 0), |inbox| inbox.woken_and_missed());
        self.past.plus(Figures { woken, missed, ..self.counters.figures() })
    }

    pub(super) fn status(&self) -> Status {
        Status {
            number: self.number,
            name: self.name.clone(),
            role: self.role.clone(),
            epoch: self.epoch,
            owner: self.owner,
            wait: self.wait,
            standing: self.standing,
            figures: self.figures(),
        }
    }

    /// What happens to records of the stream that it is too slow for: as the first of its reads says that means it.
    pub(super) fn overrun(&self, stream: &str) -> Overrun {
        let reads = self.reads.iter().find(|reads| matches(&reads.streams, stream));
        reads.map_or_else(Overrun::default, |reads| reads.overrun)
    }

    /// Which records of the stream it wants; none when it does not read it.
    pub(super) fn wants(&self, stream: &str) -> Option<Keys> {
        let mut wanted: Option<Vec<u32>> = None;
        for reads in self.reads.iter().filter(|reads| matches(&reads.streams, stream)) {
            let keys = match &reads.keys {
                Keys::All => return Some(Keys::All),
                Keys::Only(keys) => keys.as_slice(),
                Keys::Own => slice::from_ref(&self.number),
            };
            wanted.get_or_insert_default().extend_from_slice(keys);
        }
        wanted.map(Keys::Only)
    }
}

/// Whether a pattern means a stream.
pub(super) fn matches(pattern: &str, stream: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == stream, |start| stream.starts_with(start))
}

impl Stream {
    pub(super) fn interest(&self) -> Option<Interest<&crate::node::MemoryBehind>> {
        Interest::open(&*self.table)
    }

    /// Sets what a subscriber wants, and nothing else of it. What was wanted before and is wanted still is never away.
    pub(super) fn set_wanted(&self, subscriber: u32, keys: &Keys) -> bool {
        let Some(interest) = self.interest() else { return false };
        match keys {
            Keys::All => {
                interest.set(subscriber, None, true);
                true
            }
            // `Member::wants` has put the number in its place.
            Keys::Own => false,
            Keys::Only(keys) => {
                let keys: BTreeSet<u32> = keys.iter().copied().collect();
                let is_right = keys.iter().all(|key| interest.set(subscriber, Some(*key), true));
                for key in (0..interest.instruments()).filter(|key| !keys.contains(key)) {
                    interest.set(subscriber, Some(key), false);
                }
                interest.set(subscriber, None, false);
                is_right
            }
        }
    }

    /// The last whole record; none in an empty segment, or one that is damaged.
    pub(super) fn last(&self) -> Option<Last> {
        let segment = Segment::open(&*self.segment).ok()?;
        let looks = segment.capacity_bytes() / 64 + 64;
        let (mut reader, mut payload, mut last) = (Reader::from_start(segment), Vec::new(), None);
        for _ in 0..looks {
            match reader.next(&mut payload) {
                Read::Record(record) => {
                    let (position, sequence) = (record.position, record.sequence);
                    last = Some(Last { position, sequence, instrument: record.stamp.instrument });
                }
                Read::Gap { .. } | Read::Damaged { .. } => {}
                Read::Nothing | Read::Ended { .. } => break,
            }
        }
        last
    }

    /// How many wanted records there are from this sequence up to, not including, that position. Of those that were
    /// overwritten all count when everything is wanted, and none otherwise: which they were is not known any more.
    pub(super) fn count(&self, from_sequence: u64, to_position: u64, wanted: &Keys) -> u64 {
        let Ok(segment) = Segment::open(&*self.segment) else { return 0 };
        let all_of = |from: u64, to: u64| {
            if *wanted == Keys::All { to.saturating_sub(from.max(from_sequence)) } else { 0 }
        };
        let (first, looks) = (segment.first_sequence(), segment.capacity_bytes() / 64 + 64);
        // What came between in segments that are gone.
        let mut count = all_of(0, first);
        let (mut reader, mut payload) = (Reader::from_start(segment), Vec::new());
        for _ in 0..looks {
            match reader.next(&mut payload) {
                Read::Record(record) if record.position >= to_position => break,
                Read::Record(record) => {
                    let is_wanted = match wanted {
                        Keys::Only(keys) => keys.contains(&record.stamp.instrument),
                        Keys::All | Keys::Own => true,
                    };
                    let is_abandoned = record.stamp.kind == KIND_ABANDONED;
                    count += u64::from(is_wanted && !is_abandoned && record.sequence >= from_sequence);
                }
                Read::Gap { from, to } => count += all_of(from, to),
                Read::Damaged { .. } => {}
                Read::Nothing | Read::Ended { .. } => break,
            }
        }
        count
    }

    /// The sequence of the record at a position; none when it was overwritten.
    pub(super) fn sequence_at(&self, position: u64) -> Option<u64> {
        let reader = Reader::from_now(Segment::open(&*self.segment).ok()?);
        Some(reader.read_at(position, &mut Vec::new())?.sequence)
    }

    /// The number that the next record of the stream has.
    pub(super) fn next_sequence(&self) -> u64 {
        let first = || Segment::open(&*self.segment).map_or(1, |segment| segment.first_sequence());
        self.last().map_or_else(first, |last| last.sequence.saturating_add(1))
    }
}
