//! Layout of a recording. All numbers are little-endian on every machine.
//!
//! ```text
//! recording: a directory
//!     00000001.journal   data file 1
//!     00000001.index     its index: can be regenerated from the data file at any time
//!     00000002.journal   …
//!
//! data file
//! offset
//!      0  +--------------------------------------------+
//!         | file head: 4,096 bytes                     |
//!   4096  +--------------------------------------------+
//!         | block: manifest (the streams)              |
//!         | block: records of one stream, or a gap     |
//!         | …                                          |
//!         | block: end                                 |
//!         +--------------------------------------------+
//!         | zeros, preallocated, while it is written   |
//!         +--------------------------------------------+
//!
//! file head
//!      0  magic "LLJOURNL"
//!      8  layout version (32)             12  bytes of this head (32)
//!     16  recording: a random number that all files and blocks of a recording share
//!     24  file number, from 1
//!     32  number of the file's first block
//!     40  CLOCK_MONOTONIC in ns when the file was created
//!     48  CLOCK_REALTIME in ns at the same moment
//!     56  boot id (16 bytes; zeros if unknown)
//!     72  zeros
//!   4092  CRC-32C of the preceding 4,092 bytes
//!
//! block: 128 bytes of head, the body, zeros up to a multiple of 64
//!      0  magic "LLBLOCK1"
//!      8  recording
//!     16  file number
//!     24  offset of this block in its file
//!     32  block number, from 1, over all files
//!     40  kind (32): 1 records, 2 gap, 3 manifest, 4 end       44  stream number (32)
//!     48  epoch of the stream's segment
//!     56  first sequence                  64  last sequence; the block covers all between them
//!     72  earliest generation time        80  latest generation time
//!     88  records (32)                    92  bytes of the body (32)
//!     96  detail: reason of a gap; for an end, whether another file follows
//!    104  zeros
//!    120  CRC-32C of the body (32)       124  CRC-32C of the preceding 124 bytes (32)
//!
//! record in a body: 64 bytes, the payload, zeros up to a multiple of 8
//!      0  position in its segment          8  sequence
//!     16  generated                       24  trigger
//!     32  cause
//!     40  instrument (32)                 44  source (32)
//!     48  kind (16), schema (16)          52  payload bytes (32)
//!     56  zeros (32)                      60  check (32)
//! ```
//!
//! A record's check is the CRC-32C of recording, stream and epoch (20 bytes, as in the head) and the body so
//! far, without checks. In a damaged body it thus proves all records before the damage intact, a body under a
//! wrong head has no intact record, and the last check is the CRC of the body. Bodies of other kinds have a
//! plain CRC.
//!
//! A block contains its own offset and its recording. So after damage a scan of every 64th byte finds the next
//! block, and a payload that contains part of a recording is not taken for a block of this one. [`manifest`]
//! documents the body of manifests, [`index`] the index files.

mod block;
mod head;
pub mod index;
pub mod manifest;
mod record;

pub use block::{BlockHead, BlockKind, END_GOES_ON, GapReason};
pub use head::{FileHead, HeadProblem};
pub use record::{body_seed, check_of, decode_record, encode_record};

/// First bytes of a data file.
pub const FILE_MAGIC: [u8; 8] = *b"LLJOURNL";
/// First bytes of a block.
pub const BLOCK_MAGIC: [u8; 8] = *b"LLBLOCK1";
/// The version of the layout described here.
pub const VERSION: u32 = 1;
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

const _: () = {
    assert!((FILE_HEAD_BYTES as u64).is_multiple_of(BLOCK_ALIGN));
    assert!((BLOCK_HEAD_BYTES as u64).is_multiple_of(BLOCK_ALIGN));
    assert!(RECORD_HEAD_BYTES.is_multiple_of(RECORD_ALIGN) && BODY_BYTES_MAX <= u32::MAX as usize);
    assert!(size_of::<u64>() == 8 && BLOCK_HEAD_BYTES == 15 * 8 + 2 * 4);
    assert!(RECORD_HEAD_BYTES == 5 * 8 + 2 * 4 + 2 * 2 + 3 * 4);
    assert!(manifest::BYTES_MAX <= BODY_BYTES_MAX);
};

/// Bytes of a record with this payload in a body.
pub const fn record_bytes(payload_bytes: usize) -> usize {
    RECORD_HEAD_BYTES + payload_bytes.next_multiple_of(RECORD_ALIGN)
}

/// Bytes of a block with this body in its file.
pub const fn block_bytes(body_bytes: u32) -> u64 {
    (BLOCK_HEAD_BYTES as u64 + body_bytes as u64).next_multiple_of(BLOCK_ALIGN)
}

/// The name of a data file.
pub fn data_name(number: u64) -> String {
    format!("{number:08}.{DATA_ENDING}")
}

/// The name of an index file.
pub fn index_name(number: u64) -> String {
    format!("{number:08}.{INDEX_ENDING}")
}

/// The number of a data file from its name; `None` for other files.
pub fn number_of(name: &str) -> Option<u64> {
    numbered(name, DATA_ENDING, data_name)
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
        for other in ["00000000.journal", "1.journal", "+0000001.journal", "00000001.index", "x"] {
            assert_eq!(number_of(other), None, "{other}");
        }
        assert_eq!([0, 1, 8, 64].map(record_bytes), [64, 72, 72, 128]);
        assert_eq!([0, 1, 64, 65].map(block_bytes), [128, 192, 192, 256]);
    }
}
