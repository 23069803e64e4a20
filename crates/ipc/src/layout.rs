//! The bytes of a segment. All of it is 64-bit words, each read and written as an atomic: two processes share them.
//!
//! ```text
//! segment
//! offset
//!      0  +--------------------------------------------+
//!         | header: 4,096 bytes, see below             |
//!   4096  +--------------------------------------------+
//!         | ring: capacity bytes, a power of two       |
//!         +--------------------------------------------+
//!
//! header: words by their number (8 bytes each); those of the first line never change once the segment is whole
//!     0  magic "LLSTREAM"            written last, so that a half-made segment is none
//!     1  layout version
//!     2  byte order mark 0x0102030405060708
//!     3  capacity of the ring in bytes
//!     4  stream id
//!     5  epoch: the number of this segment among those of the stream, from 1
//!     6  sequence of the segment's first record
//!     7  process id of the writer
//!     8  start time of the writer (field 22 of /proc/PID/stat), since process ids come again
//!    16  claim: up to which position the writer may have begun to write, in steps of a 64th of the ring
//!    32  tail: up to which position records are whole
//!    33  last: the position of the last record + 1, or 0 before the first; as old as the tail or newer. Not in version 1
//!    48  fence: 0, or the epoch of the segment that takes this one's place
//!
//! record: 64 bytes, then its payload, filled up to a multiple of 64
//!     0  commit: position / 64 + 1 once the record is whole, 0 before
//!     1  payload length (32 bits), kind (16), schema (16)
//!     2  sequence: the number of the record in its stream
//!     3  instrument (32 bits), source (32)
//!     4  generated: when the record was made, in the clock of its stream
//!     5  trigger: the generation time of what caused it
//!     6  cause: the sequence of what caused it
//!     7  CRC-32C of words 1 to 6 and the payload (32 bits), flags (32)
//! ```
//!
//! A *position* counts bytes from the stream's first record in this segment and only goes up; its place in the ring is
//! its lower bits. No record goes over the end of the ring: a padding record fills it, so each lap begins with a record.
//! A commit holds the position, so that what an earlier lap left is not taken for a record of this one; and the writer
//! clears the first word of the lines behind a record: of one before its commit, and after it of twice as many as it has, 8 at most.

/// "LLSTREAM" as a little-endian word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"LLSTREAM");
/// The layout described here.
pub const VERSION: u64 = 2;
/// The oldest that is read. Version 1 had no word for the last record.
pub const VERSION_MIN: u64 = 1;
/// Reads otherwise on a machine of the other byte order.
pub const BYTE_ORDER: u64 = 0x0102_0304_0506_0708;
/// Bytes of a word.
pub const WORD_BYTES: u64 = 8;
/// Bytes of a segment's header: a page. Loom keeps books of every word, so its segments are small.
pub const HEADER_BYTES: u64 = if cfg!(lowlat_loom) { 512 } else { 4096 };
/// Bytes of a record's header, and what records are multiples of: a cache line.
pub const LINE_BYTES: u64 = 64;
/// The smallest ring.
pub const CAPACITY_BYTES_MIN: u64 = if cfg!(lowlat_loom) { 256 } else { 4096 };
/// The largest ring: 64 GiB.
pub const CAPACITY_BYTES_MAX: u64 = 1 << 36;

/// Words of a segment's header by their number.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// [`super::VERSION`].
    pub const VERSION: usize = 1;
    /// [`super::BYTE_ORDER`].
    pub const BYTE_ORDER: usize = 2;
    /// Capacity of the ring in bytes.
    pub const CAPACITY: usize = 3;
    /// Stream id.
    pub const STREAM: usize = 4;
    /// Number of the segment in its stream, from 1.
    pub const EPOCH: usize = 5;
    /// Sequence of the first record.
    pub const FIRST_SEQUENCE: usize = 6;
    /// The writer's process id.
    pub const WRITER_PID: usize = 7;
    /// The writer's start time.
    pub const WRITER_START: usize = 8;
    /// Up to where the writer may write: lines of its own, for it is written with each record.
    pub const CLAIM: usize = 16;
    /// Up to where records are whole.
    pub const TAIL: usize = 32;
    /// Position of the last record + 1, or 0. In the tail's line, which is written with each record anyway.
    pub const LAST: usize = 33;
    /// The epoch that takes over.
    pub const FENCE: usize = 48;
}

/// Words of a record's header by their number.
pub mod record {
    /// Position / 64 + 1, or 0.
    pub const COMMIT: usize = 0;
    /// Length, kind, schema.
    pub const SHAPE: usize = 1;
    /// Number in the stream.
    pub const SEQUENCE: usize = 2;
    /// Instrument and source.
    pub const WHO: usize = 3;
    /// When it was made.
    pub const GENERATED: usize = 4;
    /// When its cause was made.
    pub const TRIGGER: usize = 5;
    /// The number of its cause.
    pub const CAUSE: usize = 6;
    /// CRC-32C and flags.
    pub const CHECK: usize = 7;
    /// Words of the header.
    pub const WORDS: usize = 8;
}

/// The kind of a record that fills the end of the ring. Readers pass over it; it has no sequence of its own.
pub const KIND_PADDING: u16 = 0xffff;
/// The kind of the first record of a segment that takes the place of a dead writer's: what that one had begun and not
/// finished is abandoned.
pub const KIND_ABANDONED: u16 = 0xfffe;
/// Kinds from here on are lowlat's own.
pub const KIND_RESERVED_MIN: u16 = 0xff00;

/// Flag: the check word holds a CRC-32C.
pub const FLAG_CRC: u32 = 1;

const _: () = {
    assert!(HEADER_BYTES.is_multiple_of(LINE_BYTES) && CAPACITY_BYTES_MIN.is_power_of_two());
    assert!(record::WORDS as u64 * WORD_BYTES == LINE_BYTES);
    // Written words stand 128 bytes apart: processors fetch lines in pairs.
    assert!(
        header::CLAIM.is_multiple_of(16)
            && header::TAIL.is_multiple_of(16)
            && header::FENCE.is_multiple_of(16)
    );
    assert!(header::LAST as u64 * WORD_BYTES / LINE_BYTES == header::TAIL as u64 * WORD_BYTES / LINE_BYTES);
    assert!(header::WRITER_START < header::CLAIM && (header::FENCE as u64) * WORD_BYTES < HEADER_BYTES);
};

/// In steps of how many bytes a writer claims. The claim is a line of its own that readers look at with each record; as
/// long as it stands, they have it at hand.
pub const fn claim_step_bytes(capacity_bytes: u64) -> u64 {
    let step = capacity_bytes / if cfg!(lowlat_loom) { 2 } else { 64 };
    if step < LINE_BYTES { LINE_BYTES } else { step }
}

/// Lines that a writer clears behind a record, beside the next one, at most. In the rings that loom is given more of them
/// would leave readers nothing.
const AHEAD_LINES_MAX: u64 = if cfg!(lowlat_loom) { 2 } else { 8 };

/// How far behind a record of so many bytes a writer clears the commit words: over two others like it, and the commit word
/// behind those. The next records are then written into lines that the writer's core already has to itself.
pub const fn ahead_bytes(record_bytes: u64) -> u64 {
    let (twice, most) = (2 * record_bytes, AHEAD_LINES_MAX * LINE_BYTES);
    LINE_BYTES + if twice < most { twice } else { most }
}

/// Bytes that a record with a payload takes in the ring.
pub const fn record_bytes(payload_bytes: u64) -> u64 {
    (payload_bytes + 2 * LINE_BYTES - 1) & !(LINE_BYTES - 1)
}

/// The longest payload that a ring takes: an eighth of it, so that a reader that is not far behind is not lapped by
/// one record.
pub const fn payload_bytes_max(capacity_bytes: u64) -> u64 {
    let rest = (capacity_bytes / 8).saturating_sub(LINE_BYTES);
    if rest > u32::MAX as u64 { u32::MAX as u64 } else { rest }
}

/// What a record at `position` has in its commit word once it is whole.
pub const fn commit_of(position: u64) -> u64 {
    position / LINE_BYTES + 1
}

/// Payload length, kind and schema as one word.
pub const fn pack_shape(length: u32, kind: u16, schema: u16) -> u64 {
    length as u64 | (kind as u64) << 32 | (schema as u64) << 48
}

/// The length of [`pack_shape`].
#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
pub const fn length_of(shape: u64) -> u32 {
    shape as u32
}

/// The kind of [`pack_shape`].
#[expect(clippy::cast_possible_truncation, reason = "16 bits are meant")]
pub const fn kind_of(shape: u64) -> u16 {
    (shape >> 32) as u16
}

/// The schema of [`pack_shape`].
pub const fn schema_of(shape: u64) -> u16 {
    (shape >> 48) as u16
}

/// Two halves as one word, the first one lower.
pub const fn pack(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The halves of [`pack`].
#[expect(clippy::cast_possible_truncation, reason = "halves are meant")]
pub const fn unpack(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_hold_what_was_packed() {
        let shape = pack_shape(u32::MAX - 1, 0xabcd, 7);
        assert_eq!((length_of(shape), kind_of(shape), schema_of(shape)), (u32::MAX - 1, 0xabcd, 7));
        assert_eq!(unpack(pack(1, u32::MAX)), (1, u32::MAX));
    }

    #[test]
    fn records_take_whole_lines() {
        assert_eq!([0, 1, 64, 65].map(record_bytes), [64, 128, 128, 192]);
        assert_eq!(payload_bytes_max(4096), 448);
        assert!(record_bytes(payload_bytes_max(4096)) <= 4096 / 8);
    }
}
