//! Errors of the kernel's trace, with the next step.

use lowlat_trace::FormatError;
use std::{fmt, io};
use thiserror::Error;

/// Remedy that always works, as the end of a sentence.
pub(super) const WITHOUT: &str = "use --no-causes to measure without causes";

/// Reason why a trace cannot be started, read or removed. Every message ends with the next step.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct TraceError(pub(super) String);

impl TraceError {
    pub(super) fn new(problem: impl fmt::Display) -> Self {
        Self(format!("{problem}; {WITHOUT}"))
    }

    /// The error of an access: "read", "write "1" to".
    pub(super) fn cannot(doing: &str, path: &str, source: &io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self(format!(
                "cannot use the kernel's trace at {path}: {source}; run as root (a kernel locked down for \
                 confidentiality denies root too), or {WITHOUT}"
            )),
            io::ErrorKind::ReadOnlyFilesystem => Self(format!(
                "{path} is read-only; run outside of the container or mount it writable, or {WITHOUT}"
            )),
            _ => Self::new(format!("cannot {doing} {path}: {source}")),
        }
    }

    pub(super) fn not_in_kernel() -> Self {
        Self(
            "this kernel has no tracefs with instances; use a kernel built with CONFIG_EVENT_TRACING, or \
             --no-causes to measure without causes"
                .to_owned(),
        )
    }

    pub(super) fn not_removed(path: &str, source: &io::Error) -> Self {
        Self(format!(
            "cannot remove the trace instance {path}: {source}; close what uses it and run \"rmdir {path}\" as root"
        ))
    }
}

impl From<FormatError> for TraceError {
    fn from(error: FormatError) -> Self {
        Self::new(error)
    }
}
