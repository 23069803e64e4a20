//! Following a stream.

use super::{Segment, Stamp, crc_of};
use crate::{
    atomics::{AtomicU64, Ordering, fence},
    layout::{self, LINE_BYTES, header, record},
    prefetch,
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

/// What a look finds instead of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    Nothing,
    Padding { bytes: u64 },
    Overrun,
    Damaged,
}

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
    #[inline]
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Read {
        self.next_to(payload)
    }

    /// The next record, its payload in the first bytes of `buffer`: for readers that never allocate. One that is longer
    /// than the buffer is cut, and its checksum is not looked at; [`Reader::payload_bytes_max`] is always enough.
    #[inline]
    pub fn next_into<'b>(&mut self, buffer: &'b mut [u8]) -> (Read, &'b [u8]) {
        let mut fixed = Fixed { buffer, length: 0, is_cut: false };
        let read = self.next_to(&mut fixed);
        let length = if matches!(read, Read::Record(_)) { fixed.length } else { 0 };
        (read, buffer.get(..length).unwrap_or_default())
    }

    /// The longest payload of this stream.
    pub fn payload_bytes_max(&self) -> u64 {
        layout::payload_bytes_max(self.segment.capacity_bytes())
    }

    /// Few instructions where nothing is, without the frame that a record takes.
    #[expect(clippy::inline_always, reason = "measured: a look at nothing takes half as long")]
    #[inline(always)]
    fn next_to(&mut self, payload: &mut impl Payload) -> Read {
        match self.find(self.position) {
            Err(Other::Nothing) => self.end_or_nothing(payload),
            Err(other) => self.next_behind(other, payload),
            Ok(()) => self.next_there(payload),
        }
    }

    #[inline(never)]
    fn next_there(&mut self, payload: &mut impl Payload) -> Read {
        match self.read(self.position, payload) {
            Ok((record, bytes)) => self.take(record, bytes),
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
            match self.look(self.position, payload) {
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
        self.look(position, payload).ok().map(|(record, _)| record)
    }

    #[inline]
    fn end_or_nothing(&mut self, payload: &mut impl Payload) -> Read {
        self.segment.successor().map_or(Read::Nothing, |successor| self.end(successor, payload))
    }

    #[cold]
    fn end(&mut self, successor: u64, payload: &mut impl Payload) -> Read {
        // What was committed before the fence counts: look once more behind it.
        match self.look(self.position, payload) {
            Err(Other::Nothing) => Read::Ended { successor },
            _ => Read::Nothing,
        }
    }

    /// To where the present lap began: always a record, and the oldest place that is surely not written soon.
    #[cold]
    fn catch_up(&mut self) {
        let tail = self.segment.tail();
        let lap = tail & !(self.segment.capacity_bytes() - 1);
        // A damaged header may have any number there.
        self.position = (if lap > self.position { lap } else { tail.max(self.position) }) & !(LINE_BYTES - 1);
    }

    #[inline]
    fn is_overrun(&self, position: u64) -> bool {
        let claim = self.segment.word(header::CLAIM).map_or(0, |word| word.load(Ordering::Relaxed));
        claim > position.saturating_add(self.segment.capacity_bytes())
    }

    /// The record at a position and the bytes that it takes, or what is there else.
    #[inline]
    fn look(&self, position: u64, payload: &mut impl Payload) -> Result<(Record, u64), Other> {
        self.find(position)?;
        self.read(position, payload)
    }

    /// Whether a record, or padding, is at a position.
    #[inline]
    fn find(&self, position: u64) -> Result<(), Other> {
        let Some((head, rest)) = self.segment.record_at(position) else { return Err(Other::Damaged) };
        // On its way together with the head's line, not after it.
        prefetch::line(rest.first());
        // Pairs with the store in `writer::commit`.
        if head[record::COMMIT].load(Ordering::Acquire) == layout::commit_of(position) {
            return Ok(());
        }
        // An older or cleared commit: not written yet, unless the writer is a lap ahead.
        Err(if self.is_overrun(position) { Other::Overrun } else { Other::Nothing })
    }

    /// What is at a position where something was found. It is far larger than a register: handed from call to call it would be
    /// copied again and again.
    #[expect(clippy::inline_always, reason = "measured: a sixth of a record's way")]
    #[inline(always)]
    fn read(&self, position: u64, payload: &mut impl Payload) -> Result<(Record, u64), Other> {
        let Some((head, rest)) = self.segment.record_at(position) else { return Err(Other::Damaged) };
        let get = |at: usize| head[at].load(Ordering::Relaxed);
        let shape = get(record::SHAPE);
        let length = u64::from(layout::length_of(shape));
        let bytes = layout::record_bytes(length);
        if bytes > self.segment.room(position) || layout::kind_of(shape) == layout::KIND_PADDING {
            return Err(self.no_record(position, bytes));
        }
        payload.copy(rest, usize::try_from(length).unwrap_or(0));
        // After the payload, so that they need not be kept anywhere while that is copied.
        let sequence = get(record::SEQUENCE);
        let who = get(record::WHO);
        let generated = get(record::GENERATED);
        let trigger = get(record::TRIGGER);
        let cause = get(record::CAUSE);
        let check = get(record::CHECK);
        // Pairs with the fence in `Writer::claim`: if any word above was written after a later claim, that claim is
        // seen now.
        fence(Ordering::Acquire);
        if self.is_overrun(position) {
            return Err(Other::Overrun);
        }
        let (crc, flags) = layout::unpack(check);
        if flags & layout::FLAG_CRC != 0 {
            let words = [0, shape, sequence, who, generated, trigger, cause, 0];
            if payload.whole().is_some_and(|whole| crc != crc_of(&words, whole)) {
                return Err(Other::Damaged);
            }
        }
        let (instrument, source) = layout::unpack(who);
        let stamp = Stamp {
            kind: layout::kind_of(shape),
            schema: layout::schema_of(shape),
            instrument,
            source,
            generated,
            trigger,
            cause,
        };
        Ok((Record { position, sequence, stamp }, bytes))
    }

    /// What a head is that was just read, and that is not one of a record.
    #[cold]
    fn no_record(&self, position: u64, bytes: u64) -> Other {
        // Pairs with the fence in `Writer::claim`, as above.
        fence(Ordering::Acquire);
        if self.is_overrun(position) {
            Other::Overrun
        } else if bytes > self.segment.room(position) {
            Other::Damaged
        } else {
            Other::Padding { bytes }
        }
    }
}

/// Where a payload is copied to.
trait Payload {
    fn copy(&mut self, words: &[AtomicU64], length: usize);

    /// What was copied, if it is all.
    fn whole(&self) -> Option<&[u8]>;
}

impl Payload for Vec<u8> {
    #[inline]
    fn copy(&mut self, words: &[AtomicU64], length: usize) {
        let padded = (length + 7) & !7;
        // Mostly as long as the one before.
        if self.len() != padded {
            self.resize(padded, 0);
        }
        copy_whole(self, words);
        if length != padded {
            self.truncate(length);
        }
    }

    fn whole(&self) -> Option<&[u8]> {
        Some(self)
    }
}

/// Memory of the caller's.
struct Fixed<'b> {
    buffer: &'b mut [u8],
    length: usize,
    is_cut: bool,
}

impl Payload for Fixed<'_> {
    #[inline]
    fn copy(&mut self, words: &[AtomicU64], length: usize) {
        self.is_cut = length > self.buffer.len();
        self.length = length.min(self.buffer.len());
        let rest = copy_whole(self.buffer.get_mut(..self.length).unwrap_or_default(), words);
        if let Some(word) = words.get(self.length / 8).filter(|_| !rest.is_empty()) {
            rest.iter_mut().zip(word.load(Ordering::Relaxed).to_ne_bytes()).for_each(|(to, from)| *to = from);
        }
    }

    fn whole(&self) -> Option<&[u8]> {
        self.buffer.get(..self.length).filter(|_| !self.is_cut)
    }
}

/// Copies as many whole words as `bytes` takes, and gives back what is left of it.
#[inline]
fn copy_whole<'b>(mut bytes: &'b mut [u8], mut words: &[AtomicU64]) -> &'b mut [u8] {
    // A line in one go: most payloads are one or two.
    while let Some((line, behind)) = words.split_first_chunk::<{ record::WORDS }>()
        && bytes.len() >= size_of_val(line)
    {
        let (to, rest) = bytes.split_at_mut(size_of_val(line));
        for (bytes, word) in to.as_chunks_mut::<8>().0.iter_mut().zip(line) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        (bytes, words) = (rest, behind);
    }
    if bytes.is_empty() {
        return bytes;
    }
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for (bytes, word) in chunks.iter_mut().zip(words) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    rest
}
