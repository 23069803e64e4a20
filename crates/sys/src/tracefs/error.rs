//! Errors of the kernel's trace, with the next step.

use lowlat_host::{CpuId, Unparsable};
use lowlat_trace::FormatError;
use std::io;
use thiserror::Error;

/// Why a trace cannot be started, read or removed. Every message ends with the next step.
#[derive(Debug, Error)]
pub enum TraceError {
    /// This user may not use tracefs, or the kernel is locked down.
    #[error(
        "cannot use the kernel's trace at {path}: {source}; run as root (a kernel locked down for \
         confidentiality denies root too), or use --no-causes to measure without causes"
    )]
    NotPermitted {
        /// The path to which access was denied.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel is built without tracefs, or without instances of it.
    #[error(
        "this kernel has no tracefs with instances; use a kernel built with CONFIG_EVENT_TRACING, or \
         --no-causes to measure without causes"
    )]
    NotInKernel,
    /// tracefs is not mounted, and mounting it for this process failed.
    #[error(
        "tracefs is not mounted, and mounting it for this process failed: {source}; run \"mount -t tracefs \
         tracefs /sys/kernel/tracing\" as root, or use --no-causes to measure without causes"
    )]
    MountRefused {
        /// The system's error.
        source: io::Error,
    },
    /// tracefs is mounted read-only, as in containers.
    #[error(
        "{path} is read-only; run outside of the container or mount it writable, or use --no-causes to \
         measure without causes"
    )]
    ReadOnly {
        /// The mount point.
        path: String,
    },
    /// The kernel does not have the clock that the samplers' counter needs.
    #[error(
        "{path} offers no clock {wanted}, only: {offered}; use a kernel that has it, or --no-causes to \
         measure without causes"
    )]
    Clock {
        /// The file.
        path: String,
        /// The clock's name.
        wanted: &'static str,
        /// Content of the file.
        offered: String,
    },
    /// The buffers would exceed the memory limit.
    #[error(
        "trace buffers temporarily need {needed_kb} KiB of kernel memory, and {allowed_kb} KiB are allowed; \
         measure fewer CPUs or use --no-causes to measure without causes"
    )]
    Memory {
        /// Memory needed.
        needed_kb: u64,
        /// Memory allowed.
        allowed_kb: u64,
    },
    /// A CPU without a trace buffer.
    #[error("CPU {cpu} has no trace buffer at {path}; choose CPUs that are online")]
    NoCpu {
        /// The CPU.
        cpu: CpuId,
        /// Expected path of the buffer.
        path: String,
    },
    /// The instance could not be created.
    #[error("cannot create the trace instance {path}: {source}; use --no-causes to measure without causes")]
    Make {
        /// Path of the instance.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// A file that tracefs must have is missing or cannot be read.
    #[error("cannot read {path}: {problem}; use --no-causes to measure without causes")]
    Read {
        /// Path of the file.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// A file of tracefs has unexpected content.
    #[error("{0}; use --no-causes to measure without causes")]
    Unparsable(Box<Unparsable>),
    /// An unknown format.
    #[error("{0}; use --no-causes to measure without causes")]
    Format(Box<FormatError>),
    /// The kernel rejected a setting of the instance.
    #[error("cannot write \"{value}\" to {path}: {source}; use --no-causes to measure without causes")]
    Write {
        /// Path of the file.
        path: String,
        /// The value.
        value: String,
        /// The system's error.
        source: io::Error,
    },
    /// None of the events could be switched on.
    #[error("cannot switch on any trace event: {reasons}; use --no-causes to measure without causes")]
    NoEvents {
        /// The first of the reasons.
        reasons: String,
    },
    /// The instance could not be removed.
    #[error(
        "cannot remove the trace instance {path}: {source}; close what uses it and run \"rmdir {path}\" as \
         root"
    )]
    Remove {
        /// Path of the instance.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

impl From<FormatError> for TraceError {
    fn from(error: FormatError) -> Self {
        Self::Format(Box::new(error))
    }
}

impl TraceError {
    /// The error for a denied access with a known reason, otherwise the result of `other`.
    pub(super) fn refused(path: &str, source: io::Error, other: impl FnOnce(io::Error) -> Self) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted { path: path.into(), source },
            io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly { path: path.into() },
            _ => other(source),
        }
    }
}
