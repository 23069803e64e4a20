//! Reading of one stream by a node: one ring and segment after the other.
//!
//! Every restart of a writer or reader creates a new ring. The old ring is complete before the new one is
//! announced, so it is emptied first and then dropped: no delivery is lost, and whatever a dropped process
//! still writes into its old ring is never read.

use super::{
    Memory,
    backlog::Backlog,
    control::map,
    counters::counted_as,
    overrun::{Overrun, Taking, Wanted},
};
use lowlat_ipc::{
    index_ring::Taken,
    layout,
    region::Access,
    stream::{Read, Reader, Record, Segment, cursor::Cursor},
};
use std::{collections::VecDeque, fmt, os::fd::OwnedFd, sync::Arc};

/// Records that a node does not want and passes over before it looks at its other streams.
const SKIPPED_MAX: u32 = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamName {
    name: String,
    writer: u32,
}

impl StreamName {
    pub fn new(name: String, writer: u32) -> Self {
        Self { name, writer }
    }

    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Number of the node that writes it.
    pub fn writer(&self) -> u32 {
        self.writer
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// One ring, or table, with the segment that its positions refer to.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) taking: Taking,
    is_evicted: bool,
    pub(super) reader: Reader<Memory>,
    memory: Memory,
    /// The stream from here on, where the place had another one.
    renamed: Option<StreamName>,
}

impl Source {
    /// Maps what the master sent; the error is a sentence.
    pub(super) fn open(segment: OwnedFd, ring: OwnedFd, overrun: Overrun) -> Result<Self, String> {
        let memory = map(segment, Access::Read)?;
        Segment::open(Arc::clone(&memory)).map_err(|error| error.to_string())?;
        Self::of(memory, map(ring, Access::Write)?, overrun)
            .ok_or_else(|| "a ring whose first word does not match".to_owned())
    }

    /// A matching segment and ring, else `None`.
    pub(super) fn of(memory: Memory, ring: Memory, overrun: Overrun) -> Option<Self> {
        let segment = Segment::open(Arc::clone(&memory)).ok()?;
        let taking = overrun.take(ring)?;
        let reader = match &taking {
            Taking::Followed { cursor, .. } => cursor.reader(segment),
            _ => Reader::from_now(segment),
        };
        Some(Self { taking, is_evicted: false, reader, memory, renamed: None })
    }

    /// Its segment, opened once more; it was opened before.
    pub(super) fn segment(&self) -> Option<Segment<Memory>> {
        Segment::open(Arc::clone(&self.memory)).ok()
    }

    /// Takes only what is wanted, if it follows the stream.
    pub(super) fn want(&mut self, instruments: Wanted) {
        if let Taking::Followed { wanted, .. } = &mut self.taking {
            *wanted = instruments;
        }
    }

    /// Longest payload that it can deliver.
    pub(super) fn payload_bytes_max(&self) -> usize {
        usize::try_from(layout::payload_bytes_max(self.reader.segment().capacity_bytes())).unwrap_or(0)
    }
}

/// Result of reading a stream.
#[derive(Debug)]
pub(super) enum ReadOutcome {
    Record(Record),
    Lost(u64),
    /// Its publisher evicted it at that position: it must be reconnected.
    Evicted(u64),
    Nothing,
}

/// Everything to be read of a stream, in order.
#[derive(Debug)]
pub(super) struct Sources {
    pub(super) name: StreamName,
    pub(super) counted_as: usize,
    pub(super) queue: VecDeque<Source>,
    /// A position that was taken after lost ones, and comes next.
    pub(super) held: Option<u64>,
    /// Records missed before this process joined, until reported.
    pub(super) missed: u64,
    /// Sequence of the last record returned; `None` before the first.
    pub(super) last_sequence: Option<u64>,
    /// What it reads before its ring.
    pub(super) backlog: Option<Box<Backlog>>,
}

impl Sources {
    pub(super) fn new(name: StreamName) -> Self {
        let counted_as = counted_as(name.as_str());
        Self {
            name,
            counted_as,
            queue: VecDeque::with_capacity(4),
            held: None,
            missed: 0,
            last_sequence: None,
            backlog: None,
        }
    }

    /// Adds a source. A stream whose writer has left gives its place to another one.
    pub(super) fn push(&mut self, name: StreamName, mut source: Source) {
        let last = self.queue.iter().rev().find_map(|source| source.renamed.as_ref()).unwrap_or(&self.name);
        if *last != name {
            source.renamed = Some(name);
        }
        self.queue.push_back(source);
        if self.queue.len() == 1 {
            self.rename();
        }
    }

    /// Takes the name of the first source.
    #[cold]
    fn rename(&mut self) {
        if let Some(name) = self.queue.front_mut().and_then(|source| source.renamed.take()) {
            self.counted_as = counted_as(name.as_str());
            self.name = name;
            self.last_sequence = None;
        }
    }

    /// The segments that are not read to the end, oldest first.
    pub(super) fn segments(&self) -> impl Iterator<Item = Segment<Memory>> {
        self.queue.iter().filter_map(Source::segment)
    }

    /// True if an entry can be read, for streams that only deliver entries in the long run. One read of the entry's own
    /// line.
    #[inline]
    pub(super) fn has_entry(&self) -> bool {
        // More than one: the first is empty or soon will be, and the next one is due.
        self.queue.len() > 1
            || self.backlog.is_some()
            || self.held.is_some()
            || self.missed > 0
            || self.queue.front().is_some_and(|source| match source.taking {
                Taking::Followed { .. } => source.reader.has_next(),
                _ => source.taking.has_entry(),
            })
    }

    /// True if nothing but reading it shows what is in it.
    pub(super) fn is_followed(&self) -> bool {
        self.queue.back().is_some_and(|source| matches!(source.taking, Taking::Followed { .. }))
    }

    /// True if it is fed only by rings, whose entries can be polled.
    pub(super) fn tell_entries(&self) -> bool {
        self.queue.iter().all(|source| source.taking.tells_entries())
    }

    /// A single function for real and rehearsed records: what [`super::rehearsal`] keeps warm is the path of a
    /// record.
    #[inline(never)]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub(super) fn next(&mut self, payload: &mut Vec<u8>) -> ReadOutcome {
        if self.backlog.is_some() {
            match self.next_of_backlog(payload) {
                Some(outcome) => return outcome,
                None if self.backlog.is_some() => return ReadOutcome::Nothing,
                None => {}
            }
        }
        let mut lost = std::mem::take(&mut self.missed);
        while let Some(source) = self.queue.front_mut() {
            if let Taking::Followed { cursor, wanted } = &source.taking {
                // What was missed before it comes first.
                if lost > 0 {
                    return ReadOutcome::Lost(lost);
                }
                match follow(&mut source.reader, cursor, wanted, payload) {
                    Followed::Record(record) => {
                        self.last_sequence = Some(record.sequence);
                        return ReadOutcome::Record(record);
                    }
                    Followed::Lost(count) => return ReadOutcome::Lost(count),
                    Followed::More => return ReadOutcome::Nothing,
                    Followed::Nothing => {}
                }
            }
            while let Some(taken) = self.held.take().map(Taken::Entry).or_else(|| source.taking.next()) {
                let position = match taken {
                    Taken::Entry(position) => position,
                    Taken::Gap(gap) => {
                        lost += gap.count;
                        continue;
                    }
                    Taken::Evicted { first } if lost == 0 && !source.is_evicted => {
                        source.is_evicted = true;
                        return ReadOutcome::Evicted(first);
                    }
                    // Repeated on each call.
                    Taken::Evicted { .. } => break,
                };
                match source.reader.read_at(position, payload) {
                    Some(record) if lost == 0 => {
                        self.last_sequence = Some(record.sequence);
                        return ReadOutcome::Record(record);
                    }
                    Some(_) => {
                        self.held = Some(position);
                        return ReadOutcome::Lost(lost);
                    }
                    // Overwritten since.
                    None => lost += 1,
                }
            }
            if lost > 0 {
                return ReadOutcome::Lost(lost);
            }
            if self.queue.len() == 1 {
                break;
            }
            // It was complete before its successor was announced.
            self.queue.pop_front();
            self.rename();
        }
        ReadOutcome::Nothing
    }
}

/// What following a stream found.
enum Followed {
    Record(Record),
    Lost(u64),
    /// Only records that are not wanted, and there are more.
    More,
    Nothing,
}

/// Reads a stream that the node follows itself, up to a record that it wants.
#[inline]
fn follow(
    reader: &mut Reader<Memory>,
    cursor: &Cursor<Memory>,
    wanted: &Wanted,
    payload: &mut Vec<u8>,
) -> Followed {
    let mut skipped = None;
    for _ in 0..SKIPPED_MAX {
        match reader.next(payload) {
            Read::Record(record) => {
                let is_wanted = wanted.has(record.stamp.instrument);
                if is_wanted && record.stamp.kind < layout::KIND_RESERVED_MIN {
                    cursor.store(reader.position(), record.sequence.wrapping_add(1));
                    return Followed::Record(record);
                }
                skipped = Some(record.sequence);
            }
            Read::Gap { from, to } => return Followed::Lost(to.saturating_sub(from)),
            Read::Damaged { .. } => {}
            Read::Nothing | Read::Ended { .. } => {
                if let Some(sequence) = skipped {
                    cursor.store(reader.position(), sequence.wrapping_add(1));
                }
                return Followed::Nothing;
            }
        }
    }
    Followed::More
}
