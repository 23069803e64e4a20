//! What a node reads of one stream: one ring and segment after the other.
//!
//! Whenever a writer or a reader starts again, there is a new ring. The old one is complete before the new one is told,
//! so it is emptied first and then left: nothing that was delivered is lost, and what a process that was given up still
//! writes into its old ring is never looked at again.

use super::{
    Memory,
    overrun::{Overrun, Taking},
};
use lowlat_ipc::{
    index_ring::Taken,
    layout,
    region::{Access, Memfd},
    stream::{Reader, Record, Segment},
};
use std::{collections::VecDeque, fmt, os::fd::OwnedFd, sync::Arc};

/// A stream as its readers know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamName {
    name: String,
    writer: u32,
}

impl StreamName {
    pub(crate) fn new(name: String, writer: u32) -> Self {
        Self { name, writer }
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// The number of the node that writes it.
    pub fn writer(&self) -> u32 {
        self.writer
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// One ring, or table, with the segment that its positions are of.
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
        let map = |fd, access| Memfd::open(fd, access).map(Arc::new).map_err(|error| error.to_string());
        let memory = map(segment, Access::Read)?;
        Segment::open(Arc::clone(&memory)).map_err(|error| error.to_string())?;
        Self::of(memory, map(ring, Access::Write)?, overrun)
            .ok_or_else(|| "a ring whose first word does not fit".to_owned())
    }

    /// A segment and a ring that fit; else none.
    pub(super) fn of(memory: Memory, ring: Memory, overrun: Overrun) -> Option<Self> {
        let segment = Segment::open(Arc::clone(&memory)).ok()?;
        let taking = overrun.take(ring)?;
        Some(Self { taking, is_evicted: false, reader: Reader::from_now(segment), memory })
    }

    /// The longest payload that it can bring.
    pub(super) fn payload_bytes_max(&self) -> usize {
        usize::try_from(layout::payload_bytes_max(self.reader.segment().capacity_bytes())).unwrap_or(0)
    }
}

/// A look at a stream.
#[derive(Debug)]
pub(super) enum Next {
    Record(Record),
    Lost(u64),
    /// Its publisher gives it nothing from that position on: it has to be connected anew.
    Evicted(u64),
    Nothing,
}

/// All that is to be read of a stream, in its order.
#[derive(Debug)]
pub(super) struct Sources {
    name: StreamName,
    queue: VecDeque<Source>,
    /// A position that was taken behind lost ones and comes next.
    held: Option<u64>,
    /// What went by before this process was there, until it is told.
    missed: u64,
    /// The number of the last record that was given.
    last_sequence: Option<u64>,
}

impl Sources {
    pub(super) fn new(name: StreamName) -> Self {
        Self { name, queue: VecDeque::with_capacity(4), held: None, missed: 0, last_sequence: None }
    }

    pub(super) fn name(&self) -> &StreamName {
        &self.name
    }

    /// The segments that are not read to their end, oldest first.
    pub(super) fn segments(&self) -> impl Iterator<Item = Segment<Memory>> {
        // Opened before, so it opens.
        self.queue.iter().filter_map(|source| Segment::open(Arc::clone(&source.memory)).ok())
    }

    /// The number of the last record that was given; none before the first.
    pub(super) fn last_sequence(&self) -> Option<u64> {
        self.last_sequence
    }

    pub(super) fn push(&mut self, source: Source) {
        self.queue.push_back(source);
    }

    pub(super) fn add_missed(&mut self, count: u64) {
        self.missed += count;
    }

    /// Whether an entry is there to be read, where entries are all that comes in the long run. One look at the line that
    /// it comes with.
    #[inline]
    pub(super) fn has_entry(&self) -> bool {
        // More than one: the first is empty or soon will be, and the next one is to be begun.
        self.queue.len() > 1
            || self.held.is_some()
            || self.missed > 0
            || self.queue.front().is_some_and(|source| source.taking.has_entry())
    }

    /// Whether all of it comes by rings, whose entries can be looked for.
    pub(super) fn tell_entries(&self) -> bool {
        self.queue.iter().all(|source| source.taking.tells_entries())
    }

    /// One function for all who read: what [`super::rehearsal`] keeps warm is what a record goes through.
    #[inline(never)]
    pub(super) fn next(&mut self, payload: &mut Vec<u8>) -> Next {
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
                        return Next::Evicted(first);
                    }
                    // Said again and again.
                    Taken::Evicted { .. } => break,
                };
                match source.reader.read_at(position, payload) {
                    Some(record) if lost == 0 => {
                        self.last_sequence = Some(record.sequence);
                        return Next::Record(record);
                    }
                    Some(_) => {
                        self.held = Some(position);
                        return Next::Lost(lost);
                    }
                    // Overwritten since.
                    None => lost += 1,
                }
            }
            if lost > 0 {
                return Next::Lost(lost);
            }
            if self.queue.len() == 1 {
                break;
            }
            // It was complete before its successor was told.
            self.queue.pop_front();
        }
        Next::Nothing
    }
}
