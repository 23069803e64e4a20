//! Why nothing more is recorded.

use std::{io, path::PathBuf};
use thiserror::Error;

/// Why a recording cannot be begun or gone on with. What was written before stays readable.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The system refused.
    #[error("{}: cannot {doing}: {source}{}", path.display(), advice(source))]
    Refused {
        /// Which file or folder.
        path: PathBuf,
        /// What was attempted.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Another process records there.
    #[error("{}: another process records there; stop it, or name another folder", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The folder of a new recording holds one already.
    #[error(
        "cannot record into {}: it holds a recording\nhint: name a new folder, or remove this recording first",
        path.display()
    )]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds a recording that cannot be gone on with.
    #[error("{}: holds a recording that cannot be gone on with: {why}; name a new folder", path.display())]
    Other {
        /// The folder.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The writing thread has ended before; the first error was given then.
    #[error("{}: the recording has ended with an error before", path.display())]
    Ended {
        /// The folder.
        path: PathBuf,
    },
    /// More streams than a recording has.
    #[error(
        "stream {name:?}: a recording has {} streams at most; begin a second one",
        crate::layout::STREAMS_MAX
    )]
    TooManyStreams {
        /// The stream that did not fit.
        name: String,
    },
    /// A name that no manifest holds.
    #[error(
        "stream {name:?}: expected a name of 1 to {} bytes that no other stream of the recording has",
        crate::layout::NAME_BYTES_MAX
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A stream that counts from the beginning again: it is that of another run.
    #[error(
        "stream {name:?}: record {found} was made after record {expected} was expected; this is another run's stream: record it into a new folder"
    )]
    WentBack {
        /// The stream.
        name: String,
        /// The sequence that came.
        found: u64,
        /// The sequence that should have come.
        expected: u64,
    },
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free space or name another disk; what was recorded before is whole"
        }
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "; name a folder that this user can write"
        }
        io::ErrorKind::NotFound => "; make the folder above it first",
        _ => "; look at the kernel's log for errors of the disk",
    }
}

impl RecordError {
    pub(crate) fn refused(path: &std::path::Path, doing: &'static str, source: io::Error) -> Self {
        Self::Refused { path: path.to_owned(), doing, source }
    }
}
