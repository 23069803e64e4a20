//! Reading a stream.

use super::{Segment, Stamp, look::NoRecord};
use crate::{
    atomics::Ordering,
    layout::{self, LINE_BYTES, record},
    region::Region,
};

/// A record as read; its payload is in the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    pub position: u64,
    /// Its number in the stream.
    pub sequence: u64,
    pub stamp: Stamp,
}

/// Result of reading a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// No record is available yet.
    Nothing,
    Record(Record),
    /// Records were overwritten before they were read: from `from` up to, but not including, `to`, which is
    /// read next. Reported once `to` is available.
    Gap {
        /// Sequence of the first lost record.
        from: u64,
        /// Sequence of the next readable record.
        to: u64,
    },
    /// No record will follow: the stream continues in the segment of this epoch.
    Ended {
        successor: u64,
    },
    /// The bytes at this position are not a record. The reader continues after them, and reports what it
    /// skipped as a gap.
    Damaged {
        position: u64,
    },
}

/// Number of places that a reader inspects before it returns to the caller. Padding, and being lapped right
/// after it, take three; more only happen with a writer that keeps lapping, or in a damaged ring. Loom tries
/// every order of each.
const LOOKS_MAX: usize = if cfg!(lowlat_loom) { 2 } else { 8 };

/// Reads a segment at its own position. It writes nothing, so readers do not disturb each other.
#[derive(Debug)]
pub struct Reader<R> {
    segment: Segment<R>,
    position: u64,
    /// Number of the next record; `None` before the first one was seen.
    expected: Option<u64>,
}

impl<R: Region> Reader<R> {
    /// A reader that starts with the oldest available record.
    pub fn from_start(segment: Segment<R>) -> Self {
        let expected = Some(segment.first_sequence());
        Self { segment, position: 0, expected }
    }

    /// A reader that starts with the oldest record that is not overwritten, also of the lap before the present one.
    pub fn from_oldest(segment: Segment<R>) -> Self {
        let (tail, capacity) = (segment.tail(), segment.capacity_bytes());
        let mut reader = Self { segment, position: 0, expected: None };
        let mut places = (tail.saturating_sub(capacity) & !(LINE_BYTES - 1)..tail)
            .step_by(usize::try_from(LINE_BYTES).unwrap_or(1));
        let mut payload = Vec::new();
        reader.position = places.find(|place| reader.is_start(*place, &mut payload)).unwrap_or(tail);
        reader
    }

    /// True if a record starts there, and the next one, if any, follows it: a payload may look like a record.
    fn is_start(&self, position: u64, payload: &mut Vec<u8>) -> bool {
        let Ok((record, bytes)) = self.segment.look(position, payload) else { return false };
        match self.segment.look(position.saturating_add(bytes), payload) {
            Ok((next, _)) => next.sequence == record.sequence.wrapping_add(1),
            // It is the last one, or the last of its lap.
            Err(found) => matches!(found, NoRecord::Nothing | NoRecord::Padding { .. }),
        }
    }

    /// A reader that starts with the next record.
    pub fn from_now(segment: Segment<R>) -> Self {
        let position = segment.tail();
        Self { segment, position, expected: None }
    }

    /// A reader that continues at a position, where it expects the record with this sequence or, if the place was stored
    /// only half, the one before.
    pub(super) fn resume(segment: Segment<R>, position: u64, expected: Option<u64>) -> Self {
        let is_before = |sequence: &u64| {
            let word = segment.record_at(position).and_then(|(head, _)| head.get(record::SEQUENCE));
            // Relaxed: only compared; what is read is checked as for every reader.
            word.is_some_and(|word| word.load(Ordering::Relaxed).wrapping_add(1) == *sequence)
        };
        // A predecessor may have stored any number.
        let expected = expected.map(|sequence| sequence.wrapping_sub(u64::from(is_before(&sequence))));
        Self { segment, position: position & !(LINE_BYTES - 1), expected }
    }

    /// True if the next read finds a record, padding, or that the writer has lapped this reader: one read of the record's
    /// first line, for spinning.
    #[inline]
    pub fn has_next(&self) -> bool {
        let wanted = layout::commit_of(self.position);
        // Relaxed: the read that follows loads it again.
        self.segment.commit_at(self.position).is_some_and(|word| word.load(Ordering::Relaxed) >= wanted)
    }

    /// The last complete record of a segment, for the writer's successor; `None` before the first, or if the
    /// segment is damaged. Includes records that a dead writer had completed but not yet published in the
    /// header.
    pub fn last(segment: Segment<R>) -> Option<Record> {
        let looks = segment.capacity_bytes() / LINE_BYTES + 64;
        // The tail first: the word is then at least as new.
        let mut reader = Self::from_now(segment);
        let mut payload = Vec::new();
        let said = (0..LOOKS_MAX).find_map(|_| {
            // A live writer may have lapped since the word was read.
            reader.segment.last().and_then(|position| reader.read_at(position, &mut payload))
        });
        let mut last = said;
        if said.is_none() {
            // A writer that laps every look, or a damaged header: records reachable from the start.
            reader.position = 0;
        }
        for _ in 0..looks {
            match reader.next(&mut payload) {
                Read::Record(record) => {
                    last = last.filter(|last| last.position > record.position).or(Some(record));
                }
                Read::Gap { .. } | Read::Damaged { .. } => {}
                Read::Nothing | Read::Ended { .. } => break,
            }
        }
        last
    }

    pub fn segment(&self) -> &Segment<R> {
        &self.segment
    }

    /// Position of the next read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Reads the next record, with its payload in `payload`, which stops growing once it can hold the longest
    /// one. Inlined into the caller: a separate call, with its result returned through memory, took a third of a
    /// record's instructions.
    #[expect(clippy::inline_always, reason = "measured: a tenth of a record's latency")]
    #[inline(always)]
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Read {
        match self.segment.look(self.position, payload) {
            Ok((record, bytes)) => self.take(record, bytes),
            Err(NoRecord::Nothing) => self.end_or_nothing(payload),
            Err(other) => self.next_behind(other, payload),
        }
    }

    #[inline]
    fn take(&mut self, record: Record, bytes: u64) -> Read {
        if let Some(expected) = self.expected
            && record.sequence != expected
        {
            self.expected = Some(record.sequence);
            return Read::Gap { from: expected, to: record.sequence };
        }
        self.expected = Some(record.sequence.wrapping_add(1));
        self.position = self.position.wrapping_add(bytes);
        Read::Record(record)
    }

    /// Handles places without a record: what follows them.
    #[cold]
    fn next_behind(&mut self, mut other: NoRecord, payload: &mut Vec<u8>) -> Read {
        for _ in 1..LOOKS_MAX {
            match other {
                NoRecord::Nothing => return self.end_or_nothing(payload),
                NoRecord::Padding { bytes } => self.position = self.position.wrapping_add(bytes),
                NoRecord::Overrun => self.catch_up(),
                NoRecord::Damaged => {
                    let position = self.position;
                    self.catch_up();
                    return Read::Damaged { position };
                }
            }
            match self.segment.look(self.position, payload) {
                Ok((record, bytes)) => return self.take(record, bytes),
                Err(found) => other = found,
            }
        }
        Read::Nothing
    }

    /// Reads the record at a position that the writer returned; `None` if it was overwritten, is not yet
    /// complete, or the position is invalid.
    #[inline]
    pub fn read_at(&self, position: u64, payload: &mut Vec<u8>) -> Option<Record> {
        if !position.is_multiple_of(LINE_BYTES) {
            return None;
        }
        self.segment.look(position, payload).ok().map(|(record, _)| record)
    }

    #[inline]
    fn end_or_nothing(&mut self, payload: &mut Vec<u8>) -> Read {
        self.segment.successor().map_or(Read::Nothing, |successor| self.end(successor, payload))
    }

    #[cold]
    fn end(&mut self, successor: u64, payload: &mut Vec<u8>) -> Read {
        // Records committed before the fence count: check once more after it.
        match self.segment.look(self.position, payload) {
            Err(NoRecord::Nothing) => Read::Ended { successor },
            _ => Read::Nothing,
        }
    }

    /// Moves to the start of the present lap: the oldest place known to hold the start of a record. If the
    /// writer is so near the lap's end that it has claimed that too, or has just completed the lap, nothing
    /// before the tail can be located: the next read is there, and the gap is reported with the next record. So
    /// this does not find a stream's last record.
    #[cold]
    fn catch_up(&mut self) {
        let tail = self.segment.tail();
        let lap = tail & !(self.segment.capacity_bytes() - 1);
        // A damaged header may contain any number.
        self.position = (if lap > self.position { lap } else { tail.max(self.position) }) & !(LINE_BYTES - 1);
    }
}
