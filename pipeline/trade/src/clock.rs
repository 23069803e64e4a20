//! The pipeline's clock.

use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds of CLOCK_MONOTONIC: the same clock in all processes of a host, never set back, and
/// slewed only by NTP. Not comparable across hosts. Makes no system call if the kernel's vDSO supports the
/// clock.
#[inline]
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
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
