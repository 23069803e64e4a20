//! A stream: one writer appends records to its segment, any number of readers follow at their own positions.

#[cfg(not(lowlat_loom))]
pub mod cursor;
mod line;
mod look;
mod payload;
mod reader;
mod segment;
#[cfg(all(test, not(lowlat_shuttle)))]
mod tests;
mod writer;

pub use reader::{Read, Reader, Record};
pub use segment::{Owner, Segment, SegmentError};
pub use writer::{PublishError, Published, Writer};

/// Header fields of a record, besides its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The record's kind, below [`crate::layout::KIND_RESERVED_MIN`].
    pub kind: u16,
    /// Version of the payload's format, for its readers.
    pub schema: u16,
    /// Instrument, which selects the subscribers.
    pub instrument: u32,
    pub source: u32,
    /// Generation time, in the clock that the stream's users agreed on.
    pub generated: u64,
    /// Generation time of the record that caused it; its own time if it has no cause.
    pub trigger: u64,
    /// Sequence of the record that caused it; 0 without a cause.
    pub cause: u64,
}
