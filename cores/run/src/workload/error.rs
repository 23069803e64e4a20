//! Errors of workloads.

use std::io;
use thiserror::Error;

/// Reason why a run has no figures, as a sentence without its full stop.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct WorkloadError(pub String);

impl WorkloadError {
    /// The system's error of a step such as "start a process".
    pub fn cannot(doing: &str) -> impl Fn(io::Error) -> Self {
        move |source| Self(format!("cannot {doing}: {source}"))
    }
}
