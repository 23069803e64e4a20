//! The head of a data file.

use super::{FILE_HEAD_BYTES, FILE_MAGIC, VERSION, VERSION_MIN, is_read};
use crate::bytes::{is_zero, put, put_words, u32_at, u64_at};
use serde::Serialize;
use thiserror::Error;

/// Contents of the head of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FileHead {
    /// The recording that it belongs to.
    pub recording: u64,
    /// Number of the file, from 1.
    pub file: u64,
    /// Number of its first block.
    pub first_block: u64,
    /// CLOCK_MONOTONIC at its creation, ns.
    pub monotonic_ns: u64,
    /// CLOCK_REALTIME at the same moment, ns.
    pub realtime_ns: u64,
    /// Id of the boot of its creation; zeros if unknown.
    pub boot_id: [u8; 16],
}

/// Reason why bytes are not a readable head of a data file.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "snake_case", tag = "head_problem")]
pub enum HeadProblem {
    /// The file is shorter than a head.
    #[error("it has {bytes} bytes, less than a head of {FILE_HEAD_BYTES}")]
    Short { bytes: u64 },
    /// The file is not a data file.
    #[error("it starts with {found:?}, expected \"LLJOURNL\"")]
    Magic {
        /// Its first eight bytes.
        found: String,
    },
    /// The file has another layout version.
    #[error("its layout version is {found}, and this lowlat reads {VERSION_MIN} to {VERSION}")]
    Version { found: u32 },
    #[error("CRC-32C of the head: found {found:#010x}, expected {expected:#010x}")]
    Check {
        /// The checksum in the head.
        found: u32,
        /// The checksum of its bytes.
        expected: u32,
    },
    #[error("{field}: found {found}, expected {expected}")]
    Field { field: &'static str, found: u64, expected: &'static str },
}

const CHECK: usize = FILE_HEAD_BYTES - 4;
const ZEROS: usize = 72;

impl FileHead {
    pub fn encode(&self) -> [u8; FILE_HEAD_BYTES] {
        let mut bytes = [0; FILE_HEAD_BYTES];
        put(&mut bytes, 0, &FILE_MAGIC);
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        put(&mut bytes, 12, &u32::try_from(FILE_HEAD_BYTES).unwrap_or(0).to_le_bytes());
        let words = [self.recording, self.file, self.first_block, self.monotonic_ns, self.realtime_ns];
        put_words(&mut bytes, 16, &words);
        put(&mut bytes, 56, &self.boot_id);
        let check = crc32c::crc32c(bytes.get(..CHECK).unwrap_or_default());
        put(&mut bytes, CHECK, &check.to_le_bytes());
        bytes
    }

    /// Checks and parses a head.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeadProblem> {
        let bytes = bytes
            .get(..FILE_HEAD_BYTES)
            .ok_or(HeadProblem::Short { bytes: crate::bytes::wide(bytes.len()) })?;
        let magic = bytes.get(..8).unwrap_or_default();
        if magic != FILE_MAGIC {
            return Err(HeadProblem::Magic { found: magic.escape_ascii().to_string() });
        }
        let (found, expected) =
            (u32_at(bytes, CHECK), crc32c::crc32c(bytes.get(..CHECK).unwrap_or_default()));
        let version = u32_at(bytes, 8);
        // The checksum is verified first, so that a flipped bit is not taken for another version: all versions
        // keep its place.
        if found != expected {
            return Err(HeadProblem::Check { found, expected });
        }
        if !is_read(version) {
            return Err(HeadProblem::Version { found: version });
        }
        let field = |field, found: u64, expected| Err(HeadProblem::Field { field, found, expected });
        if u32_at(bytes, 12) as usize != FILE_HEAD_BYTES {
            return field("bytes of the head", u32_at(bytes, 12).into(), "4096");
        }
        let [recording, file, first_block, monotonic_ns, realtime_ns] =
            [16, 24, 32, 40, 48].map(|at| u64_at(bytes, at));
        if file == 0 {
            return field("file number", file, "1 or more");
        }
        if first_block == 0 {
            return field("first block", first_block, "1 or more");
        }
        if !is_zero(bytes.get(ZEROS..CHECK).unwrap_or_default()) {
            return field("unused bytes", 1, "zeros");
        }
        let boot_id = bytes.get(56..72).and_then(|id| id.try_into().ok()).unwrap_or_default();
        Ok(Self { recording, file, first_block, monotonic_ns, realtime_ns, boot_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: FileHead = FileHead {
        recording: 0x1234,
        file: 3,
        first_block: 77,
        monotonic_ns: 5,
        realtime_ns: 6,
        boot_id: [9; 16],
    };

    #[test]
    fn every_flipped_bit_is_detected() {
        let bytes = HEAD.encode();
        assert_eq!(FileHead::decode(&bytes), Ok(HEAD));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(FileHead::decode(&flipped).is_err(), "bit {bit}");
        }
        assert_eq!(FileHead::decode(&bytes[..100]), Err(HeadProblem::Short { bytes: 100 }));
    }

    #[test]
    fn another_version_is_reported() {
        let mut bytes = HEAD.encode();
        bytes[8] = 9;
        let check = crc32c::crc32c(&bytes[..CHECK]);
        bytes[CHECK..].copy_from_slice(&check.to_le_bytes());
        assert_eq!(FileHead::decode(&bytes), Err(HeadProblem::Version { found: 9 }));
    }
}
