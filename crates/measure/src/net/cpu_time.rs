//! CPU time of the calling thread, and time in which quotas stopped this process.

use lowlat_host::Reading;
use lowlat_net::pingpong::CpuUse;
use lowlat_sys::{Root, control_group::throttled_ns};
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The start of a batch on the calling thread.
#[derive(Debug)]
pub struct CpuClock {
    cpu: Duration,
    wall: Instant,
}

impl CpuClock {
    /// Starts.
    pub fn start() -> Self {
        Self { cpu: cpu_time(), wall: Instant::now() }
    }

    /// Returns what the thread has used since the start. Call it on the same thread.
    pub fn used(&self) -> CpuUse {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        CpuUse { cpu_ns: ns(cpu_time().saturating_sub(self.cpu)), elapsed_ns: ns(self.wall.elapsed()) }
    }
}

/// For how long quotas had stopped this process's control group, at a moment.
#[derive(Debug)]
pub struct Throttled(Reading<u64>);

impl Throttled {
    /// Reads it.
    pub fn now() -> Self {
        Self(throttled_ns(&Root::live()))
    }

    /// For how long they have stopped it since; 0 if that is not known.
    pub fn elapsed_ns(&self) -> u64 {
        match (&self.0, throttled_ns(&Root::live())) {
            (Reading::Known(from), Reading::Known(to)) => to.saturating_sub(*from),
            _ => 0,
        }
    }
}

fn cpu_time() -> Duration {
    // The kernel's clock never returns a negative time.
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_not_use_and_work_is() {
        let clock = CpuClock::start();
        std::thread::sleep(Duration::from_millis(20));
        let slept = clock.used();
        assert!(slept.elapsed_ns >= 20_000_000 && slept.cpu_ns < slept.elapsed_ns / 2, "{slept:?}");
        let clock = CpuClock::start();
        while clock.used().cpu_ns < 2_000_000 {
            std::hint::spin_loop();
        }
        assert!(clock.used().elapsed_ns >= 2_000_000);
    }
}
