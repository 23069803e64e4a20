//! The pipeline's clock.

use rustix::time::{ClockId, clock_gettime};

/// Now, in nanoseconds of CLOCK_MONOTONIC: the same clock in all processes of a host, never set back, not slewed by
/// more than NTP does. It says nothing across hosts. No system call where the kernel's vDSO knows the clock.
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
    fn it_goes_on_and_is_shared_by_threads() {
        let before = now_ns();
        let other = std::thread::spawn(now_ns).join().unwrap();
        assert!(before > 0 && before <= other && other <= now_ns());
    }
}
