//! Errors of raw files.

use lowlat_host_run::output::{OutputCause, OutputError};
use std::path::PathBuf;
use thiserror::Error;

const NAME_A_PREFIX: &str = "name a prefix in an existing directory that you can write to";

/// Error that prevents writing raw files, found before the run.
#[derive(Debug, Error)]
pub enum RawError {
    /// A file cannot be created.
    #[error("{source}\nhint: {}", source.hint().unwrap_or_else(|| NAME_A_PREFIX.into()))]
    Create {
        /// The system's error, with the path.
        source: OutputError,
    },
    /// One file per CPU exceeds the limit on open files.
    #[error(
        "cannot create the raw file {}: {source}\nhint: raise the limit on open files (ulimit -n) or measure fewer \
         CPUs; each needs one",
        path.display()
    )]
    TooManyFiles { path: PathBuf, source: OutputCause },
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
