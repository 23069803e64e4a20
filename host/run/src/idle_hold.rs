//! Keeps CPUs out of idle states.

use rustix::{
    fs::{Mode, OFlags, open},
    io::{self, write},
};
use std::os::fd::OwnedFd;

/// File that takes the highest latency with which CPUs may leave idle states
/// (Documentation/power/pm_qos_interface.rst).
pub const FILE: &str = "/dev/cpu_dma_latency";

/// Keeps every CPU of the host out of idle states as long as it exists. The kernel ends it with the process.
#[derive(Debug)]
pub struct IdleHold(#[expect(dead_code, reason = "the kernel counts the open file")] OwnedFd);

impl IdleHold {
    /// Asks the kernel for a latency of 0 us.
    ///
    /// # Errors
    /// The system's error: the file belongs to root.
    pub fn new() -> io::Result<Self> {
        let file = open(FILE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        // A 32-bit number of microseconds.
        write(&file, &0_i32.to_ne_bytes())?;
        Ok(Self(file))
    }
}
