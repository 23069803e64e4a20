//! What stands at a position of a segment.

use super::{Record, Segment, Stamp, crc_of, payload::Payload};
use crate::{
    atomics::{Ordering, fence},
    layout::{self, header, record},
    prefetch,
    region::Region,
};

/// What a look finds instead of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    /// No record is there yet.
    Nothing,
    /// The rest of a lap.
    Padding {
        /// What it takes.
        bytes: u64,
    },
    /// The writer was there again, or may have been.
    Overrun,
    /// No writer leaves this.
    Damaged,
}

impl<R: Region> Segment<R> {
    /// The record at a position and the bytes that it takes, its payload in `payload`, or what is there else.
    #[expect(clippy::inline_always, reason = "measured: what it gives is far larger than a register")]
    #[inline(always)]
    pub(super) fn look(&self, position: u64, payload: &mut impl Payload) -> Result<(Record, u64), Other> {
        let Some((head, rest)) = self.record_at(position) else { return Err(Other::Damaged) };
        // On its way together with the head's line, not after it.
        prefetch::line(rest.first());
        // Pairs with the store in `writer::commit`.
        if head[record::COMMIT].load(Ordering::Acquire) != layout::commit_of(position) {
            // An older or cleared commit: not written yet, unless the writer is a lap ahead.
            return Err(if self.is_overrun(position) { Other::Overrun } else { Other::Nothing });
        }
        let get = |at: usize| head[at].load(Ordering::Relaxed);
        let shape = get(record::SHAPE);
        let length = u64::from(layout::length_of(shape));
        let bytes = layout::record_bytes(length);
        if bytes > self.room(position) || layout::kind_of(shape) == layout::KIND_PADDING {
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
            if !is_sound(crc, &words, payload) {
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

    #[inline]
    fn is_overrun(&self, position: u64) -> bool {
        let claim = self.word(header::CLAIM).map_or(0, |word| word.load(Ordering::Relaxed));
        claim > position.saturating_add(self.capacity_bytes())
    }

    /// What a head is that was just read, and that is not one of a record.
    #[cold]
    fn no_record(&self, position: u64, bytes: u64) -> Other {
        // Pairs with the fence in `Writer::claim`, as above.
        fence(Ordering::Acquire);
        if self.is_overrun(position) {
            Other::Overrun
        } else if bytes > self.room(position) {
            Other::Damaged
        } else {
            Other::Padding { bytes }
        }
    }
}

/// Whether a record's checksum is right; of a payload that was cut nothing is known.
#[inline(never)]
fn is_sound(crc: u32, words: &[u64; record::WORDS], payload: &impl Payload) -> bool {
    payload.whole().is_none_or(|whole| crc == crc_of(words, whole))
}
