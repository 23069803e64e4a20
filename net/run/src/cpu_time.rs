//! CPU time of the calling thread.

use lowlat_net::pingpong::CpuUse;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The start of a batch on the calling thread.
#[derive(Debug)]
pub struct CpuClock {
    cpu: Duration,
    wall: Instant,
}

impl CpuClock {
    pub fn start() -> Self {
        Self { cpu: cpu_time(), wall: Instant::now() }
    }

    /// Returns what the thread has used since the start. Call it on the same thread.
    pub fn used(&self) -> CpuUse {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        CpuUse { cpu_ns: ns(cpu_time().saturating_sub(self.cpu)), elapsed_ns: ns(self.wall.elapsed()) }
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
