//! The undo log: lowlat's changes to a host, and how to roll them back.
//!
//! A change of a host has four stages, each durable before the next:
//!
//! ```text
//! keep the old content  ->  record the intention  ->  change the host  ->  read back, record "done"
//! contents/HASH             segment-N                 atomically           segment-N
//! fsync, rename, fsync      write, fsync              fsync, rename, fsync write, fsync
//! ```
//!
//! So at any moment of a crash the log shows for every step whether it may have happened, and the host shows
//! whether it has: a target is in its old or its new state, never in between. From there a plan can be finished
//! ([`UndoLog::apply`] with the same plan) or rolled back ([`UndoLog::rollback_where`]).
//!
//! Content of the directory (mode 0700, because stored contents may be secret; [`PrivateDirectory`] rejects
//! links, and directories that others own or may write to):
//!
//! ```text
//! /var/lib/lowlat/undo
//!   lock                 held by flock(2) while a process has the log; says which one
//!   segment-00000001     records; their bytes are shown below
//!   contents/9f86d0...   contents of files before and after, named by their SHA-256
//! ```
//!
//! Rules:
//! * No step overwrites an unknown state. Apply and rollback continue only from the old or the new state.
//!   Anything else is an edit from outside, and is reported with all three states ([`Conflict`]).
//! * "Does not exist" is a state. A file that lowlat created is removed, and so are the directories it
//!   created, if empty.
//! * Records have checksums and numbers. The torn end of a crash is ignored and reported. Damage is
//!   reported, ends the usable part, and prevents new plans until it is accepted.
//! * A shortened, exchanged or deleted log is detected through a mark of its end that is stored elsewhere
//!   ([`LogMark`]).
//! * Values of the kernel that are named by number (an interrupt, a thread) are recorded as expired after a restart,
//!   and never restored. The first state of lasting names is kept: if a file (sysctl.d, udev) set lowlat's value again
//!   at boot, it is restored, and a third value is reported.
//! * Between the check and the rename another program can still write: Linux has no compare-and-rename.
//!   That window is a few system calls long.
//!
//! A rollback restores bytes, owner, group, mode, modification time, absence, a link's target, owner and
//! time, and extended attributes that may be read and set. It does not restore inode numbers, access and
//! status-change times, or times of directories. Files with several hard links are rejected, because their
//! names could not be joined again.
#![doc = ""]
#![doc = include_str!("format.md")]

mod apply;
mod choose;
mod compact;
mod directory;
mod early;
mod error;
mod expire;
mod history;
mod lock;
mod log;
mod mark;
mod place;
mod preview;
mod record;
mod replace;
mod rollback;
mod segment;
mod state;
mod store;
mod target;
#[cfg(any(test, feature = "testing"))]
mod testing;
#[cfg(test)]
mod tests;
mod writer;

pub use apply::{ApplyReport, OnFailure, UndoStep};
pub use directory::PrivateDirectory;
pub use error::{HostError, UndoError};
pub use history::{Entry, History, PlanEntry, Progress};
pub use log::UndoLog;
pub use mark::{LogMark, LogMismatch};
pub use preview::{Restoration, RollbackPreview};
pub use record::{Event, LoggedState, Record, TargetSpec};
pub use rollback::{Conflict, Left, RollbackReport};
pub use segment::{Inspection, LogDamage, TornTail};
pub use state::{Comparison, FILE_BYTES_MAX, FileState, FileTime, State, VALUE_BYTES_MAX};
pub use target::Target;
pub use target::{Fault, FaultPlan, Faults};
pub use writer::Writer;
