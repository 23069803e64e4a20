//! A program's use of its memory: its mappings, writes to its pages, and accesses to its words.
//!
//! [`Tracer`] stops a program to make a userfaultfd(2) in it, [`PageWatch`] is that descriptor, and [`Breakpoints`] are
//! the processor's own. All of them end with this process, also if it is killed: the kernel then detaches the tracer,
//! and releases the watched pages with the last descriptor.
#![allow(clippy::disallowed_methods, reason = "files of a watched process on the running host")]

mod breakpoints;
pub(crate) mod mappings;
mod pages;
#[cfg(target_arch = "x86_64")]
mod tracer;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_tracer.rs"]
mod tracer;
mod written;

pub use breakpoints::{BREAKPOINTS_MAX, Breakpoints, Counted, Probe, Spot, WatchedAccess};
pub use mappings::{Mapping, mappings, program_bytes};
pub use pages::{PageWatch, Write};
pub use tracer::Tracer;
pub use written::WrittenPages;

use thiserror::Error;

pub const PAGE_BYTES: u64 = 4_096;

/// Event of a traced program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEvent {
    /// A thread is about to end, and waits for [`Tracer::let_end`].
    Ending(u32),
    /// This process has replaced its program by another (execve), and nothing of it is watched any more.
    Replaced(u32),
}

/// Reason why a program's memory cannot be watched.
#[derive(Debug, Error)]
#[error("{text}")]
pub struct WatchError {
    text: String,
    is_nothing_missed: bool,
}

impl WatchError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_nothing_missed: false }
    }

    /// Returns the error for a process that cannot be watched, with its hint.
    fn of(pid: u32, why: &str) -> Self {
        Self::new(format!("cannot watch process {pid}: {why}"))
    }

    /// Returns the same error where there is nothing to watch.
    fn of_nothing(pid: u32, why: &str) -> Self {
        Self { is_nothing_missed: true, ..Self::of(pid, why) }
    }

    /// The process ended during the start.
    pub fn ended(pid: u32) -> Self {
        Self::of_nothing(pid, "it has ended\nhint: watch a program that runs for some seconds")
    }

    /// True if there was nothing to watch: the process is gone, or has no memory of its own.
    pub fn is_nothing_missed(&self) -> bool {
        self.is_nothing_missed
    }
}
