//! Inspects a position of a segment.

use super::{Record, Segment, Stamp, payload};
use crate::{
    atomics::{Ordering, fence},
    layout::{self, header, record},
    prefetch,
    region::Region,
};

/// Content of a position without a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoRecord {
    /// No record is available yet.
    Nothing,
    /// Padding at the end of a lap.
    Padding { bytes: u64 },
    /// The writer has, or may have, overwritten it.
    Overrun,
    /// Bytes that no writer produces.
    Damaged,
}

impl<R: Region> Segment<R> {
    /// The record at a position and its size in bytes, with its payload in `payload`, or what else is there.
    #[expect(clippy::inline_always, reason = "measured: its result is far larger than a register")]
    #[inline(always)]
    pub(super) fn look(&self, position: u64, payload: &mut Vec<u8>) -> Result<(Record, u64), NoRecord> {
        let Some((head, rest)) = self.record_at(position) else { return Err(NoRecord::Damaged) };
        // Fetched in parallel with the head's line, not after it.
        prefetch::line(rest.first());
        // Pairs with the store in `writer::commit`.
        if head[record::COMMIT].load(Ordering::Acquire) != layout::commit_of(position) {
            // An older or cleared commit: not yet written, unless the writer is a lap ahead.
            return Err(if self.is_overrun(position) { NoRecord::Overrun } else { NoRecord::Nothing });
        }
        let get = |at: usize| head[at].load(Ordering::Relaxed);
        let shape = get(record::SHAPE);
        let length = u64::from(layout::length_of(shape));
        let bytes = layout::record_bytes(length);
        if bytes > self.room(position) || layout::kind_of(shape) == layout::KIND_PADDING {
            return Err(self.no_record(position, bytes));
        }
        payload::copy(payload, rest, usize::try_from(length).unwrap_or(0));
        // Read after the payload, so that they need not be kept during the copy.
        let sequence = get(record::SEQUENCE);
        let who = get(record::WHO);
        let generated = get(record::GENERATED);
        let trigger = get(record::TRIGGER);
        let cause = get(record::CAUSE);
        // Pairs with the fence in `Writer::claim`: if any word above was written after a later claim, that
        // claim is visible now.
        fence(Ordering::Acquire);
        if self.is_overrun(position) {
            return Err(NoRecord::Overrun);
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

    /// Classifies a head that is not that of a record.
    #[cold]
    fn no_record(&self, position: u64, bytes: u64) -> NoRecord {
        // Pairs with the fence in `Writer::claim`, as above.
        fence(Ordering::Acquire);
        if self.is_overrun(position) {
            NoRecord::Overrun
        } else if bytes > self.room(position) {
            NoRecord::Damaged
        } else {
            NoRecord::Padding { bytes }
        }
    }
}
