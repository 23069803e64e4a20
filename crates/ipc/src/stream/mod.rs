//! A stream: one writer appends records to its segment, any number of readers follow at their own positions.

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

use crate::layout;

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

/// The checksum of a record: of the words of its head but its commit and the checksum itself, and of its payload.
fn crc_of(words: &[u64; layout::record::WORDS], payload: &[u8]) -> u32 {
    let words = words.get(layout::record::SHAPE..layout::record::CHECK).unwrap_or_default();
    let crc = words.iter().fold(0, |crc, word| crc32c::crc32c_append(crc, &word.to_le_bytes()));
    crc32c::crc32c_append(crc, payload)
}
