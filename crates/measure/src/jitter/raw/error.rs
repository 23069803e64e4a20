//! Why raw files can't be written.

use std::{
    io,
    path::{Path, PathBuf},
};
use thiserror::Error;

/// Why raw files can't be written; found before the run.
#[derive(Debug, Error)]
pub enum RawError {
    /// A file can't be created.
    #[error(
        "cannot create the raw file {}: {source}; name a prefix in a directory that exists and may be written",
        path.display()
    )]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// One file for each CPU is more than the process may open.
    #[error(
        "cannot create the raw file {}: {source}; each measured CPU needs an open file, so raise the limit (ulimit \
         -n) or measure fewer CPUs",
        path.display()
    )]
    TooManyFiles {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl RawError {
    pub(super) fn of(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if source.raw_os_error() == Some(libc::EMFILE) {
            Self::TooManyFiles { path, source }
        } else {
            Self::Create { path, source }
        }
    }
}
