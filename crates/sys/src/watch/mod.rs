//! What a program does with its memory: its mappings, who writes to its pages, who writes to its words.
//!
//! [`Tracer`] stops a program to make a userfaultfd(2) in it, [`PageWatch`] is that descriptor, and [`Breakpoints`] are
//! the processor's own. All of them end with this process, also if it is killed: the kernel then detaches the tracer,
//! and releases the watched pages with the last descriptor.

mod breakpoints;
mod mappings;
mod pages;
#[cfg(target_arch = "x86_64")]
mod tracer;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_tracer.rs"]
mod tracer;
mod written;

pub use breakpoints::{Access, BREAKPOINTS_MAX, Breakpoints, Count, Probe, Spot};
pub use mappings::{Mapping, mappings, program_bytes};
pub use pages::{PageWatch, Write};
pub use tracer::Tracer;
pub use written::WrittenPages;

use std::io;
use thiserror::Error;

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4_096;

/// What happened to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEvent {
    /// A thread is about to end, and waits for [`Tracer::let_end`].
    Ending(u32),
    /// This process has replaced its program by another (execve), and nothing of it is watched any more.
    Replaced(u32),
}

/// Why a program's memory cannot be watched.
#[derive(Debug, Error)]
pub enum WatchError {
    /// This machine's calls and registers are not known here.
    #[error("cannot watch the memory of a program: only supported on x86-64\nhint: use `perf c2c` there")]
    Machine,
    /// No such process.
    #[error("cannot watch process {0}: no such process\nhint: name a running process with --pid")]
    Missing(u32),
    /// Not a program in 64-bit mode.
    #[error("cannot watch process {0}: it is a 32-bit program\nhint: watch a 64-bit build of it")]
    Narrow(u32),
    /// A kernel thread, or a process without memory.
    #[error(
        "cannot watch process {0}: it has no memory of its own\nhint: name a user-space program with --pid"
    )]
    Kernel(u32),
    /// It is stopped, or did not stop in time.
    #[error(
        "cannot watch process {pid}: thread {tid} does not stop\nhint: retry when it does not wait for a child process or a device"
    )]
    Busy {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
    /// A signal has stopped the program.
    #[error("cannot watch process {0}: it is stopped\nhint: continue it with `kill -CONT {0}`")]
    Stopped(u32),
    /// It ended during the start.
    #[error("cannot watch process {0}: it has ended\nhint: watch a program that runs for some seconds")]
    Ended(u32),
    /// Another program traces it.
    #[error("cannot watch process {pid}: process {tracer} traces it\nhint: end that debugger first")]
    Traced {
        /// The process.
        pid: u32,
        /// The tracer.
        tracer: u32,
    },
    /// ptrace(2) is not permitted.
    #[error("cannot watch process {pid}: {source}\nhint: {hint}")]
    Attach {
        /// The process.
        pid: u32,
        /// The system's error.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// Its filter of system calls would stop it.
    #[error(
        "cannot watch process {0}: it filters its system calls (seccomp), and this process may not suspend the filter\nhint: run as root"
    )]
    Filtered(u32),
    /// userfaultfd(2) is refused.
    #[error("cannot make a userfaultfd in process {pid}: {source}\nhint: {hint}")]
    Userfaultfd {
        /// The process.
        pid: u32,
        /// The system's error.
        source: io::Error,
        /// What to do.
        hint: &'static str,
    },
    /// The kernel's userfaultfd lacks what this needs.
    #[error(
        "cannot watch writes: this kernel's userfaultfd reports no exact addresses\nhint: use Linux 5.18 or later"
    )]
    Features,
    /// Another failure.
    #[error("cannot {doing} process {pid}: {source}\nhint: check that it is still running")]
    Call {
        /// "read the memory of".
        doing: &'static str,
        /// The process.
        pid: u32,
        /// The system's error.
        source: io::Error,
    },
}
