//! Threads that do not belong to what is measured, started from one that is pinned.

use anyhow::Context;
use lowlat_host_run::scheduling::{Scheduling, scheduling, set_scheduling};
use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_setaffinity};

/// CPUs and scheduling policy of a thread.
#[derive(Debug, Clone)]
struct Place {
    cpus: CpuSet,
    scheduling: Scheduling,
}

/// Runs `start`. Threads that it starts may run on every CPU of the parent process, and have a higher priority than the
/// spinning threads if those are real-time: otherwise they would never run on a machine of two CPUs.
pub fn run<T>(start: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let before = Place::now()?;
    let mut apart = before.clone();
    apart.cpus = sched_getaffinity(rustix::process::getppid()).context("cannot see the CPUs of the bench")?;
    if apart.scheduling.priority > 0 {
        apart.scheduling.priority += 1;
    }
    apart.take()?;
    let result = start();
    before.take()?;
    result
}

/// The calling thread, by its number.
fn tid() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

impl Place {
    fn now() -> anyhow::Result<Self> {
        let cpus = sched_getaffinity(None).context("cannot see this thread's CPUs")?;
        let scheduling = scheduling(tid()).context("cannot see this thread's priority")?;
        Ok(Self { cpus, scheduling })
    }

    fn take(&self) -> anyhow::Result<()> {
        sched_setaffinity(None, &self.cpus).context("cannot change this thread's CPUs")?;
        set_scheduling(tid(), &self.scheduling).with_context(|| {
            format!(
                "cannot run as {}: Aeron's threads need one priority more than what is measured, at most 99",
                self.scheduling
            )
        })
    }
}
