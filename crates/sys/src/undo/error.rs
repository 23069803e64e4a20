//! Why a change cannot be made or rolled back. Every message names the path and the next step.

use super::{Conflict, Damage, RollbackReport};
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// Why one access to the host or to the log failed.
#[derive(Debug, Error)]
pub enum HostError {
    /// The system denied an operation or reported an error.
    #[error("{path}: cannot {doing}: {source}{}", advice(.source))]
    Io {
        /// What was attempted: "rename", "fsync".
        doing: &'static str,
        /// The file, as the host names it.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel rejected a value that was written to one of its attributes.
    #[error("{path}: the kernel rejected the value: {source}{}", advice_of_kernel(.source))]
    Attribute {
        /// The attribute, as the host names it.
        path: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The change had no effect but returned no error number: another value was read back, or a service
    /// rejected it.
    #[error("{path}: {what}")]
    Refused {
        /// The target's name.
        path: String,
        /// The result: "wrote "7", read back "0"".
        what: String,
    },
    /// A path that is not absolute, or contains `.`, `..`, an empty name or a NUL.
    #[error(
        "{path:?} is not a path on a host; expected an absolute path without \".\", \"..\" and empty names"
    )]
    Path {
        /// The path.
        path: String,
    },
    /// A symbolic link leads above the root.
    #[error(
        "{path}: the link at {link} leads out of the root, and lowlat does not follow it; correct the link"
    )]
    Outside {
        /// The requested path.
        path: String,
        /// The link, as the host names it.
        link: String,
    },
    /// Links that form a loop, or a path that is too deep.
    #[error("{path}: the path has more than 40 links or 256 directories; correct the links")]
    Links {
        /// The requested path.
        path: String,
    },
    /// The name is taken by something that is not replaced: a directory, a device, a pipe.
    #[error("{path} is {found}, expected {expected}; move it away, or leave this step out")]
    Kind {
        /// The path.
        path: String,
        /// What exists there.
        found: &'static str,
        /// What was expected.
        expected: &'static str,
    },
    /// More bytes than the log stores.
    #[error(
        "{path}: {bytes} bytes or more, and the undo log stores at most {bytes_max}; leave this step out"
    )]
    TooLarge {
        /// What is too large: a file, or the log's whole store.
        path: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// A value that is not text.
    #[error("{path}: found {raw:?}, expected text in UTF-8; leave this step out")]
    NotText {
        /// The file.
        path: String,
        /// What was read, with replacement characters.
        raw: String,
    },
    /// Stored content does not match the hash in its name.
    #[error(
        "{path}: the stored content is damaged (its SHA-256 differs from its name); restore it from a backup"
    )]
    Content {
        /// The file in the store.
        path: String,
    },
    /// A kind of target in the log that this version does not know.
    #[error(
        "the undo log names a target of kind {kind:?}, which this version does not know; use the version that wrote it"
    )]
    UnknownKind {
        /// The kind.
        kind: String,
    },
    /// The target cannot have the wanted state.
    #[error("{path}: a {kind} cannot become {wanted}; this plan is wrong, make a new one")]
    State {
        /// The target's name.
        path: String,
        /// The target's kind.
        kind: &'static str,
        /// The wanted state.
        wanted: String,
    },
    /// The place of one of lowlat's own files is taken by something else.
    #[error(
        "cannot open {path}: found {found}, expected {expected}\nhint: lowlat follows no link there; remove it"
    )]
    Planted {
        /// The path.
        path: String,
        /// What exists there.
        found: &'static str,
        /// What lowlat would have created.
        expected: &'static str,
    },
    /// Other users could write to a directory of lowlat, and so decide what a rollback restores.
    #[error(
        "cannot use {path}: it belongs to user {uid} with mode {mode:04o}, expected the caller or root, and no write \
         permission for others\nhint: run as user {uid}, or move the directory away"
    )]
    NotPrivate {
        /// The directory.
        path: String,
        /// Its owner.
        uid: u32,
        /// Its permission bits.
        mode: u32,
    },
    /// The writer would write to the live host without being asked to.
    #[error("{path} is the root of the running host; use Writer::live to allow that")]
    Live {
        /// The path given.
        path: String,
    },
}

impl HostError {
    pub(super) fn io(doing: &'static str, path: &str, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.to_owned(), source: source.into() }
    }

    /// Whether the target itself rejected this one change permanently: the kernel manages that interrupt, the
    /// driver has no such option, the device was removed. A full disk, an interrupted call or a dangling path
    /// do not count.
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

/// Why the undo log rejected a call, or a plan failed.
#[derive(Debug, Error)]
pub enum UndoError {
    /// An access failed before anything was changed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Another process is using the log.
    #[error("cannot use {path}: {holder} is using it\nhint: wait until that process ends, or stop it")]
    Locked {
        /// The lock file.
        path: String,
        /// Process number and name, as the holder wrote it.
        holder: String,
    },
    /// The log was written by a later version, or is not a log.
    #[error(
        "cannot read {path}: found {found}, expected a segment of an undo log, version 1\nhint: use the version \
         that wrote it"
    )]
    Format {
        /// The segment.
        path: String,
        /// What was found.
        found: String,
    },
    /// Records that were once durable cannot be read.
    #[error(
        "cannot rely on the undo log: {0}\nhint: restore the known steps with `lowlat tune rollback \
         --accept-damage` first"
    )]
    Damaged(Damage),
    /// An append failed earlier, and its bytes could not be removed.
    #[error(
        "cannot write {path}: an earlier append failed and its bytes could not be removed\nhint: run the \
         command again"
    )]
    Poisoned {
        /// The segment.
        path: String,
    },
    /// The log was opened for reading only.
    #[error("cannot append a record to {path}: the log was opened for reading")]
    ReadOnly {
        /// The log.
        path: String,
    },
    /// A plan was started and has not ended.
    #[error(
        "cannot apply another plan: plan {plan} was applied only in part\nhint: apply it again to complete it, \
         or roll it back"
    )]
    Unfinished {
        /// That plan.
        plan: String,
    },
    /// The same plan was started with other steps, or a file was changed since.
    #[error(
        "cannot resume plan {plan}: its step {step} differs from the undo log, or its file was changed since\nhint: \
         use a new plan ID"
    )]
    PlanDiffers {
        /// The plan.
        plan: String,
        /// The step.
        step: String,
    },
    /// Two steps have the same ID, or change the same target.
    #[error(
        "cannot apply the plan: its steps {first} and {second} have the same {what}\nhint: make a new plan"
    )]
    Twice {
        /// The earlier step.
        first: String,
        /// The later one.
        second: String,
        /// What they share.
        what: &'static str,
    },
    /// The log has no plan with this ID.
    #[error("cannot find plan {plan} in the undo log\nhint: `lowlat tune status` lists the known plans")]
    UnknownPlan {
        /// The id asked for.
        plan: String,
    },
    /// The host is not in the state that the plan found. Nothing was changed.
    #[error(
        "cannot apply the plan: the host has changed since it was made:\n{}\nhint: make a new plan",
        lines(.0)
    )]
    Conflicts(Vec<Conflict>),
    /// A step failed. The earlier ones were rolled back as the report says.
    #[error("step {step} failed: {reason}; {rolled_back}")]
    Step {
        /// The step.
        step: String,
        /// Why.
        reason: String,
        /// Result for the earlier steps.
        rolled_back: Box<RollbackReport>,
    },
}

fn lines(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
