//! Errors of changes and of their rollback. Every message names the path and the next step.

use super::{Conflict, LogDamage, RollbackReport, State};
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// Error of one access to the host or to the log.
#[derive(Debug, Error)]
pub enum HostError {
    /// The system denied an operation or reported an error.
    /// - `doing`: the failed operation: "rename", "fsync".
    /// - `path`: the file, as the host names it.
    #[error("{path}: cannot {doing}: {source}{}", advice(.source))]
    Io { doing: &'static str, path: String, source: io::Error },
    /// The kernel rejected a value that was written to one of its attributes.
    /// - `path`: the attribute, as the host names it.
    #[error("{path}: the kernel rejected the value: {source}{}", advice_of_kernel(.source))]
    Attribute { path: String, source: io::Error },
    /// The change had no effect but returned no error number: another value was read back, or a service
    /// rejected it.
    /// - `path`: name of the target, not always a path.
    /// - `what`: the result: "wrote "7", read back "0"".
    #[error("{path}: {what}")]
    Refused { path: String, what: String },
    /// The name is taken by something that is not replaced: a directory, a device, a pipe.
    /// - `found`: object at the path: "a directory".
    #[error("{path} is {found}, expected {expected}; move it away, or leave this step out")]
    Kind { path: String, found: &'static str, expected: &'static str },
    /// More bytes than the log stores.
    /// - `path`: the oversized file, or the log's whole store.
    #[error(
        "{path}: {bytes} bytes or more, and the undo log stores at most {bytes_max}; leave this step out"
    )]
    TooLarge { path: String, bytes: u64, bytes_max: u64 },
    /// A kind of target in the log that this version does not know.
    #[error(
        "the undo log names a target of kind {kind:?}, which this version does not know; use the version that wrote it"
    )]
    UnknownKind { kind: String },
    /// A path, a link, a file or a state that lowlat does not use.
    #[error("{0}")]
    Unfit(String),
}

impl HostError {
    pub(super) fn io(doing: &'static str, path: &str, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.to_owned(), source: source.into() }
    }

    /// The path is not absolute, or contains `.`, `..`, an empty name or a NUL.
    pub(super) fn bad_path(path: &str) -> Self {
        Self::Unfit(format!(
            "{path:?} is not a path on a host; expected an absolute path without \".\", \"..\" and empty names"
        ))
    }

    /// Links form a loop, or the path is too deep.
    pub(super) fn too_many_links(path: &str) -> Self {
        Self::Unfit(format!("{path}: the path has more than 40 links or 256 directories; correct the links"))
    }

    pub(super) fn not_text(path: &str, raw: &str) -> Self {
        Self::Unfit(format!("{path}: found {raw:?}, expected text in UTF-8; leave this step out"))
    }

    /// The target cannot have the wanted state.
    pub fn wrong_state(kind: &str, path: &str, wanted: &State) -> Self {
        Self::Unfit(format!("{path}: a {kind} cannot become {wanted}; this plan is wrong, make a new one"))
    }

    /// True if the target itself rejected this one change permanently: the kernel manages that interrupt, the driver
    /// has no such option, the device was removed. A full disk, an interrupted call or a dangling path do not count.
    ///
    /// It applies to errors of a [`Target`](super::Target) at the thing that it changes. For a file on a disk
    /// the same error numbers mean something else (EIO: the disk is failing), so there nothing counts as a
    /// rejection.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { .. } => true,
            Self::Attribute { source, .. } => {
                // For an attribute this does not mean a disk: a CPU has no free interrupt vector, or a pool
                // no free page.
                says_no(source) || errno(source).is_some_and(|e| matches!(e, Errno::NOSPC | Errno::NOMEM))
            }
            Self::Io { source, .. } => says_no(source),
            _ => false,
        }
    }
}

fn errno(source: &io::Error) -> Option<Errno> {
    Errno::from_io_error(source)
}

fn says_no(source: &io::Error) -> bool {
    errno(source).is_some_and(|errno| {
        matches!(
            errno,
            Errno::IO
                | Errno::INVAL
                | Errno::BUSY
                | Errno::NODEV
                | Errno::NXIO
                | Errno::OPNOTSUPP
                | Errno::PERM
                | Errno::ACCESS
                | Errno::NOENT
                | Errno::SRCH
                | Errno::RANGE
                | Errno::OVERFLOW
        )
    })
}

fn advice_of_kernel(source: &io::Error) -> &'static str {
    match errno(source) {
        Some(Errno::PERM | Errno::ACCESS) => "; run as root, and search the kernel's log for lockdown",
        Some(Errno::IO) => "; interrupts that the kernel manages return this error",
        Some(Errno::NOSPC) => "; for an interrupt: those CPUs have no free vector",
        _ => "",
    }
}

fn advice(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free space and try again",
        io::ErrorKind::ReadOnlyFilesystem => "; remount it writable, or leave this step out",
        io::ErrorKind::PermissionDenied => "; run it with sudo",
        _ => "",
    }
}

/// Error of a call to the undo log, or of a failed plan.
#[derive(Debug, Error)]
pub enum UndoError {
    /// An access failed before anything was changed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Another process is using the log.
    /// - `path`: path of the log's lock file.
    /// - `holder`: process number and name, as the holder wrote it.
    #[error("cannot use {path}: {holder} is using it\nhint: wait until that process ends, or stop it")]
    Locked { path: String, holder: String },
    /// The same plan was started with other steps, or a file was changed since.
    #[error(
        "cannot resume plan {plan}: its step {step} differs from the undo log, or its file was changed since\nhint: \
         use a new plan ID"
    )]
    PlanDiffers { plan: String, step: String },
    /// The log, the plan or the host does not allow the call. Nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// A step failed. The earlier ones were rolled back as the report says.
    /// - `rolled_back`: result for the earlier steps.
    #[error("step {step} failed: {reason}; {rolled_back}")]
    Step { step: String, reason: String, rolled_back: Box<RollbackReport> },
}

impl UndoError {
    /// Records that were once durable cannot be read.
    pub fn damaged(damage: &LogDamage) -> Self {
        Self::Refused(format!(
            "cannot rely on the undo log: {damage}\nhint: restore the known steps with `lowlat tune rollback \
             --accept-damage` first"
        ))
    }

    /// Two steps have the same ID, or change the same target.
    pub fn twice(first: &str, second: &str, what: &str) -> Self {
        Self::Refused(format!(
            "cannot apply the plan: its steps {first} and {second} have the same {what}\nhint: make a new plan"
        ))
    }

    /// The host is not in the state that the plan found.
    pub(super) fn conflicts(conflicts: &[Conflict]) -> Self {
        let lines: Vec<String> = conflicts.iter().map(ToString::to_string).collect();
        Self::Refused(format!(
            "cannot apply the plan: the host has changed since it was made:\n{}\nhint: make a new plan",
            lines.join("\n")
        ))
    }
}
