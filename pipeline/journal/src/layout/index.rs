//! Index of one data file: the heads of all its blocks, so that a search reads no data.
//!
//! ```text
//!  0  magic "LLJINDEX"
//!  8  layout version (32), zeros (32)
//! 16  recording
//! 24  file number
//! 32  bytes of the data file
//! 40  blocks
//! 48  zeros
//! 56  CRC-32C of all other bytes (32), zeros (32)
//! 64  the head of each block, as in the data file
//! ```
//!
//! It is written when its data file is finished. A file without a valid index is scanned instead.

use super::{BLOCK_HEAD_BYTES, BlockHead, VERSION};
use crate::bytes::{put, u32_at, u64_at, wide};
use std::io;
use thiserror::Error;

pub const MAGIC: [u8; 8] = *b"LLJINDEX";
/// Bytes before the heads of blocks.
pub const HEAD_BYTES: usize = 64;
/// Largest readable index, in bytes: that of a file of 64 GiB in blocks of 4 KiB.
pub const BYTES_MAX: u64 = (64 << 30) / 4096 * BLOCK_HEAD_BYTES as u64 + HEAD_BYTES as u64;

/// Reason why an index is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IndexProblem {
    /// The system cannot read it.
    #[error("it cannot be read: {kind}")]
    Unreadable { kind: io::ErrorKind },
    /// Not an index, or one of another layout.
    #[error("it has no head of an index of layout {VERSION}")]
    Head,
    /// The index of another file, or of other contents of this file.
    #[error("it belongs to another data file, or to another state of this one")]
    Other,
    #[error("its CRC-32C does not match")]
    Check,
    /// An entry is not the head of a block of this file.
    #[error("entry {entry} is not a block of that file")]
    Entry {
        /// Number of the entry, from 0.
        entry: u64,
    },
}

/// The bytes of an index of the blocks of a file of `data_bytes`.
pub fn encode(recording: u64, file: u64, data_bytes: u64, heads: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES];
    put(&mut bytes, 0, &MAGIC);
    put(&mut bytes, 8, &VERSION.to_le_bytes());
    let blocks = wide(heads.len() / BLOCK_HEAD_BYTES);
    for (at, word) in (16..).step_by(8).zip([recording, file, data_bytes, blocks]) {
        put(&mut bytes, at, &word.to_le_bytes());
    }
    bytes.extend_from_slice(heads);
    let check = crc32c::crc32c(&bytes);
    put(&mut bytes, 56, &check.to_le_bytes());
    bytes
}

/// The blocks of an index, which must match this file of this recording at its present length.
pub fn decode(
    bytes: &mut [u8],
    recording: u64,
    file: u64,
    data_bytes: u64,
) -> Result<Vec<BlockHead>, IndexProblem> {
    if bytes.len() < HEAD_BYTES || !bytes.starts_with(&MAGIC) || u32_at(bytes, 8) != VERSION {
        return Err(IndexProblem::Head);
    }
    let check = u32_at(bytes, 56);
    put(bytes, 56, &[0; 4]);
    if crc32c::crc32c(bytes) != check {
        return Err(IndexProblem::Check);
    }
    if [16, 24, 32].map(|at| u64_at(bytes, at)) != [recording, file, data_bytes] {
        return Err(IndexProblem::Other);
    }
    let heads = bytes.get(HEAD_BYTES..).unwrap_or_default();
    if u64_at(bytes, 40).checked_mul(wide(BLOCK_HEAD_BYTES)) != Some(wide(heads.len())) {
        return Err(IndexProblem::Head);
    }
    let mut blocks: Vec<BlockHead> = Vec::with_capacity(heads.len() / BLOCK_HEAD_BYTES);
    for head in heads.chunks_exact(BLOCK_HEAD_BYTES) {
        let end = blocks.last().map_or(0, |last| last.offset + last.bytes());
        let is_of_file = |head: &BlockHead| {
            let behind = head.offset.checked_add(head.bytes());
            head.recording == recording
                && head.file == file
                && head.offset >= end
                && behind.is_some_and(|behind| behind <= data_bytes)
        };
        match BlockHead::decode(head).filter(is_of_file) {
            Some(head) => blocks.push(head),
            None => return Err(IndexProblem::Entry { entry: wide(blocks.len()) }),
        }
    }
    Ok(blocks)
}
