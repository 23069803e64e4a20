//! Threads that do not belong to what is measured, started from one that is pinned.

use anyhow::{Context, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Where and how a thread runs.
#[derive(Debug, Clone)]
struct Place {
    cpus: CpuSet,
    policy: libc::c_int,
    /// 0 without a real-time policy.
    priority: libc::c_int,
}

/// Runs `start`. Threads that it starts may run on every CPU that the process above this one may, and come before
/// those that spin where these are real-time: below or beside them they would never run on a machine of two CPUs.
pub fn run<T>(start: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let before = Place::now()?;
    let mut apart = before.clone();
    apart.cpus = sched_getaffinity(rustix::process::getppid()).context("cannot see the CPUs of the bench")?;
    if apart.priority > 0 {
        apart.priority += 1;
    }
    apart.take()?;
    let result = start();
    before.take()?;
    result
}

impl Place {
    fn now() -> anyhow::Result<Self> {
        let cpus = sched_getaffinity(None).context("cannot see this thread's CPUs")?;
        let mut parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: both take the calling thread as 0; the second writes into a structure that is alive and borrowed
        // mutably through the call, and of the size that it expects.
        let (policy, result) =
            unsafe { (libc::sched_getscheduler(0), libc::sched_getparam(0, &raw mut parameters)) };
        ensure!(
            policy >= 0 && result == 0,
            "cannot see this thread's priority: {}",
            io::Error::last_os_error()
        );
        Ok(Self { cpus, policy, priority: parameters.sched_priority })
    }

    fn take(&self) -> anyhow::Result<()> {
        sched_setaffinity(None, &self.cpus).context("cannot change this thread's CPUs")?;
        let parameters = libc::sched_param { sched_priority: self.priority };
        // SAFETY: the calling thread as 0; the structure is alive through the call, which only reads it.
        let result = unsafe { libc::sched_setscheduler(0, self.policy, &raw const parameters) };
        ensure!(
            result == 0,
            "cannot run with real-time priority {}: {}; Aeron's threads need one more than what is measured, at most 99",
            self.priority,
            io::Error::last_os_error()
        );
        Ok(())
    }
}
