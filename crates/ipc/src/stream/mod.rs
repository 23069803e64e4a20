//! A stream: one writer appends records to its segment, any number of readers follow at their own positions.

mod reader;
mod segment;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{Read, Reader, Record};
pub use segment::{Owner, Segment, SegmentError};
pub use writer::{PublishError, Published, Writer};

/// What stands beside a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// The record's kind, below [`crate::layout::KIND_RESERVED_MIN`].
    pub kind: u16,
    /// Version of the payload's shape, for those who read it.
    pub schema: u16,
    /// The instrument, by which subscribers are chosen.
    pub instrument: u32,
    /// Who made it.
    pub source: u32,
    /// When it was made, in the clock that the stream's users agree on.
    pub generated: u64,
    /// The generation time of the record that caused it; of a record without a cause its own.
    pub trigger: u64,
    /// The sequence of the record that caused it; 0 without one.
    pub cause: u64,
}
