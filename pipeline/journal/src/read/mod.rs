//! Reads recordings. Every byte is untrusted: it is checked and bounded, and damage is reported with file and
//! offset.

mod block;
pub mod file;
pub mod index;
mod inspect;
mod last;
mod merge;
pub mod packed;
mod recording;
mod resume;
mod start;
mod stream;
mod tail;
#[cfg(test)]
mod tests;
mod verify;

pub use block::Block;
pub use index::write_missing_indexes;
pub use inspect::inspect;
pub use last::{IsChosen, last_records};
pub use merge::Merge;
pub(crate) use recording::list;
pub use recording::{FileStart, OpenError, Recording, fits};
pub(crate) use resume::{name_next_file, resume};
pub(crate) use start::delete_before;
pub use stream::StreamReader;
pub use tail::TailReader;
pub use verify::{FileReport, GapTotal, JournalVerification, StreamReport, verify};

use crate::{
    damage::DamagedPlace,
    layout::{BlockHead, GapReason},
};
use serde::Serialize;

/// A record of a recording; its payload is in the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Number of its stream in the recording.
    pub stream: u32,
    /// Epoch of the segment that it was read from.
    pub epoch: u64,
    /// The record as it was in shared memory.
    pub record: lowlat_ipc::stream::Record,
}

/// Missing records: from `from` up to, but not including, `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Number of the stream in the recording.
    pub stream: u32,
    /// Sequence of the first missing record.
    pub from: u64,
    /// One past the last missing record.
    pub to: u64,
    /// Reason why the recorder did not have them; `None` if they were recorded but have been damaged or deleted since.
    pub reason: Option<GapReason>,
}

impl Gap {
    /// Returns true if the recording should contain the records: they were published while a recorder ran, and not
    /// deleted on purpose.
    pub fn is_loss(&self) -> bool {
        !matches!(self.reason, Some(GapReason::NotRecording | GapReason::Deleted))
    }

    pub fn count(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Records that were published while no recorder ran, or deleted on purpose.
    pub fn missed(&self) -> u64 {
        if self.is_loss() { 0 } else { self.count() }
    }

    /// The gap that a block stands for.
    fn of(head: &BlockHead) -> Self {
        let (from, to) = (head.first_sequence, head.last_sequence + 1);
        Self { stream: head.stream, from, to, reason: head.gap_reason() }
    }

    /// Text of the reason, for reports.
    pub fn why(&self) -> &'static str {
        match self.reason {
            Some(reason) => reason.words(),
            None if self.count() == 1 => "it was recorded and cannot be read",
            None => "they were recorded and cannot be read",
        }
    }
}

/// Result of reading a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalRead {
    /// Nothing new: the recording is still being written.
    Nothing,
    Record(Record),
    /// Missing records. Reading continues after them.
    Gap(Gap),
    /// A damaged place. Reading continues after it.
    Damaged(Box<DamagedPlace>),
    /// The end of the recording.
    Ended,
}

impl From<DamagedPlace> for JournalRead {
    fn from(damage: DamagedPlace) -> Self {
        Self::Damaged(Box::new(damage))
    }
}
