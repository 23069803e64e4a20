//! Layout of a segment. All of it is 64-bit words, each accessed as an atomic, because processes share them.
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
//! header: word numbers (8 bytes each); the words of the first line never change once the segment is complete
//!     0  magic "LLSTREAM"            written last, so that an incomplete segment is not recognized
//!     1  layout version
//!     2  byte order mark 0x0102030405060708
//!     3  capacity of the ring in bytes
//!     4  stream id
//!     5  epoch: the number of this segment among those of the stream, from 1
//!     6  sequence of the segment's first record
//!     7  process id of the writer
//!     8  start time of the writer (field 22 of /proc/PID/stat), because process ids are reused
//!    16  claim: position up to which the writer may have started to write, in steps of a 64th of the ring
//!    32  tail: position up to which records are complete
//!    33  last: position of the last record + 1, or 0 before the first; as old as the tail or newer
//!    48  fence: 0, or the epoch of the segment that replaces this one
//!
//! record: 64 bytes, then its payload, padded to a multiple of 64
//!     0  commit: position / 64 + 1 once the record is complete, 0 before
//!     1  payload length (32 bits), kind (16), schema (16)
//!     2  sequence: the number of the record in its stream
//!     3  instrument (32 bits), source (32)
//!     4  generated: generation time of the record, in the clock of its stream
//!     5  trigger: generation time of its cause
//!     6  cause: sequence of its cause
//!     7  unused, 0
//! ```
//!
//! A *position* counts bytes from the stream's first record in this segment and only increases; its lower bits
//! are its place in the ring. No record crosses the end of the ring: a padding record fills it, so each lap
//! starts with a record. A commit contains the position, so that remains of an earlier lap are not taken for a
//! record of this one. The writer also clears the first word of the lines after a record: of one before its
//! commit, and after it of twice as many as the record has, 8 at most.

/// "LLSTREAM" as a little-endian word.
pub const MAGIC: u64 = u64::from_le_bytes(*b"LLSTREAM");
/// The version of the layout described here.
pub const VERSION: u64 = 2;
/// Reads differently on a machine of the other byte order.
pub const BYTE_ORDER: u64 = 0x0102_0304_0506_0708;
pub const WORD_BYTES: u64 = 8;
/// Bytes of a segment's header: a page. Small under loom, which tracks every word.
pub const HEADER_BYTES: u64 = if cfg!(lowlat_loom) { 512 } else { 4096 };
/// Bytes of a record's header, and alignment of records: a cache line.
pub const LINE_BYTES: u64 = 64;
/// Smallest capacity of a ring.
pub const CAPACITY_BYTES_MIN: u64 = if cfg!(lowlat_loom) { 256 } else { 4096 };
/// Largest capacity of a ring: 64 GiB.
pub const CAPACITY_BYTES_MAX: u64 = 1 << 36;

/// Word numbers of a segment's header.
pub mod header {
    pub const MAGIC: usize = 0;
    pub const VERSION: usize = 1;
    pub const BYTE_ORDER: usize = 2;
    /// Capacity of the ring in bytes.
    pub const CAPACITY: usize = 3;
    pub const STREAM: usize = 4;
    /// Number of the segment in its stream, from 1.
    pub const EPOCH: usize = 5;
    /// Sequence of the first record.
    pub const FIRST_SEQUENCE: usize = 6;
    pub const WRITER_PID: usize = 7;
    /// The writer's start time, in clock ticks since boot.
    pub const WRITER_START: usize = 8;
    /// Position up to which the writer may write. On a separate line, because every record may change it.
    pub const CLAIM: usize = 16;
    /// Position up to which records are complete.
    pub const TAIL: usize = 32;
    /// Position of the last record + 1, or 0. On the tail's line, which every record changes anyway.
    pub const LAST: usize = 33;
    /// Epoch of the segment that replaces this one, or 0.
    pub const FENCE: usize = 48;
}

/// Word numbers of a record's header.
pub mod record {
    /// Position / 64 + 1, or 0.
    pub const COMMIT: usize = 0;
    /// Payload length, kind and schema, in one word.
    pub const SHAPE: usize = 1;
    /// Sequence number in the stream.
    pub const SEQUENCE: usize = 2;
    /// Instrument and source, in one word.
    pub const WHO: usize = 3;
    pub const GENERATED: usize = 4;
    /// Generation time of its cause.
    pub const TRIGGER: usize = 5;
    /// Sequence of its cause; 0 without one.
    pub const CAUSE: usize = 6;
    pub const UNUSED: usize = 7;
    /// Number of words of the header.
    pub const WORDS: usize = 8;
}

/// Kind of the record that pads the end of the ring. Readers skip it; it has no sequence.
pub const KIND_PADDING: u16 = 0xffff;
/// Kind of the first record of a segment that replaces a dead writer's: whatever that writer left incomplete is
/// abandoned.
pub const KIND_ABANDONED: u16 = 0xfffe;
/// Kinds from here on are reserved for lowlat.
pub const KIND_RESERVED_MIN: u16 = 0xff00;

const _: () = {
    assert!(HEADER_BYTES.is_multiple_of(LINE_BYTES) && CAPACITY_BYTES_MIN.is_power_of_two());
    assert!(record::WORDS as u64 * WORD_BYTES == LINE_BYTES);
    // Words written independently are 128 bytes apart: processors fetch lines in pairs.
    assert!(
        header::CLAIM.is_multiple_of(16)
            && header::TAIL.is_multiple_of(16)
            && header::FENCE.is_multiple_of(16)
    );
    assert!(header::LAST as u64 * WORD_BYTES / LINE_BYTES == header::TAIL as u64 * WORD_BYTES / LINE_BYTES);
    assert!(header::WRITER_START < header::CLAIM && (header::FENCE as u64) * WORD_BYTES < HEADER_BYTES);
};

/// Step of a writer's claim, in bytes. The claim has its own line, which readers check with every record; while
/// it does not change, it stays in their caches.
pub const fn claim_step_bytes(capacity_bytes: u64) -> u64 {
    let step = capacity_bytes / if cfg!(lowlat_loom) { 2 } else { 64 };
    if step < LINE_BYTES { LINE_BYTES } else { step }
}

/// Largest number of lines that a writer clears after a record, besides the next one. In loom's small rings
/// more would leave readers nothing.
const AHEAD_LINES_MAX: u64 = if cfg!(lowlat_loom) { 2 } else { 8 };

/// Distance up to which the writer clears commit words after a record of this size: one more record like it,
/// and the commit word after that. The next record then goes to lines that the writer's core already owns.
pub const fn ahead_bytes(record_bytes: u64) -> u64 {
    let most = AHEAD_LINES_MAX * LINE_BYTES;
    LINE_BYTES + if record_bytes < most { record_bytes } else { most }
}

/// Bytes that a record with this payload takes in the ring.
pub const fn record_bytes(payload_bytes: u64) -> u64 {
    (payload_bytes + 2 * LINE_BYTES - 1) & !(LINE_BYTES - 1)
}

/// Longest payload of a ring: an eighth of it, so that one record does not lap a reader that is nearly current.
pub const fn payload_bytes_max(capacity_bytes: u64) -> u64 {
    let rest = (capacity_bytes / 8).saturating_sub(LINE_BYTES);
    if rest > u32::MAX as u64 { u32::MAX as u64 } else { rest }
}

/// Commit word of a complete record at `position`.
pub const fn commit_of(position: u64) -> u64 {
    position / LINE_BYTES + 1
}

/// Packs payload length, kind and schema into one word.
pub const fn pack_shape(length: u32, kind: u16, schema: u16) -> u64 {
    length as u64 | (kind as u64) << 32 | (schema as u64) << 48
}

/// The length of a [`pack_shape`] word.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
pub const fn length_of(shape: u64) -> u32 {
    shape as u32
}

/// The kind of a [`pack_shape`] word.
#[expect(clippy::cast_possible_truncation, reason = "16 bits are meant")]
pub const fn kind_of(shape: u64) -> u16 {
    (shape >> 32) as u16
}

/// The schema of a [`pack_shape`] word.
pub const fn schema_of(shape: u64) -> u16 {
    (shape >> 48) as u16
}

/// Packs two halves into one word, the first one lower.
pub const fn pack(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The halves of a [`pack`] word.
#[expect(clippy::cast_possible_truncation, reason = "halves are meant")]
pub const fn unpack(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_words_unpack_to_the_same_values() {
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
