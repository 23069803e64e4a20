//! Index of one data file: the heads of all its blocks, so that a search reads no data ([`super`]).

use super::{BLOCK_HEAD_BYTES, BlockHead, VERSION, is_read};
use crate::bytes::{put, put_words, u32_at, u64_at, wide};

pub const MAGIC: [u8; 8] = *b"LLJINDEX";
/// Bytes before the heads of blocks.
pub const HEAD_BYTES: usize = 64;
/// Largest readable index, in bytes: that of a file of 64 GiB in blocks of 4 KiB.
pub const BYTES_MAX: u64 = (64 << 30) / 4096 * BLOCK_HEAD_BYTES as u64 + HEAD_BYTES as u64;

/// Reason why an index of other contents is not used.
pub const OTHER: &str = "it belongs to another data file, or to another state of this one";

/// The bytes of an index of the blocks of a file of `data_bytes`.
pub fn encode(recording: u64, file: u64, data_bytes: u64, heads: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES];
    put(&mut bytes, 0, &MAGIC);
    put(&mut bytes, 8, &VERSION.to_le_bytes());
    let blocks = wide(heads.len() / BLOCK_HEAD_BYTES);
    put_words(&mut bytes, 16, &[recording, file, data_bytes, blocks]);
    bytes.extend_from_slice(heads);
    let check = crc32c::crc32c(&bytes);
    put(&mut bytes, 56, &check.to_le_bytes());
    bytes
}

/// The blocks of an index, which must match this file of this recording at its present length; or why it is not used.
pub fn decode(
    bytes: &mut [u8],
    recording: u64,
    file: u64,
    data_bytes: u64,
) -> Result<Vec<BlockHead>, String> {
    let no_head = || Err(format!("it has no head of an index of layout {VERSION}"));
    if bytes.len() < HEAD_BYTES || !bytes.starts_with(&MAGIC) || !is_read(u32_at(bytes, 8)) {
        return no_head();
    }
    let check = u32_at(bytes, 56);
    put(bytes, 56, &[0; 4]);
    if crc32c::crc32c(bytes) != check {
        return Err("its CRC-32C does not match".to_owned());
    }
    if [16, 24, 32].map(|at| u64_at(bytes, at)) != [recording, file, data_bytes] {
        return Err(OTHER.to_owned());
    }
    let heads = bytes.get(HEAD_BYTES..).unwrap_or_default();
    if u64_at(bytes, 40).checked_mul(wide(BLOCK_HEAD_BYTES)) != Some(wide(heads.len())) {
        return no_head();
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
            None => return Err(format!("entry {} is not a block of that file", blocks.len())),
        }
    }
    Ok(blocks)
}
