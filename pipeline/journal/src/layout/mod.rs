//! Layout of a recording.
#![doc = include_str!("../../../../docs/formats.md")]

mod block;
mod head;
pub mod index;
pub mod manifest;
mod record;
pub mod start;

pub use block::{BlockHead, BlockKind, END_GOES_ON, GapReason};
pub use head::{FileHead, HeadProblem};
pub use record::{body_seed, check_of, decode_record, encode_record};

/// First bytes of a data file.
pub const FILE_MAGIC: [u8; 8] = *b"LLJOURNL";
/// First bytes of a block.
pub const BLOCK_MAGIC: [u8; 8] = *b"LLBLOCK1";
/// The version of the layout described here, and the oldest one that is read.
pub const VERSION: u32 = 2;
const VERSION_MIN: u32 = 1;
/// Bytes of a file's head: a page.
pub const FILE_HEAD_BYTES: usize = 4096;
/// Bytes of a block's head.
pub const BLOCK_HEAD_BYTES: usize = 128;
/// Bytes of a record's head.
pub const RECORD_HEAD_BYTES: usize = 64;
/// Alignment and granularity of blocks.
pub const BLOCK_ALIGN: u64 = 64;
/// Multiple to which records are padded, in bytes.
pub const RECORD_ALIGN: usize = 8;
/// The longest payload that is recorded. A longer one is recorded as a gap.
pub const PAYLOAD_BYTES_MAX: usize = 64 << 20;
/// The longest body: one record of the longest payload.
pub const BODY_BYTES_MAX: usize = PAYLOAD_BYTES_MAX + RECORD_HEAD_BYTES;
/// The largest sequence that is recorded. Its successor must be a number other than [`manifest::UNKNOWN`].
pub const SEQUENCE_MAX: u64 = u64::MAX - 2;
/// Maximum number of streams of a recording.
pub const STREAMS_MAX: usize = 4096;
/// Longest name of a stream, and of a schema, in bytes.
pub const NAME_BYTES_MAX: usize = 255;
/// The largest file number. Its successor is a number too.
pub const FILE_NUMBER_MAX: u64 = u64::MAX - 1;
pub const DATA_ENDING: &str = "journal";
pub const INDEX_ENDING: &str = "index";
pub const PACKED_ENDING: &str = "journal.zst";

const _: () = {
    assert!((FILE_HEAD_BYTES as u64).is_multiple_of(BLOCK_ALIGN));
    assert!((BLOCK_HEAD_BYTES as u64).is_multiple_of(BLOCK_ALIGN));
    assert!(RECORD_HEAD_BYTES.is_multiple_of(RECORD_ALIGN) && BODY_BYTES_MAX <= u32::MAX as usize);
    assert!(size_of::<u64>() == 8 && BLOCK_HEAD_BYTES == 15 * 8 + 2 * 4);
    assert!(RECORD_HEAD_BYTES == 5 * 8 + 2 * 4 + 2 * 2 + 3 * 4);
    assert!(manifest::BYTES_MAX <= BODY_BYTES_MAX);
};

/// Returns true if this version is read.
fn is_read(version: u32) -> bool {
    (VERSION_MIN..=VERSION).contains(&version)
}

/// Bytes of a record with this payload in a body.
pub const fn record_bytes(payload_bytes: usize) -> usize {
    RECORD_HEAD_BYTES + payload_bytes.next_multiple_of(RECORD_ALIGN)
}

/// Bytes of a block with this body in its file.
pub const fn block_bytes(body_bytes: u32) -> u64 {
    (BLOCK_HEAD_BYTES as u64 + body_bytes as u64).next_multiple_of(BLOCK_ALIGN)
}

/// The name of the file with the names of instruments 0, 1, ..., one per line, if they are known.
pub const SYMBOLS_NAME: &str = "symbols";
/// Its longest size.
pub const SYMBOLS_BYTES_MAX: u64 = 1 << 20;

/// The name of a data file.
pub fn data_name(number: u64) -> String {
    format!("{number:08}.{DATA_ENDING}")
}

/// The name of a compressed data file.
pub fn packed_name(number: u64) -> String {
    format!("{number:08}.{PACKED_ENDING}")
}

/// The name of an index file.
pub fn index_name(number: u64) -> String {
    format!("{number:08}.{INDEX_ENDING}")
}

/// The number of a data file, compressed or not, from its name; `None` for other files.
pub fn number_of(name: &str) -> Option<u64> {
    numbered(name, DATA_ENDING, data_name).or_else(|| numbered(name, PACKED_ENDING, packed_name))
}

/// The number of an index file from its name; `None` for other files.
pub fn index_number_of(name: &str) -> Option<u64> {
    numbered(name, INDEX_ENDING, index_name)
}

fn numbered(name: &str, ending: &str, name_of: fn(u64) -> String) -> Option<u64> {
    let digits = name.strip_suffix(ending)?.strip_suffix('.')?;
    digits.parse().ok().filter(|number| (1..=FILE_NUMBER_MAX).contains(number) && name_of(*number) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sizes() {
        assert_eq!(number_of(&data_name(17)), Some(17));
        assert_eq!(number_of(&data_name(123_456_789)), Some(123_456_789));
        assert_eq!(number_of(&packed_name(17)), Some(17));
        for other in ["00000000.journal", "1.journal", "+0000001.journal", "00000001.index", "x"] {
            assert_eq!(number_of(other), None, "{other}");
        }
        assert_eq!([0, 1, 8, 64].map(record_bytes), [64, 72, 72, 128]);
        assert_eq!([0, 1, 64, 65].map(block_bytes), [128, 192, 192, 256]);
    }
}
