//! The work of processes.

use super::pace::Pace;
use lowlat_host::topology::Topology;
use std::io;

/// Kernel objects and memory of one run, with the work of each process on them.
///
/// Processes are forked from a program with several threads, so [`Job::work`] must neither allocate nor lock: it calls
/// the system and works on memory that exists or that it maps.
pub trait Job {
    /// Does the work of a process: calls [`Pace::begin`] once, and [`Pace::goes_on`] after each operation if
    /// [`Job::is_counted`]. Other processes continue until they are killed, or end as soon as their partner has ended.
    ///
    /// # Errors
    /// The system's error, which ends the run.
    fn work(&self, process: usize, pace: &mut Pace<'_>) -> io::Result<()>;

    /// True if a process counts operations, false if it serves one that does.
    fn is_counted(&self, process: usize) -> bool;
}

/// Copies and host that a job is made for.
#[derive(Debug, Clone, Copy)]
pub struct Scale<'a> {
    pub copies: usize,
    pub topology: &'a Topology,
}

/// Result of a system call of the C library that returns -1 for errors.
pub fn done(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
