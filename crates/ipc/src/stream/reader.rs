//! Following a stream.

use super::{
    Segment, Stamp,
    look::Other,
    payload::{Fixed, Payload},
};
use crate::{
    layout::{self, LINE_BYTES},
    region::Region,
};

/// A record as it was read; its payload is in the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Where it stands.
    pub position: u64,
    /// Its number in the stream.
    pub sequence: u64,
    /// What stands beside the payload.
    pub stamp: Stamp,
}

/// What a look at a stream gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// No record is there yet.
    Nothing,
    /// A record.
    Record(Record),
    /// Records were overwritten before they were read: those from `from` up to, not including, `to`, which comes next.
    /// It is told when `to` is there.
    Gap {
        /// The first that is lost.
        from: u64,
        /// The next one that can be read.
        to: u64,
    },
    /// Nothing comes any more: the stream goes on in the segment of this epoch.
    Ended {
        /// That epoch.
        successor: u64,
    },
    /// What stands there is no record. The reader goes on behind it, and reports what it passed over as a gap.
    Damaged {
        /// Where.
        position: u64,
    },
}

/// How many places a reader looks at before it gives the caller its turn. Padding, and being lapped right behind it,
/// take three; more only come from a writer that goes on lapping, or from a damaged ring. Loom tries every order of each.
const LOOKS_MAX: usize = if cfg!(lowlat_loom) { 2 } else { 8 };

/// Reads a segment at a position of its own. It writes nothing, so any number of them disturb nobody.
#[derive(Debug)]
pub struct Reader<R> {
    segment: Segment<R>,
    position: u64,
    /// The number of the next record; none before the first one was seen.
    expected: Option<u64>,
}

impl<R: Region> Reader<R> {
    /// A reader that begins with the oldest record that is still there.
    pub fn from_start(segment: Segment<R>) -> Self {
        let expected = Some(segment.first_sequence());
        Self { segment, position: 0, expected }
    }

    /// A reader that begins with the next record.
    pub fn from_now(segment: Segment<R>) -> Self {
        let position = segment.tail();
        Self { segment, position, expected: None }
    }

    /// The last whole record of a segment, for who goes on after its writer; none before the first, or when the segment is
    /// damaged. What a dead writer had made whole counts, though it had not come to say so.
    pub fn last(segment: Segment<R>) -> Option<Record> {
        let looks = segment.capacity_bytes() / LINE_BYTES + 64;
        // The tail first: the word is as new then.
        let mut reader = Self::from_now(segment);
        let mut payload = Vec::new();
        let said = (0..LOOKS_MAX).find_map(|_| {
            // A writer that lives may have gone round since the word was read.
            reader.segment.last().and_then(|position| reader.read_at(position, &mut payload))
        });
        let mut last = said;
        if said.is_none() {
            // Of version 1: what can be reached from the start.
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

    /// The segment.
    pub fn segment(&self) -> &Segment<R> {
        &self.segment
    }

    /// Where the next record is looked for.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes between this reader and the newest record.
    pub fn lag_bytes(&self) -> u64 {
        self.segment.tail().saturating_sub(self.position)
    }

    /// The next record, its payload in `payload`, which is not made larger once it holds the longest one.
    #[expect(clippy::inline_always, reason = "measured, see `next_to`")]
    #[inline(always)]
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Read {
        self.next_to(payload)
    }

    /// The next record, its payload in the first bytes of `buffer`: for readers that never allocate. One that is longer
    /// than the buffer is cut, and its checksum is not looked at; [`Reader::payload_bytes_max`] is always enough.
    #[expect(clippy::inline_always, reason = "measured, see `next_to`")]
    #[inline(always)]
    pub fn next_into<'b>(&mut self, buffer: &'b mut [u8]) -> (Read, &'b [u8]) {
        let mut fixed = Fixed::new(buffer);
        let read = self.next_to(&mut fixed);
        let length = if matches!(read, Read::Record(_)) { fixed.length() } else { 0 };
        (read, buffer.get(..length).unwrap_or_default())
    }

    /// The longest payload of this stream.
    pub fn payload_bytes_max(&self) -> u64 {
        layout::payload_bytes_max(self.segment.capacity_bytes())
    }

    /// In the loop of who calls it, with all that a record takes: a call of its own, and what it found handed back through
    /// memory, were a third of a record's instructions.
    #[expect(clippy::inline_always, reason = "measured: a tenth of a record's way")]
    #[inline(always)]
    fn next_to(&mut self, payload: &mut impl Payload) -> Read {
        match self.segment.look(self.position, payload) {
            Ok((record, bytes)) => self.take(record, bytes),
            Err(Other::Nothing) => self.end_or_nothing(payload),
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

    /// Where something else than a record is: what comes behind it.
    #[cold]
    fn next_behind(&mut self, mut other: Other, payload: &mut impl Payload) -> Read {
        for _ in 1..LOOKS_MAX {
            match other {
                Other::Nothing => return self.end_or_nothing(payload),
                Other::Padding { bytes } => self.position = self.position.wrapping_add(bytes),
                Other::Overrun => self.catch_up(),
                Other::Damaged => {
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

    /// The record at a position that the writer gave: none when it was overwritten since, is not there yet, or the
    /// position is none of a record.
    #[inline]
    pub fn read_at(&self, position: u64, payload: &mut Vec<u8>) -> Option<Record> {
        if !position.is_multiple_of(LINE_BYTES) {
            return None;
        }
        self.segment.look(position, payload).ok().map(|(record, _)| record)
    }

    #[inline]
    fn end_or_nothing(&mut self, payload: &mut impl Payload) -> Read {
        self.segment.successor().map_or(Read::Nothing, |successor| self.end(successor, payload))
    }

    #[cold]
    fn end(&mut self, successor: u64, payload: &mut impl Payload) -> Read {
        // What was committed before the fence counts: look once more behind it.
        match self.segment.look(self.position, payload) {
            Err(Other::Nothing) => Read::Ended { successor },
            _ => Read::Nothing,
        }
    }

    /// To where the present lap began: the oldest place of which is known that a record begins there. When the writer is so near
    /// the lap's end that it has claimed that too, or has just ended it, nothing older than the tail can be found: the next call
    /// goes there, and what is lost is told with the record that comes. So this is no way to a stream's last record.
    #[cold]
    fn catch_up(&mut self) {
        let tail = self.segment.tail();
        let lap = tail & !(self.segment.capacity_bytes() - 1);
        // A damaged header may have any number there.
        self.position = (if lap > self.position { lap } else { tail.max(self.position) }) & !(LINE_BYTES - 1);
    }
}
