//! Errors of the kernel's trace, with the next step.

use lowlat_host_run::Root;
use lowlat_trace::FormatError;
use std::{fmt, io};
use thiserror::Error;

/// Remedy that always works, as the end of a sentence.
pub(super) const WITHOUT: &str = "use --no-causes to measure without causes";

/// File with the modes of lockdown, the present one in brackets.
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";

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
            io::ErrorKind::PermissionDenied => {
                Self::denied(path, source, Root::live().read_lossy(LOCKDOWN).text())
            }
            io::ErrorKind::ReadOnlyFilesystem => Self(format!(
                "{path} is read-only; run outside of the container or mount it writable, or {WITHOUT}"
            )),
            _ => Self::new(format!("cannot {doing} {path}: {source}")),
        }
    }

    /// A denied access under this mode of lockdown, as the kernel shows it: `none integrity [confidentiality]`.
    fn denied(path: &str, source: &io::Error, lockdown: &str) -> Self {
        let advice = if lockdown.contains("[confidentiality]") {
            "denied by lockdown (confidentiality), also to root; boot without lockdown=confidentiality"
        } else {
            "run as root"
        };
        Self(format!("cannot use the kernel's trace at {path}: {source}; {advice}, or {WITHOUT}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lockdown_is_named_where_it_denies_the_trace() {
        let said = |mode| TraceError::denied("/t", &io::ErrorKind::PermissionDenied.into(), mode).to_string();
        assert!(said("none integrity [confidentiality]").contains("denied by lockdown (confidentiality)"));
        for mode in ["none [integrity] confidentiality", "[none] integrity confidentiality", ""] {
            assert!(said(mode).contains("run as root, or use --no-causes"), "{mode}");
        }
    }
}
