//! Reading of one stream by a node: one ring and segment after the other.
//!
//! Every restart of a writer or reader creates a new ring. The old ring is complete before the new one is
//! announced, so it is emptied first and then dropped: no delivery is lost, and whatever a dropped process
//! still writes into its old ring is never read.

use super::{
    Memory,
    control::map,
    counters::counted_as,
    overrun::{Overrun, Taking},
};
use lowlat_ipc::{
    index_ring::Taken,
    layout,
    region::Access,
    stream::{Reader, Record, Segment},
};
use std::{collections::VecDeque, fmt, os::fd::OwnedFd, sync::Arc};

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
    taking: Taking,
    is_evicted: bool,
    reader: Reader<Memory>,
    memory: Memory,
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
        Some(Self { taking, is_evicted: false, reader: Reader::from_now(segment), memory })
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
    held: Option<u64>,
    /// Records missed before this process joined, until reported.
    pub(super) missed: u64,
    /// Sequence of the last record returned; `None` before the first.
    pub(super) last_sequence: Option<u64>,
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
        }
    }

    /// The segments that are not read to the end, oldest first.
    pub(super) fn segments(&self) -> impl Iterator<Item = Segment<Memory>> {
        // It was opened before, so it opens again.
        self.queue.iter().filter_map(|source| Segment::open(Arc::clone(&source.memory)).ok())
    }

    /// True if an entry can be read, for streams that only deliver entries in the long run. One read of the entry's own
    /// line.
    #[inline]
    pub(super) fn has_entry(&self) -> bool {
        // More than one: the first is empty or soon will be, and the next one is due.
        self.queue.len() > 1
            || self.held.is_some()
            || self.missed > 0
            || self.queue.front().is_some_and(|source| source.taking.has_entry())
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
        let mut lost = std::mem::take(&mut self.missed);
        while let Some(source) = self.queue.front_mut() {
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
        }
        ReadOutcome::Nothing
    }
}
