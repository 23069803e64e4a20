//! Why raw files can't be written.

use lowlat_sys::output::{OutputCause, OutputError};
use std::path::PathBuf;
use thiserror::Error;

const NAME_A_PREFIX: &str = "name a prefix in a directory that exists and that you may write to";

/// Why raw files can't be written; found before the run.
#[derive(Debug, Error)]
pub enum RawError {
    /// A file can't be created.
    #[error("{source}\nhint: {}", source.hint().unwrap_or_else(|| NAME_A_PREFIX.into()))]
    Create {
        /// What the system said, with the path.
        source: OutputError,
    },
    /// One file for each CPU is more than the process may open.
    #[error(
        "cannot create the raw file {}: {source}\nhint: raise the limit on open files (ulimit -n) or measure fewer \
         CPUs; each needs one",
        path.display()
    )]
    TooManyFiles {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: OutputCause,
    },
}

impl RawError {
    pub(super) fn of(source: OutputError) -> Self {
        match source {
            OutputError { path, cause: OutputCause::Io(error) }
                if error.raw_os_error() == Some(libc::EMFILE) =>
            {
                Self::TooManyFiles { path, source: OutputCause::Io(error) }
            }
            source => Self::Create { source },
        }
    }
}
