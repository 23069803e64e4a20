//! Reading recordings. Every byte is taken for hostile: checked, bounded, and told with file and offset when it is not
//! as it was written.

mod block;
mod choose;
pub mod file;
pub mod index;
mod inspect;
mod last;
mod merge;
mod missing;
mod recording;
mod refill;
mod resume;
mod stream;
mod tail;
#[cfg(test)]
mod tests;
mod verify;
mod write_indexes;

pub use block::Block;
pub use choose::fits;
pub use inspect::inspect;
pub use last::last_records;
pub use merge::Merge;
pub(crate) use recording::list;
pub use recording::{FileStart, OpenError, Recording};
pub use refill::{Refill, refill};
pub(crate) use resume::{name_next_file, resume};
pub use stream::StreamReader;
pub use tail::Tail;
pub use verify::{FileReport, GapTotal, StreamReport, Verification, verify};
pub use write_indexes::write_missing_indexes;

use crate::{damage::Damage, layout::GapReason};
use serde::Serialize;

/// A record of a recording; its payload is in the caller's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The number of its stream in the recording.
    pub stream: u32,
    /// The epoch of the segment that it stood in.
    pub epoch: u64,
    /// The record as it stood in shared memory.
    pub record: lowlat_ipc::stream::Record,
}

/// Records that are not there: those from `from` up to, not including, `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// The stream.
    pub stream: u32,
    /// The first that is missing.
    pub from: u64,
    /// The one behind the last.
    pub to: u64,
    /// Why the recorder did not have them; none when they were recorded and are damaged or gone since.
    pub reason: Option<GapReason>,
}

impl Gap {
    /// Whether the recording should have the records: they were published while it was made.
    pub fn is_loss(&self) -> bool {
        self.reason != Some(GapReason::NotRecording)
    }

    /// How many records.
    pub fn count(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Why they are not there, in words.
    pub fn why(&self) -> &'static str {
        match self.reason {
            Some(reason) => reason.words(),
            None if self.count() == 1 => "it was recorded and cannot be read",
            None => "they were recorded and cannot be read",
        }
    }
}

/// What a look at a recording gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// Nothing new: the recording is still being written.
    Nothing,
    /// A record.
    Record(Record),
    /// Records that are not there.
    Gap(Gap),
    /// Something that is not as it was written. Reading goes on behind it.
    Damaged(Box<Damage>),
    /// Nothing comes any more.
    Ended,
}
