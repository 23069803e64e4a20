//! Appending records.

use super::{Segment, Stamp, crc_of};
use crate::{
    atomics::{AtomicU64, Ordering, fence},
    layout::{self, LINE_BYTES, header, record},
    prefetch,
    region::Region,
};
use thiserror::Error;

/// Why a record is not published. The stream is as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PublishError {
    /// Another writer has taken the stream over: this process was thought dead.
    #[error("this writer was fenced off: segment {successor} of the stream has another writer; start anew")]
    Fenced {
        /// The epoch of the segment that took over.
        successor: u64,
    },
    /// More bytes than a record of this stream holds.
    #[error("a payload of {bytes} bytes, and this stream takes {bytes_max} at most; give it a larger ring")]
    TooLong {
        /// Bytes asked for.
        bytes: u64,
        /// What fits.
        bytes_max: u64,
    },
    /// A kind that is lowlat's own.
    #[error("record kind {kind:#x} is reserved; take one below {:#x}", layout::KIND_RESERVED_MIN)]
    Kind {
        /// The kind.
        kind: u16,
    },
    /// A subscriber that may lose nothing has no room, or has not read yet what the record would be written over.
    #[error(
        "subscriber {subscriber}, which may lose nothing, has no room; try again once it has read, or disconnect it"
    )]
    NoCredit {
        /// Its number.
        subscriber: u32,
    },
}

/// A published record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// Where it stands: what subscribers are given.
    pub position: u64,
    /// Its number in the stream.
    pub sequence: u64,
}

/// The one writer of a segment. It never waits, calls the kernel or allocates.
#[derive(Debug)]
pub struct Writer<R> {
    segment: Segment<R>,
    /// Where the next record goes.
    position: u64,
    /// Its number.
    sequence: u64,
    /// Up to where readers know that it may have begun to write.
    claimed: u64,
    claim_step_bytes: u64,
    /// Up to where the commit words behind the last record are cleared.
    cleared: u64,
    /// How far behind the last record they are to be.
    ahead_bytes: u64,
    payload_bytes_max: u64,
    has_crc: bool,
}

impl<R: Region> Writer<R> {
    /// The writer of a segment that nobody has written yet. A segment has one writer in its life: there is no second
    /// one after a crash, but a new segment.
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
            // Nobody has written there: it is zeroed.
            cleared: LINE_BYTES,
            ahead_bytes: LINE_BYTES,
            payload_bytes_max,
            has_crc: false,
        }
    }

    /// The same writer, with a CRC-32C in each record: for streams whose readers must tell damage from data.
    #[must_use]
    pub fn with_crc(self) -> Self {
        Self { has_crc: true, ..self }
    }

    /// The segment.
    pub fn segment(&self) -> &Segment<R> {
        &self.segment
    }

    /// The number of the next record.
    pub fn next_sequence(&self) -> u64 {
        self.sequence
    }

    /// The longest payload that it takes.
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

    /// [`Writer::publish`] without [`Writer::prepare`], which is to follow when the record has been delivered.
    #[inline]
    pub fn publish_only(&mut self, stamp: &Stamp, payload: &[u8]) -> Result<Published, PublishError> {
        if stamp.kind >= layout::KIND_RESERVED_MIN {
            return Err(PublishError::Kind { kind: stamp.kind });
        }
        self.append(stamp, payload)
    }

    /// Appends the record that says: what the writer before this one had begun and not finished is abandoned.
    pub fn publish_abandoned(&mut self, stamp: &Stamp) -> Result<Published, PublishError> {
        let published = self.append(&Stamp { kind: layout::KIND_ABANDONED, ..*stamp }, &[])?;
        self.prepare();
        Ok(published)
    }

    #[inline]
    fn append(&mut self, stamp: &Stamp, payload: &[u8]) -> Result<Published, PublishError> {
        // Readers that spin have these lines; they are on their way back while all else is looked at and put together.
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
            // The payload first. Readers that spin look at the head's line, and each look takes it away from this core:
            // it is written in one go with its commit. One by one, for words that are gathered before are read back
            // before they have left the store buffer.
            copy_in(rest, payload);
            let shape = layout::pack_shape(length, stamp.kind, stamp.schema);
            let who = layout::pack(stamp.instrument, stamp.source);
            let check = if self.has_crc { checksum(shape, sequence, who, stamp, payload) } else { 0 };
            put(head, record::SHAPE, shape);
            put(head, record::SEQUENCE, sequence);
            put(head, record::WHO, who);
            put(head, record::GENERATED, stamp.generated);
            put(head, record::TRIGGER, stamp.trigger);
            put(head, record::CAUSE, stamp.cause);
            put(head, record::CHECK, check);
            commit(head, position);
        }
        // A reader can't always go back to it from the tail: where a lap ends, its first record counts as written over.
        if let Some(word) = self.segment.word(header::LAST) {
            word.store(position + 1, Ordering::Relaxed);
        }
        self.advance(position + bytes);
        self.sequence += 1;
        self.ahead_bytes = layout::ahead_bytes(bytes);
        Ok(Published { position, sequence })
    }

    /// Fills the rest of the lap.
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

    /// Up to which position readers are told that the ring is written over, if a payload of so many bytes is published
    /// next. What stands a whole ring before it is lost to those that have not read it.
    pub fn claim_with(&self, payload_bytes: u64) -> u64 {
        let bytes = layout::record_bytes(payload_bytes);
        let room = self.segment.room(self.position);
        let end = self.position + bytes + if bytes > room { room } else { 0 };
        self.claimed.max((end + layout::ahead_bytes(bytes)).next_multiple_of(self.claim_step_bytes))
    }

    /// Says that everything before `end` may be written from now on.
    #[inline]
    fn claim(&mut self, end: u64) {
        if end <= self.claimed {
            return;
        }
        self.claimed = end.next_multiple_of(self.claim_step_bytes);
        if let Some(word) = self.segment.word(header::CLAIM) {
            word.store(self.claimed, Ordering::Relaxed);
        }
        // Pairs with the fence in `Segment::look`: a reader that copied a word written from here on, with this record
        // or a later one, also sees the claim when it looks at it afterwards, and drops what it copied.
        fence(Ordering::Release);
    }

    /// Before a record that ends at `end`: clears the commit word there, since a reader that comes there must not take
    /// what an earlier lap left for a record. Mostly that was done behind the record before.
    #[inline]
    fn end_at(&mut self, end: u64) {
        self.claim(end + LINE_BYTES);
        if self.cleared <= end {
            self.clear(end);
            self.cleared = end + LINE_BYTES;
        }
    }

    /// Takes the lines of the next records, and clears their commit words, while nobody waits. Readers have copies of
    /// them from the lap before, and a store into such a line takes as long as a record's whole way. It changes nothing
    /// that is read; what was not prepared is done with the next record.
    #[inline]
    pub fn prepare(&mut self) {
        let end = self.position + self.ahead_bytes;
        self.claim(end);
        while self.cleared < end {
            self.clear(self.cleared);
            self.cleared += LINE_BYTES;
        }
    }

    /// Has the lines of the next record fetched, for a writer that has nothing to do. It changes nothing.
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

    /// What stands before `position` is whole.
    #[inline]
    fn advance(&mut self, position: u64) {
        self.position = position;
        if let Some(word) = self.segment.word(header::TAIL) {
            // Pairs with the load in `Segment::tail`.
            word.store(position, Ordering::Release);
        }
    }
}

/// Makes the record at `position` one.
#[inline]
fn commit(head: &[AtomicU64; record::WORDS], position: u64) {
    // Pairs with the load in `Segment::look`: who sees the commit sees the record, and the cleared commit word behind it.
    head[record::COMMIT].store(layout::commit_of(position), Ordering::Release);
}

#[inline]
fn put(head: &[AtomicU64; record::WORDS], at: usize, value: u64) {
    head[at].store(value, Ordering::Relaxed);
}

/// The check word of a record with a checksum.
#[inline(never)]
fn checksum(shape: u64, sequence: u64, who: u64, stamp: &Stamp, payload: &[u8]) -> u64 {
    let words = [0, shape, sequence, who, stamp.generated, stamp.trigger, stamp.cause, 0];
    layout::pack(crc_of(&words, payload), layout::FLAG_CRC)
}

#[inline]
fn copy_in(mut words: &[AtomicU64], mut payload: &[u8]) {
    // A line in one go: most payloads are one or two.
    while let Some((line, behind)) = words.split_first_chunk::<{ record::WORDS }>()
        && let Some((from, rest)) = payload.split_at_checked(size_of_val(line))
    {
        for (word, bytes) in line.iter().zip(from.as_chunks::<8>().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
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
