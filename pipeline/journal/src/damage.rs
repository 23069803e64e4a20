//! Damage of a recording: where it is, and what it costs.

use crate::layout::{HeadProblem, VERSION};
use serde::Serialize;
use std::{fmt, path::PathBuf};

/// A damaged place in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedPlace {
    pub file: PathBuf,
    /// Offset of its start in the file.
    pub offset: u64,
    /// Number of unusable bytes; 0 if everything can still be read.
    pub bytes: u64,
    #[serde(flatten)]
    pub problem: Problem,
}

/// Kind of damage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "problem")]
pub enum Problem {
    /// The head of a file; its blocks are still read, unless their layout differs.
    FileHead {
        #[serde(flatten)]
        why: HeadProblem,
    },
    /// The file has the number of another recording or file.
    Foreign {
        found: u64,
        /// The expected number: that of the recording, or of the file's name.
        expected: u64,
    },
    /// Neither a block nor the end of the data.
    NoBlock,
    /// The head of a block; the index has a copy, which was used to read the block.
    BlockHead,
    /// A record's check does not match, or the file ends inside it. Earlier records of the block are intact.
    Record { stream: u32, sequence: u64 },
    /// Nonzero padding after the records of a block, or a wrong checksum over all of it.
    BlockEnd,
    /// A list of streams that cannot be parsed.
    Manifest,
    /// Records of a stream that follow later ones.
    Order {
        stream: u32,
        /// The first sequence of the block.
        found: u64,
        /// The expected sequence.
        expected: u64,
    },
    /// Blocks whose numbers are missing.
    BlocksMissing {
        /// Number of the first missing block.
        from: u64,
        /// One past the last missing block.
        to: u64,
    },
    /// A file that is missing.
    FileMissing,
    /// The file has no end: its writer was killed or failed, or the file was truncated.
    Unfinished,
    /// The system cannot read it.
    Unreadable { error: String },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileHead { why: why @ HeadProblem::Version { .. } } => write!(f, "{why}"),
            Self::FileHead { why } => {
                write!(f, "no head of a data file of layout {VERSION}: {why}; its blocks are read without it")
            }
            Self::Foreign { found, expected } => {
                write!(f, "a file of another recording: found {found:#x}, expected {expected:#x}")
            }
            Self::NoBlock => write!(f, "no block starts here; reading continues with the next block"),
            Self::BlockHead => {
                write!(f, "the head of a block is damaged; its copy in the index was used")
            }
            Self::Record { stream, sequence } => write!(
                f,
                "record {sequence} of stream {stream} is damaged; earlier records of its block are intact, later ones are lost"
            ),
            Self::BlockEnd => write!(f, "the end of a block is damaged; its records are intact"),
            Self::Manifest => {
                write!(f, "a list of streams is damaged; that of another file, or numbers, are used instead")
            }
            Self::Order { stream, found, expected } => write!(
                f,
                "block of stream {stream} skipped: it starts with record {found}, expected {expected} or later"
            ),
            Self::BlocksMissing { from, to } if to - from == 1 => write!(f, "block {from} is missing"),
            Self::BlocksMissing { from, to } => write!(f, "blocks {from} to {} are missing", to - 1),
            Self::FileMissing => write!(f, "the file is missing; other files of the recording refer to it"),
            Self::Unfinished => write!(
                f,
                "the file has no end: its recorder was killed or failed, or the file was truncated; later records may be missing"
            ),
            Self::Unreadable { error } => write!(f, "cannot be read: {error}"),
        }
    }
}

impl fmt::Display for DamagedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file.display(), self.offset, self.problem)
    }
}
