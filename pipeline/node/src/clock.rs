//! The pipeline's clock.

use rustix::{
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec, clock_gettime},
};

/// Now, in nanoseconds of CLOCK_MONOTONIC: the same clock in all processes of a host, never set back, and
/// slewed only by NTP. Not comparable across hosts. Makes no system call if the kernel's vDSO supports the
/// clock.
#[inline]
pub fn now_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// A clock in nanoseconds.
#[inline]
pub fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}

/// Sleeps until that time. A signal ends it early.
pub fn sleep_until(then_ns: u64) {
    clock_nanosleep_absolute(ClockId::Monotonic, &timespec(then_ns)).ok();
}

/// Nanoseconds as the type of system calls.
pub fn timespec(ns: u64) -> Timespec {
    let part = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Timespec { tv_sec: part(ns / 1_000_000_000), tv_nsec: part(ns % 1_000_000_000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_advances_and_is_shared_by_threads() {
        let before = now_ns();
        let other = std::thread::spawn(now_ns).join().unwrap();
        assert!(before > 0 && before <= other && other <= now_ns());
    }
}
