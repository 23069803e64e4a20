//! Records of a stream from before a node joined ([`super::ReadsFrom`]).
//!
//! The node follows the stream itself, from its oldest record on, until its ring has what comes next:
//!
//! ```text
//! read the stream up to its end; return what is wanted and was not skipped
//! empty the ring: a record in it that was not read here yet, or a gap -> read the stream on
//! the ring is empty and has delivered before: it has all that follows
//! ```

use super::{
    Memory, ReadsFrom,
    incoming::{ReadOutcome, Sources},
    overrun::{Taking, Wanted},
};
use lowlat_ipc::{
    index_ring::Taken,
    layout,
    stream::{Read, Reader},
};

/// The part of a stream that a node reads before its ring.
#[derive(Debug)]
pub(super) struct Backlog {
    /// From its first read on: until then the writer may overwrite records.
    reader: Option<Reader<Memory>>,
    wanted: Wanted,
    /// Sequence up to which everything was returned or skipped; `None` before the oldest record.
    after: Option<u64>,
    /// The ring has delivered something, so it is connected.
    is_linked: bool,
}

impl Backlog {
    /// The records from there on; `None` for those of the ring alone.
    pub(super) fn new(from: ReadsFrom, wanted: Wanted) -> Option<Box<Self>> {
        let after = match from {
            ReadsFrom::Head => return None,
            ReadsFrom::Oldest => None,
            ReadsFrom::After(sequence) => Some(sequence),
        };
        Some(Box::new(Self { reader: None, wanted, after, is_linked: false }))
    }
}

impl Sources {
    /// Reads the backlog; `None` if it has nothing now, or has ended.
    #[cold]
    pub(super) fn next_of_backlog(&mut self, payload: &mut Vec<u8>) -> Option<ReadOutcome> {
        // The writer of the first one has ended.
        let has_next = self.queue.len() > 1;
        let (source, backlog) = (self.queue.front_mut()?, self.backlog.as_mut()?);
        if let Some(position) = self.held.take() {
            let Some(record) = source.reader.read_at(position, payload) else {
                return Some(ReadOutcome::Lost(1));
            };
            self.last_sequence = Some(record.sequence);
            return Some(ReadOutcome::Record(record));
        }
        if backlog.reader.is_none() {
            backlog.reader = source.segment().map(Reader::from_oldest);
        }
        let reader = backlog.reader.as_mut()?;
        loop {
            loop {
                let record = match reader.next(payload) {
                    Read::Record(record) => record,
                    // The sequence of the next record shows it.
                    Read::Gap { .. } | Read::Damaged { .. } => continue,
                    Read::Nothing | Read::Ended { .. } => break,
                };
                let is_past = backlog.after.is_some_and(|after| record.sequence <= after);
                let lost = backlog.after.map_or(0, |after| record.sequence.saturating_sub(after + 1));
                backlog.after = backlog.after.max(Some(record.sequence));
                let is_wanted = backlog.wanted.has(record.stamp.instrument)
                    && record.stamp.kind < layout::KIND_RESERVED_MIN
                    && !is_past;
                if lost > 0 {
                    self.held = is_wanted.then_some(record.position);
                    return Some(ReadOutcome::Lost(lost));
                }
                if is_wanted {
                    self.last_sequence = Some(record.sequence);
                    return Some(ReadOutcome::Record(record));
                }
            }
            if let Taking::Followed { .. } = source.taking {
                source.reader = self.backlog.take()?.reader?;
                return None;
            }
            let mut has_more = false;
            while let Some(taken) = source.taking.next() {
                backlog.is_linked = true;
                has_more |= match taken {
                    Taken::Entry(position) => source
                        .reader
                        .read_at(position, payload)
                        .is_none_or(|record| backlog.after.is_none_or(|after| record.sequence > after)),
                    Taken::Gap(_) => true,
                    // Repeated on each call: the ring is connected again from what was read here.
                    Taken::Evicted { .. } => break,
                };
            }
            if !has_more {
                if backlog.is_linked || has_next {
                    self.backlog = None;
                    self.missed = 0;
                }
                return None;
            }
        }
    }
}
