//! Errors of recording.

use std::{io, path::PathBuf};
use thiserror::Error;

/// Why a recording cannot be started or continued. What was written before stays readable.
#[derive(Debug, Error)]
pub enum RecordError {
    /// A system error.
    #[error("cannot {doing} {}: {source}{}", path.display(), advice(source))]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// The attempted operation, a verb that precedes the path.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Another process records there.
    #[error("cannot record into {}: another process is recording there\nhint: stop it, or name another directory", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The directory of a new recording already holds one.
    #[error(
        "cannot record into {}: it holds a recording\nhint: name a new directory, or remove this recording first",
        path.display()
    )]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The directory holds a recording that cannot be resumed.
    #[error("cannot resume the recording in {}: {why}\nhint: name a new directory", path.display())]
    Other {
        /// The folder.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The writing thread has already ended; the first error was reported then.
    #[error("cannot record into {}: the recording has already ended with an error", path.display())]
    Ended {
        /// The folder.
        path: PathBuf,
    },
    /// More streams than a recording can have.
    #[error(
        "cannot record stream {name:?}: a recording has at most {} streams\nhint: start a second recording",
        crate::layout::STREAMS_MAX
    )]
    TooManyStreams {
        /// The stream that did not fit.
        name: String,
    },
    /// A name that no manifest can hold.
    #[error(
        "cannot record stream {name:?}: expected a unique name of 1 to {} bytes",
        crate::layout::NAME_BYTES_MAX
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A stream that restarts its count: it belongs to another run.
    #[error(
        "cannot record stream {name:?}: it belongs to another run (found record {found}, expected {expected})\nhint: record it into a new directory"
    )]
    WentBack {
        /// The stream.
        name: String,
        /// The sequence found.
        found: u64,
        /// The expected sequence.
        expected: u64,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "\nhint: free space or use another disk; everything recorded so far is intact"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "\nhint: name a directory that this user can write to"
        }
        io::ErrorKind::NotFound => "\nhint: create its parent directory first",
        _ => "\nhint: check the kernel's log for disk errors",
    }
}

impl RecordError {
    pub(crate) fn refused(path: &std::path::Path, doing: &'static str, source: io::Error) -> Self {
        Self::Refused { path: path.to_owned(), doing, source }
    }
}
