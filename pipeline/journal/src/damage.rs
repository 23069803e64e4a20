//! Damage of a recording: where it is, and what it costs.

use crate::layout::{HeadProblem, VERSION};
use serde::Serialize;
use std::{fmt, io, path::PathBuf};
use thiserror::Error;

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
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[serde(rename_all = "snake_case", tag = "problem")]
pub enum Problem {
    /// The head of a file; its blocks are still read, unless their layout differs.
    #[error("{}", head_words(why))]
    FileHead {
        #[serde(flatten)]
        why: HeadProblem,
    },
    /// The file has the number of another recording or file.
    #[error("a file of another recording: found {found:#x}, expected {expected:#x}")]
    Foreign {
        found: u64,
        /// The expected number: that of the recording, or of the file's name.
        expected: u64,
    },
    /// Neither a block nor the end of the data.
    #[error("no block starts here; reading continues with the next block")]
    NoBlock,
    /// The head of a block; the index has a copy, which was used to read the block.
    #[error("the head of a block is damaged; its copy in the index was used")]
    BlockHead,
    /// A record's check does not match, or the file ends inside it. Earlier records of the block are intact.
    #[error(
        "record {sequence} of stream {stream} is damaged; earlier records of its block are intact, later ones are lost"
    )]
    Record { stream: u32, sequence: u64 },
    /// Nonzero padding after the records of a block, or a wrong checksum over all of it.
    #[error("the end of a block is damaged; its records are intact")]
    BlockEnd,
    /// A list of streams that cannot be parsed.
    #[error("a list of streams is damaged; that of another file, or numbers, are used instead")]
    Manifest,
    /// Records of a stream that follow later ones.
    #[error("block of stream {stream} skipped: it starts with record {found}, expected {expected} or later")]
    Order {
        stream: u32,
        /// The first sequence of the block.
        found: u64,
        /// The expected sequence.
        expected: u64,
    },
    /// Blocks whose numbers are missing.
    #[error("{}", missing_words(*from, *to))]
    BlocksMissing {
        /// Number of the first missing block.
        from: u64,
        /// One past the last missing block.
        to: u64,
    },
    /// A file that is missing.
    #[error("the file is missing; other files of the recording refer to it")]
    FileMissing,
    /// The file has no end: its writer was killed or failed, or the file was truncated.
    #[error(
        "the file has no end: its recorder was killed or failed, or the file was truncated; later records may be missing"
    )]
    Unfinished,
    /// The system cannot read it.
    #[error("cannot be read: {error}")]
    Unreadable { error: String },
}

impl Problem {
    /// The system cannot read it.
    pub(crate) fn unreadable(error: &io::Error) -> Self {
        Self::Unreadable { error: error.to_string() }
    }
}

fn head_words(why: &HeadProblem) -> String {
    match why {
        HeadProblem::Version { .. } => why.to_string(),
        _ => format!("no head of a data file of layout {VERSION}: {why}; its blocks are read without it"),
    }
}

fn missing_words(from: u64, to: u64) -> String {
    match to - from {
        1 => format!("block {from} is missing"),
        _ => format!("blocks {from} to {} are missing", to - 1),
    }
}

impl fmt::Display for DamagedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file.display(), self.offset, self.problem)
    }
}
