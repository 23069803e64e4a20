//! The undo log: what lowlat changed on a host, and the way back.
//!
//! A change of a host goes through four stages, each durable before the next:
//!
//! ```text
//! keep the old content  ->  record the intention  ->  change the host  ->  read back, record "done"
//! contents/HASH             segment-N                 atomically           segment-N
//! fsync, rename, fsync      write, fsync              fsync, rename, fsync write, fsync
//! ```
//!
//! So at any moment of a crash the log tells, of every step, whether it may have happened, and the host itself tells
//! whether it has: a target is in its old or its new state, never between. From there both ways are open, finishing
//! ([`UndoLog::apply`] with the same plan) and going back ([`UndoLog::rollback_where`]).
//!
//! What is in the directory (mode 0700, for kept contents may be secret where they came from; [`PrivateDirectory`] refuses links, and
//! directories that others own or may write to):
//!
//! ```text
//! /var/lib/lowlat/undo
//!   lock                 held by flock(2) while a process has the log; says which one
//!   segment-00000001     records; their bytes are shown below
//!   contents/9f86d0...   contents of files before and after, named by their SHA-256
//! ```
//!
//! Rules that keep it honest:
//! * No step overwrites what it does not know. Apply and rollback go on only from the old or the new state; anything
//!   else is somebody's edit, and is shown with all three states ([`Conflict`]).
//! * "Nothing was there" is a state. A file that lowlat made is removed, with the directories it made, if empty.
//! * Records carry checksums and numbers. The torn end of a crash is passed over and told; damage is told, ends the
//!   part that is used, and stops new plans until it is accepted.
//! * A log that was shortened, exchanged or deleted shows by a mark of its end that is kept elsewhere ([`LogMark`]).
//! * What a restart of the host took away (values of the kernel) is recorded as gone, and never put back.
//! * Between looking and renaming another program can still write: Linux has no compare-and-rename. That moment is
//!   some system calls long.
//!
//! Restored are bytes, owner, group, mode, modification time, absence, a link's target, owner and time, and those
//! extended attributes that may be read and set. Not restored are inode numbers, times of access and of status, and
//! times of directories. Files with several hard links are refused, since their names could not be joined again.
#![doc = ""]
#![doc = include_str!("format.md")]

mod apply;
mod choose;
mod compact;
mod directory;
mod early;
mod error;
mod expire;
mod faults;
mod hash;
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
#[cfg(test)]
mod tests;
mod writer;

pub use apply::{ApplyReport, OnFailure, Step};
pub use directory::PrivateDirectory;
pub use error::{HostError, UndoError};
pub use faults::Faults;
pub use history::{Entry, History, PlanEntry, Progress};
pub use log::{DEFAULT_DIRECTORY, Inspection, UndoLog};
pub use mark::{LogMark, LogMismatch};
pub use preview::{Restoration, RollbackPreview};
pub use record::{Event, LoggedState, Record, TargetSpec};
pub use rollback::{Conflict, Left, RollbackReport};
pub use segment::{Damage, TornTail};
pub use state::{Comparison, FILE_BYTES_MAX, FileState, FileTime, State, VALUE_BYTES_MAX};
pub use store::STORE_BYTES_MAX;
pub use target::Target;
pub use writer::Writer;
