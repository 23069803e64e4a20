//! POSIX semaphores.

use crate::workload::{Kind, Workload, WorkloadError, WorkloadJob, shared::Shared, work::done};
use rustix::time::Timespec;
use std::cell::UnsafeCell;

pub const WORKLOAD: Workload = Workload {
    name: "sem-posix",
    about: "processes take and give one POSIX semaphore",
    unit: "operations",
    kind: Kind::Processes { per_copy: 1, make: |_| make(false) },
};
pub const PAUSING: Workload = Workload {
    name: "sem-posix-pause",
    about: "sem-posix with a sched_yield or a sleep of 0 after each operation, in turn, as stress-ng --sem",
    unit: "operations",
    kind: Kind::Processes { per_copy: 1, make: |_| make(true) },
};

struct Semaphore(UnsafeCell<libc::sem_t>);

// SAFETY: processes and threads use it through the C library's calls alone, which are made for that.
unsafe impl Sync for Semaphore {}
// SAFETY: it stays where it is, in shared memory; moving what refers to it is no problem.
unsafe impl Send for Semaphore {}

fn make(is_pausing: bool) -> Result<WorkloadJob, WorkloadError> {
    let error = WorkloadError::cannot("make a POSIX semaphore");
    // SAFETY: plain data, which sem_init fills.
    let memory =
        Shared::new(1, || Semaphore(UnsafeCell::new(unsafe { std::mem::zeroed() }))).map_err(&error)?;
    let semaphore = move || memory.first().map_or(std::ptr::null_mut(), |semaphore| semaphore.0.get());
    // SAFETY: the semaphore is in memory that forked processes share, and nobody uses it yet.
    done(unsafe { libc::sem_init(semaphore(), 1, 1) }.into()).map_err(&error)?;
    Ok(Box::new(move |_, _, pace| {
        let mut is_sleep = false;
        pace.count(|| {
            // SAFETY: the semaphore is initialised and mapped as long as the closure that owns its memory.
            done(unsafe { libc::sem_wait(semaphore()) }.into())?;
            // SAFETY: as above.
            done(unsafe { libc::sem_post(semaphore()) }.into())?;
            if is_pausing {
                pause(is_sleep);
                is_sleep = !is_sleep;
            }
            Ok(())
        })
    }))
}

/// Yields the CPU, or sleeps for as short as the kernel can: a sleep of 0 takes the timer's slack.
fn pause(is_sleep: bool) {
    if is_sleep {
        // A signal ends it early, which is as good.
        let _ = rustix::thread::nanosleep(&Timespec { tv_sec: 0, tv_nsec: 0 });
    } else {
        rustix::thread::sched_yield();
    }
}
