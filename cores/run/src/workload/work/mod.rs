//! The work of lowlat's own workloads.

pub mod cache;
pub mod compute;
pub mod eventfd;
pub mod fork_exec;
pub mod futex;
pub mod msg_posix;
pub mod msg_sysv;
pub mod pipe;
pub mod sem_posix;
pub mod sem_sysv;

use std::io;

/// Result of a system call of the C library that returns -1 for errors.
pub fn done(result: i64) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
