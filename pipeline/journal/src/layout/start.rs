//! Start of a recording whose oldest files were deleted ([`super`]).

use super::{
    VERSION,
    manifest::{self, StreamEntry},
};
use crate::bytes::{put, put_words, u32_at, u64_at};

/// Its name in the directory.
pub const NAME: &str = "recording.start";
const MAGIC: [u8; 8] = *b"LLJSTART";
const HEAD_BYTES: usize = 40;
const CHECK: usize = 32;
/// Largest size, in bytes.
pub const BYTES_MAX: usize = HEAD_BYTES + manifest::BYTES_MAX;

/// Where a recording starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub recording: u64,
    /// Number of the first file that was not deleted.
    pub first_file: u64,
    /// The streams of the deleted files; the next sequence of each is that of the first record ever recorded.
    pub streams: Vec<StreamEntry>,
}

impl Start {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; HEAD_BYTES];
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        put_words(&mut bytes, 16, &[self.recording, self.first_file]);
        bytes.extend_from_slice(&manifest::encode(&self.streams));
        let check = crc32c::crc32c(&bytes);
        put(&mut bytes, CHECK, &check.to_le_bytes());
        bytes
    }

    /// Checks and parses a start; `None` if the bytes are not one.
    pub fn decode(bytes: &mut [u8]) -> Option<Self> {
        let check = u32_at(bytes, CHECK);
        put(bytes, CHECK, &[0; 4]);
        let is_start = bytes.starts_with(&MAGIC) && u32_at(bytes, 8) == VERSION;
        if !is_start || crc32c::crc32c(bytes) != check {
            return None;
        }
        let streams = manifest::decode(bytes.get(HEAD_BYTES..)?)?;
        Some(Self { recording: u64_at(bytes, 16), first_file: u64_at(bytes, 24), streams })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::entry;

    #[test]
    fn every_flipped_bit_is_detected() {
        let start = Start { recording: 1, first_file: 7, streams: vec![entry("one"), entry("two")] };
        let bytes = start.encode();
        assert_eq!(Start::decode(&mut bytes.clone()), Some(start));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Start::decode(&mut flipped), None, "bit {bit}");
        }
        assert_eq!(Start::decode(&mut bytes[..bytes.len() - 8].to_vec()), None);
    }
}
