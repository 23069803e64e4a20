//! Why a change cannot be made, or cannot be undone. Every text names the path and the next step.

use super::{Conflict, Damage, RollbackReport};
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// Why one access to the host or to the log failed.
#[derive(Debug, Error)]
pub enum HostError {
    /// The system refused an operation.
    #[error("{path}: cannot {doing}: {source}{}", advice(.source))]
    Io {
        /// What was attempted: "rename", "fsync".
        doing: &'static str,
        /// On which file, as the host names it.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel did not take a value that was written to one of its attributes.
    #[error("{path}: the kernel does not take the value: {source}{}", advice_of_kernel(.source))]
    Attribute {
        /// The attribute, as the host names it.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// What was to be changed did not become what was wanted, without an error number: it reads back differently, or
    /// a service said no.
    #[error("{path}: {what}")]
    Refused {
        /// The target's name.
        path: String,
        /// What came of it: "wrote "7", read back "0"".
        what: String,
    },
    /// A path that is not absolute, or contains `.`, `..` or an empty name, or a NUL.
    #[error("{path:?} is no path of a host; expected an absolute path without \".\", \"..\" and empty names")]
    Path {
        /// The path.
        path: String,
    },
    /// A symbolic link leads above the root.
    #[error("{path}: the link at {link} leads out of the root; lowlat does not follow it, correct the link")]
    Outside {
        /// The path asked for.
        path: String,
        /// The link, as the host names it.
        link: String,
    },
    /// Links that lead in a circle, or a path too deep.
    #[error("{path}: more than 40 links or 256 directories on the way; correct the links")]
    Links {
        /// The path asked for.
        path: String,
    },
    /// The place holds something that is not replaced: a directory, a device, a pipe.
    #[error("{path} is {found}, expected {expected}; move it away, or leave this step out")]
    Kind {
        /// The path.
        path: String,
        /// What is there.
        found: &'static str,
        /// What would be right.
        expected: &'static str,
    },
    /// More bytes than the log keeps.
    #[error("{path}: {bytes} bytes or more, and the undo log keeps {bytes_max} at most; leave this step out")]
    TooLarge {
        /// What is too large: a file, or the log's store as a whole.
        path: String,
        /// Its size.
        bytes: u64,
        /// The bound.
        bytes_max: u64,
    },
    /// A value that is no text.
    #[error("{path}: found {raw:?}, expected text in UTF-8; leave this step out")]
    NotText {
        /// The file.
        path: String,
        /// What was read, with replacement characters.
        raw: String,
    },
    /// A kept content does not have the hash it is named by.
    #[error(
        "{path}: the kept content is damaged (its SHA-256 differs from its name); restore it from a backup"
    )]
    Content {
        /// The file in the store.
        path: String,
    },
    /// A target that this build does not know, named by the log.
    #[error(
        "the undo log names a target of kind {kind:?}, which this version does not know; use the version that wrote it"
    )]
    UnknownKind {
        /// The kind.
        kind: String,
    },
    /// The state asked for is none that the target can have.
    #[error("{path}: a {kind} cannot become {wanted}; this plan is wrong, make a new one")]
    State {
        /// The target's name.
        path: String,
        /// The target's kind.
        kind: &'static str,
        /// What was wanted.
        wanted: String,
    },
    /// Something else is in the place of one of lowlat's own files.
    #[error(
        "cannot open {path}: found {found}, expected {expected}\nhint: lowlat follows no link there; remove it"
    )]
    Planted {
        /// The path.
        path: String,
        /// What is there.
        found: &'static str,
        /// What lowlat would have made.
        expected: &'static str,
    },
    /// Others could write to a directory of lowlat's own, and so decide what a rollback restores.
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
    /// The writer would write to the live host unasked.
    #[error("{path} is the root of the running host; use Writer::live, which says so")]
    Live {
        /// The path given.
        path: String,
    },
}

impl HostError {
    pub(super) fn io(doing: &'static str, path: &str, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.to_owned(), source: source.into() }
    }

    /// Whether the thing itself said no, for good and to this one change: the kernel manages that interrupt, the driver
    /// has no such option, the device is gone. A full disk, an interrupted call or a path that leads nowhere are not.
    ///
    /// It speaks of what a [`Target`](super::Target) meets at what it changes. On a file of a disk the same numbers
    /// mean another thing (EIO: the disk is failing); there nothing counts as a refusal.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { .. } => true,
            Self::Attribute { source, .. } => {
                // Of an attribute this is no disk: a CPU has no interrupt vector left, or a pool no page.
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
        Some(Errno::PERM | Errno::ACCESS) => "; run as root, and look for lockdown in the kernel's log",
        Some(Errno::IO) => "; an interrupt that the kernel manages itself answers so",
        Some(Errno::NOSPC) => "; for an interrupt: those CPUs have no vector left",
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

/// Why the undo log refused, or a plan failed.
#[derive(Debug, Error)]
pub enum UndoError {
    /// An access failed before anything was changed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// Another process has the log.
    #[error("{path} is in use by {holder}; wait until it ends, or end it")]
    Locked {
        /// The lock file.
        path: String,
        /// Process number and name, as the holder wrote it.
        holder: String,
    },
    /// The log was written by a later version, or is none.
    #[error(
        "{path}: found {found}, expected a segment of an undo log, version 1; use the version that wrote it"
    )]
    Format {
        /// The segment.
        path: String,
        /// What was found.
        found: String,
    },
    /// Records that were once durable cannot be read.
    #[error("{0}; roll back what is known, then accept the damage, before anything new is applied")]
    Damaged(Damage),
    /// An append failed earlier, and what it left could not be taken back.
    #[error("{path}: an earlier append failed and its rest could not be removed; open the log again")]
    Poisoned {
        /// The segment.
        path: String,
    },
    /// The log was opened to look at it only.
    #[error("{path}: cannot append a record: the log was opened for reading")]
    ReadOnly {
        /// The log.
        path: String,
    },
    /// A plan began and did not end.
    #[error("plan {plan} is not finished; apply it again to finish it, or roll it back")]
    Unfinished {
        /// That plan.
        plan: String,
    },
    /// The same plan was begun with other steps, or somebody else has changed a file since.
    #[error(
        "step {step} of plan {plan} differs from the one in the undo log, or somebody else has changed its file since; \
         it needs a plan id of its own"
    )]
    PlanDiffers {
        /// The plan.
        plan: String,
        /// The step.
        step: String,
    },
    /// Two steps have one id, or change one thing.
    #[error(
        "steps {first} and {second} of the plan have the same {what}; this plan is wrong, make a new one"
    )]
    Twice {
        /// The earlier step.
        first: String,
        /// The later one.
        second: String,
        /// What they share.
        what: &'static str,
    },
    /// No plan of this id is in the log.
    #[error("the undo log knows no plan {plan}; the status lists the plans it knows")]
    UnknownPlan {
        /// The id asked for.
        plan: String,
    },
    /// The host is not as the plan found it. Nothing was changed.
    #[error("the host has changed since the plan was made, nothing was changed now:\n{}\nmake a new plan", lines(.0))]
    Conflicts(Vec<Conflict>),
    /// A step failed; what the plan had done was taken back as the report says.
    #[error("step {step} failed: {reason}; {rolled_back}")]
    Step {
        /// The step.
        step: String,
        /// Why.
        reason: String,
        /// What became of the steps before it.
        rolled_back: Box<RollbackReport>,
    },
}

fn lines(conflicts: &[Conflict]) -> String {
    conflicts.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
