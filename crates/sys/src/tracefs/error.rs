//! Why the kernel's trace cannot be had, and what to do about it.

use lowlat_host::{CpuId, Unparsable};
use lowlat_trace::FormatError;
use std::io;
use thiserror::Error;

/// Why a trace cannot be started, read or removed. Every text ends with the next step.
#[derive(Debug, Error)]
pub enum TraceError {
    /// This user may not use tracefs, or the kernel is locked down.
    #[error(
        "may not use the kernel's trace at {path}: {source}; run as root (a kernel locked down for confidentiality \
         refuses root too), or use --no-causes, which measures without causes"
    )]
    NotPermitted {
        /// What was refused.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel is built without tracefs, or without instances of it.
    #[error(
        "this kernel has no tracefs with instances; use a kernel built with CONFIG_EVENT_TRACING, or --no-causes, \
         which measures without causes"
    )]
    NotInKernel,
    /// tracefs is not mounted, and could not be mounted for this process alone.
    #[error(
        "tracefs is not mounted, and mounting it for this process failed: {source}; run \
         \"mount -t tracefs tracefs /sys/kernel/tracing\" as root, or use --no-causes, which measures without causes"
    )]
    MountRefused {
        /// What the system said.
        source: io::Error,
    },
    /// tracefs is mounted read-only, as containers have it.
    #[error(
        "{path} is read-only; run outside of the container or mount it writable, or use --no-causes, which measures \
         without causes"
    )]
    ReadOnly {
        /// Where.
        path: String,
    },
    /// The clock that the samplers' counter needs is not among the kernel's.
    #[error(
        "{path} offers no clock {wanted}, only: {offered}; use a kernel that has it, or --no-causes, which measures \
         without causes"
    )]
    Clock {
        /// The file.
        path: String,
        /// The clock's name.
        wanted: &'static str,
        /// What the file says.
        offered: String,
    },
    /// The buffers would take more memory than was allowed.
    #[error(
        "trace buffers need {needed_kb} KiB of kernel memory for a moment, and {allowed_kb} KiB are allowed; measure \
         fewer CPUs or use --no-causes, which measures without causes"
    )]
    Memory {
        /// What is needed.
        needed_kb: u64,
        /// What was allowed.
        allowed_kb: u64,
    },
    /// A CPU that the kernel has no buffer for.
    #[error("CPU {cpu} has no trace buffer at {path}; choose CPUs that are online")]
    NoCpu {
        /// The CPU.
        cpu: CpuId,
        /// Where it should be.
        path: String,
    },
    /// The instance could not be made.
    #[error("cannot make the trace instance {path}: {source}; --no-causes measures without causes")]
    Make {
        /// Where.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file of tracefs that should be there is not, or cannot be read.
    #[error("cannot read {path}: {problem}; --no-causes measures without causes")]
    Read {
        /// Which.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A file of tracefs holds something else than expected.
    #[error("{0}; --no-causes measures without causes")]
    Unparsable(Box<Unparsable>),
    /// A format that is not known.
    #[error("{0}; --no-causes measures without causes")]
    Format(Box<FormatError>),
    /// A setting of the instance was refused.
    #[error("cannot write \"{value}\" to {path}: {source}; --no-causes measures without causes")]
    Write {
        /// Which.
        path: String,
        /// What was to be written.
        value: String,
        /// What the system said.
        source: io::Error,
    },
    /// None of the events could be switched on.
    #[error("no trace event can be switched on: {reasons}; --no-causes measures without causes")]
    NoEvents {
        /// The first of the reasons.
        reasons: String,
    },
    /// The instance is left behind.
    #[error(
        "cannot remove the trace instance {path}: {source}; close what uses it and run \"rmdir {path}\" as root"
    )]
    Remove {
        /// Where.
        path: String,
        /// What the system said.
        source: io::Error,
    },
}

impl From<FormatError> for TraceError {
    fn from(error: FormatError) -> Self {
        Self::Format(Box::new(error))
    }
}

impl TraceError {
    /// A refusal that has a cause of its own, or what `other` makes of it.
    pub(super) fn refused(path: &str, source: io::Error, other: impl FnOnce(io::Error) -> Self) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted { path: path.into(), source },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path: path.into() },
            _ => other(source),
        }
    }
}
