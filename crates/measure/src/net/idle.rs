//! Keeps CPUs out of idle states during a run.

use rustix::{
    fs::{Mode, OFlags, open},
    io::write,
};
use std::os::fd::OwnedFd;

const FILE: &str = "/dev/cpu_dma_latency";

/// Holds every CPU of the host out of idle states while it lives. The kernel ends it with the process.
#[derive(Debug)]
pub struct IdleHold(#[expect(dead_code, reason = "the kernel counts the open file")] OwnedFd);

impl IdleHold {
    /// Asks the kernel for wake-ups without latency.
    ///
    /// # Errors
    /// A sentence with the cause.
    pub fn new() -> Result<Self, String> {
        let failed = |error| format!("Idle states could not be held off: cannot write {FILE}: {error}.");
        let file = open(FILE, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        // A 32-bit number of microseconds.
        write(&file, &0_u32.to_ne_bytes()).map_err(failed)?;
        Ok(Self(file))
    }
}
