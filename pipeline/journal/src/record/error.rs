//! Errors of recording.

use std::{io, path::Path};
use thiserror::Error;

/// Error that prevents a recording from being started or continued. What was written before stays readable.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct RecordError(pub(crate) String);

impl RecordError {
    /// A system error; `doing` is the attempted operation, a verb that precedes the path.
    pub(crate) fn refused(path: &Path, doing: &str, source: &io::Error) -> Self {
        Self(format!("cannot {doing} {}: {source}{}", path.display(), advice(source)))
    }

    /// The writing thread has already ended; the first error was reported then.
    pub(crate) fn ended(folder: &Path) -> Self {
        let folder = folder.display();
        Self(format!("cannot record into {folder}: the recording has already ended with an error"))
    }
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
