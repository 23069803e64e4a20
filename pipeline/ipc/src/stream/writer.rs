//! Appending records.

use super::{
    Segment, Stamp,
    line::{self, PlainLine},
};
use crate::{
    atomics::{AtomicU64, Ordering, fence},
    layout::{self, LINE_BYTES, header, record},
    prefetch,
    region::Region,
};
use thiserror::Error;

/// Reason why a record was not published. The stream is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PublishError {
    /// Another writer has taken over the stream: this process was believed dead.
    #[error(
        "cannot publish: another writer took over the stream with segment {successor}\nhint: restart this process"
    )]
    Fenced {
        /// Epoch of the new segment.
        successor: u64,
    },
    /// The payload is longer than a record of this stream can be.
    #[error("cannot publish {bytes} bytes: this stream takes at most {bytes_max}\nhint: use a larger ring")]
    TooLong {
        bytes: u64,
        /// Length of the longest payload.
        bytes_max: u64,
    },
    /// A kind reserved for lowlat.
    #[error(
        "cannot publish: record kind {kind:#x} is reserved\nhint: use a kind below {:#x}",
        layout::KIND_RESERVED_MIN
    )]
    Kind { kind: u16 },
    /// A subscriber that must not lose records has no room, or has not read what the record would overwrite.
    #[error(
        "cannot publish: subscriber {subscriber}, which must not lose records, has no room\nhint: retry once it has read, or disconnect it"
    )]
    NoCredit { subscriber: u32 },
}

/// Distance at which a line is fetched before it is cleared (measured: docs/decisions/pipeline/segments.md).
const FETCHED_AHEAD_BYTES: u64 = 16 * LINE_BYTES;

/// Place of a published record in its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Its position, as subscribers get it.
    pub position: u64,
    /// Its number in the stream.
    pub sequence: u64,
}

/// The only writer of a segment. It never waits, makes no system call, and does not allocate.
#[derive(Debug)]
pub struct Writer<R> {
    segment: Segment<R>,
    /// Position of the next record.
    position: u64,
    /// Sequence of the next record.
    sequence: u64,
    /// Position up to which readers assume that it may have started to write.
    claimed: u64,
    claim_step_bytes: u64,
    /// Position up to which the commit words after the last record are cleared.
    cleared: u64,
    /// Distance after the last record up to which they should be.
    ahead_bytes: u64,
    payload_bytes_max: u64,
}

impl<R: Region> Writer<R> {
    /// The writer of an unwritten segment. A segment has one writer in its life: after a crash a new segment is
    /// created.
    pub fn new(segment: Segment<R>) -> Self {
        let payload_bytes_max = layout::payload_bytes_max(segment.capacity_bytes());
        let sequence = segment.first_sequence();
        let claim_step_bytes = layout::claim_step_bytes(segment.capacity_bytes());
        Self {
            segment,
            position: 0,
            sequence,
            claimed: 0,
            claim_step_bytes,
            // Still zeroed.
            cleared: LINE_BYTES,
            ahead_bytes: LINE_BYTES,
            payload_bytes_max,
        }
    }

    pub fn segment(&self) -> &Segment<R> {
        &self.segment
    }

    /// Sequence of the next record.
    pub fn next_sequence(&self) -> u64 {
        self.sequence
    }

    /// Longest payload of this stream, in bytes.
    pub fn payload_bytes_max(&self) -> u64 {
        self.payload_bytes_max
    }

    /// Appends one record. Readers see all of it or nothing.
    #[inline]
    pub fn publish(&mut self, stamp: &Stamp, payload: &[u8]) -> Result<Published, PublishError> {
        let published = self.publish_only(stamp, payload)?;
        self.prepare();
        Ok(published)
    }

    /// [`Writer::publish`] without [`Writer::prepare`], which should follow once the record is delivered.
    #[inline]
    pub fn publish_only(&mut self, stamp: &Stamp, payload: &[u8]) -> Result<Published, PublishError> {
        if stamp.kind >= layout::KIND_RESERVED_MIN {
            return Err(PublishError::Kind { kind: stamp.kind });
        }
        self.append(stamp, payload)
    }

    /// Appends a marker record: whatever the previous writer left incomplete is abandoned.
    pub fn publish_abandoned(&mut self, stamp: &Stamp) -> Result<Published, PublishError> {
        let published = self.append(&Stamp { kind: layout::KIND_ABANDONED, ..*stamp }, &[])?;
        self.prepare();
        Ok(published)
    }

    #[inline]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn append(&mut self, stamp: &Stamp, payload: &[u8]) -> Result<Published, PublishError> {
        // Spinning readers hold these lines; fetch them while everything else is checked and prepared.
        if let Some((head, rest)) = self.segment.record_at(self.position) {
            prefetch::line_to_write(head.first());
            prefetch::line_to_write(rest.first().filter(|_| !payload.is_empty()));
        }
        if let Some(successor) = self.segment.successor() {
            return Err(PublishError::Fenced { successor });
        }
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if u64::from(length) > self.payload_bytes_max {
            let bytes = u64::try_from(payload.len()).unwrap_or(u64::MAX);
            return Err(PublishError::TooLong { bytes, bytes_max: self.payload_bytes_max });
        }
        let bytes = layout::record_bytes(u64::from(length));
        let room = self.segment.room(self.position);
        if bytes > room {
            self.pad(room);
        }
        let (position, sequence) = (self.position, self.sequence);
        self.end_at(position + bytes);
        if let Some((head, rest)) = self.segment.record_at(position) {
            // The payload first. Spinning readers poll the head's line, and each poll takes it away from this
            // core, so the head is written together with its commit. One store per word: stores of gathered
            // words would be read back before they leave the store buffer.
            copy_in(rest, payload);
            let shape = layout::pack_shape(length, stamp.kind, stamp.schema);
            let who = layout::pack(stamp.instrument, stamp.source);
            put(head, record::SHAPE, shape);
            put(head, record::SEQUENCE, sequence);
            put(head, record::WHO, who);
            put(head, record::GENERATED, stamp.generated);
            put(head, record::TRIGGER, stamp.trigger);
            put(head, record::CAUSE, stamp.cause);
            // Clears remains of an earlier lap.
            put(head, record::UNUSED, 0);
            commit(head, position);
        }
        // Readers cannot always find it from the tail: where a lap ends, the first record of the lap counts as
        // overwritten.
        if let Some(word) = self.segment.word(header::LAST) {
            word.store(position + 1, Ordering::Relaxed);
        }
        self.advance(position + bytes);
        self.sequence += 1;
        self.ahead_bytes = layout::ahead_bytes(bytes);
        Ok(Published { position, sequence })
    }

    /// Pads the rest of the lap.
    #[cold]
    fn pad(&mut self, room: u64) {
        let position = self.position;
        self.end_at(position + room);
        let length = u32::try_from(room - LINE_BYTES).unwrap_or(u32::MAX);
        let shape = layout::pack_shape(length, layout::KIND_PADDING, 0);
        if let Some((head, _)) = self.segment.record_at(position) {
            put(head, record::SHAPE, shape);
            commit(head, position);
        }
        self.advance(position + room);
    }

    /// Position up to which readers would consider the ring overwritten if a payload of this size were
    /// published next. Everything a whole ring before it is lost to readers that have not read it.
    pub fn claim_with(&self, payload_bytes: u64) -> u64 {
        let bytes = layout::record_bytes(payload_bytes);
        let room = self.segment.room(self.position);
        let end = self.position + bytes + if bytes > room { room } else { 0 };
        self.claimed.max((end + layout::ahead_bytes(bytes)).next_multiple_of(self.claim_step_bytes))
    }

    /// Claims everything before `end` for writing.
    #[inline]
    fn claim(&mut self, end: u64) {
        if end <= self.claimed {
            return;
        }
        self.claimed = end.next_multiple_of(self.claim_step_bytes);
        if let Some(word) = self.segment.word(header::CLAIM) {
            word.store(self.claimed, Ordering::Relaxed);
        }
        // Pairs with the fence in `Segment::look`: a reader that copied a word written from here on, with this
        // record or a later one, also sees the claim when it checks afterwards, and discards its copy.
        fence(Ordering::Release);
    }

    /// Before a record that ends at `end`: clears the next commit word, so that a reader does not take remains
    /// of an earlier lap for a record. Usually the previous record already did.
    #[inline]
    fn end_at(&mut self, end: u64) {
        self.claim(end + LINE_BYTES);
        if self.cleared <= end {
            self.clear(end);
            self.cleared = end + LINE_BYTES;
        }
    }

    /// Acquires the lines of the next records and clears their commit words, off the critical path. Readers
    /// hold copies of them from the last lap, and a store to such a line takes as long as publishing a record.
    /// It changes nothing that is read; whatever is not prepared is done with the next record.
    #[inline]
    pub fn prepare(&mut self) {
        let end = self.position + self.ahead_bytes;
        self.claim(end);
        while self.cleared < end {
            // Stores leave in their order, so one to a line that a reader still holds would hold up all later ones.
            prefetch::line_to_write(self.segment.commit_at(self.cleared + FETCHED_AHEAD_BYTES));
            self.clear(self.cleared);
            self.cleared += LINE_BYTES;
        }
    }

    /// Prefetches the lines of the next record, while the writer is idle. It changes nothing.
    #[inline]
    pub fn warm(&self) {
        let Some((head, rest)) = self.segment.record_at(self.position) else { return };
        prefetch::line(head.first());
        prefetch::line(rest.first());
    }

    #[inline]
    fn clear(&self, position: u64) {
        if let Some(word) = self.segment.commit_at(position) {
            word.store(0, Ordering::Relaxed);
        }
    }

    /// Publishes that everything before `position` is complete.
    #[inline]
    fn advance(&mut self, position: u64) {
        self.position = position;
        if let Some(word) = self.segment.word(header::TAIL) {
            // Pairs with the load in `Segment::tail`.
            word.store(position, Ordering::Release);
        }
    }
}

/// Commits the record at `position`.
#[inline]
fn commit(head: &[AtomicU64; record::WORDS], position: u64) {
    // Pairs with the load in `Segment::look`: whoever sees the commit sees the record, and the cleared commit
    // word after it.
    head[record::COMMIT].store(layout::commit_of(position), Ordering::Release);
}

#[inline]
fn put(head: &[AtomicU64; record::WORDS], at: usize, value: u64) {
    head[at].store(value, Ordering::Relaxed);
}

#[inline]
fn copy_in(mut words: &[AtomicU64], mut payload: &[u8]) {
    let store = if payload.len() > size_of::<PlainLine>() { line::store } else { line::store_words };
    // A whole line at once: most payloads have one or two.
    while let Some((line, behind)) = words.split_first_chunk()
        && let Some((from, rest)) = payload.split_first_chunk()
    {
        store(line, from);
        (words, payload) = (behind, rest);
    }
    if payload.is_empty() {
        return;
    }
    let (whole, rest) = payload.as_chunks::<8>();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if !rest.is_empty()
        && let Some(word) = words.get(whole.len())
    {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
    }
}
