//! The clock of a trial, and waiting by it.

use rustix::{
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec, clock_gettime},
};

/// The longest sleep at a time, so that the end of a trial is noticed.
const SLEEP_NS_MAX: u64 = 50_000_000;

/// CLOCK_MONOTONIC in nanoseconds: the same in all processes of a host.
#[inline]
pub fn now_ns() -> u64 {
    ns_of(clock_gettime(ClockId::Monotonic))
}

/// A time of the kernel's in nanoseconds.
pub fn ns_of(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Waits until `due_ns`, spinning or asleep. Returns false if the trial ends first.
pub fn wait_until(due_ns: u64, is_spinning: bool, is_over: impl Fn() -> bool) -> bool {
    loop {
        if is_over() {
            return false;
        }
        let now = now_ns();
        if now >= due_ns {
            return true;
        }
        if is_spinning {
            lowlat_ipc::relax();
            continue;
        }
        let until = due_ns.min(now + SLEEP_NS_MAX);
        let until = Timespec {
            tv_sec: i64::try_from(until / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(until % 1_000_000_000).unwrap_or(0),
        };
        // A signal may end the sleep early: check again.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
    }
}
