//! What is wrong with a recording, where, and what it costs.

use crate::layout::{HeadProblem, VERSION};
use serde::Serialize;
use std::{fmt, path::PathBuf};

/// A place in a recording that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// Where it begins.
    pub offset: u64,
    /// How many bytes are of no use for it; 0 when everything can still be read.
    pub bytes: u64,
    /// What is wrong.
    #[serde(flatten)]
    pub problem: Problem,
}

/// What is wrong with a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "problem")]
pub enum Problem {
    /// The head of a file; its blocks are read all the same, unless it is of another layout.
    FileHead {
        /// What is wrong with it.
        #[serde(flatten)]
        why: HeadProblem,
    },
    /// The file carries the number of another recording, or of another file.
    Foreign {
        /// The number that it carries.
        found: u64,
        /// That of the recording, or of the file by its name.
        expected: u64,
    },
    /// Neither a block nor the end of what was written.
    NoBlock,
    /// The head of a block; the index has a copy, by which the block was read.
    BlockHead,
    /// A record's check does not fit, or the file ends inside of it. Those before it in the block are good.
    Record {
        /// The stream.
        stream: u32,
        /// The sequence that it should have.
        sequence: u64,
    },
    /// Bytes between the records of a block and the next one that are not zeros, or a checksum over all of it.
    BlockEnd,
    /// A manifest that is none.
    Manifest,
    /// Records of a stream that stand behind later ones.
    Order {
        /// The stream.
        stream: u32,
        /// The first sequence of the block.
        found: u64,
        /// What should have come.
        expected: u64,
    },
    /// Blocks that are not there.
    BlocksMissing {
        /// The first.
        from: u64,
        /// The one behind the last.
        to: u64,
    },
    /// A file that is missing.
    FileMissing,
    /// The file has no end: its writer was killed or failed, or the file was cut.
    Unfinished,
    /// The system cannot read it.
    Unreadable {
        /// What it said.
        error: String,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileHead { why: why @ HeadProblem::Version { .. } } => write!(f, "{why}"),
            Self::FileHead { why } => {
                write!(f, "no head of a data file of layout {VERSION}: {why}; its blocks are read without it")
            }
            Self::Foreign { found, expected } => {
                write!(f, "belongs to {found:#x}, expected {expected:#x}: a file of another recording")
            }
            Self::NoBlock => write!(f, "no block begins here; reading goes on with the next one that does"),
            Self::BlockHead => {
                write!(f, "the head of a block is damaged; the block was read by its copy in the index")
            }
            Self::Record { stream, sequence } => write!(
                f,
                "record {sequence} of stream {stream} is damaged; those before it in its block are good, those behind it are lost"
            ),
            Self::BlockEnd => write!(f, "the end of a block is damaged; its records are good"),
            Self::Manifest => {
                write!(f, "a list of streams is damaged; that of another file, or numbers, stand in for it")
            }
            Self::Order { stream, found, expected } => write!(
                f,
                "a block of stream {stream} begins with record {found}, expected {expected} or a later one; it is passed over"
            ),
            Self::BlocksMissing { from, to } if to - from == 1 => write!(f, "block {from} is missing"),
            Self::BlocksMissing { from, to } => write!(f, "blocks {from} to {} are missing", to - 1),
            Self::FileMissing => write!(f, "the file is missing; other files of the recording name it"),
            Self::Unfinished => write!(
                f,
                "the file has no end: its recorder was killed or failed here, or the file was cut; later records may be missing"
            ),
            Self::Unreadable { error } => write!(f, "cannot be read: {error}"),
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}: {}", self.file.display(), self.offset, self.problem)
    }
}
