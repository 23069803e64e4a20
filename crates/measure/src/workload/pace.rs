//! When a process counts its operations, and when it ends.

use rustix::{
    thread::futex,
    time::{ClockId, clock_gettime},
};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// Shortest time between two readings of the clock; one takes some 30 ns.
const CLOCK_EVERY_NS: u64 = 50_000;
/// Most operations between two readings.
const BATCH_MAX: u64 = 1 << 24;

/// What all processes of a run share.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Gate {
    /// Processes that are ready.
    pub ready: AtomicU32,
    /// 1 once they may start.
    go: AtomicU32,
    /// When that was, on the monotonic clock.
    opened_ns: AtomicU64,
}

/// What one process reports.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Slot {
    /// Counted operations.
    pub operations: AtomicU64,
    /// CPU at the end.
    pub cpu: AtomicU32,
    /// Number of the system's error; 0 without one.
    pub errno: AtomicI32,
}

/// Warm-up and measured time.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Uncounted.
    pub warm_up_ns: u64,
    /// Counted.
    pub measured_ns: u64,
}

/// The clock of all processes.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

impl Gate {
    /// Lets all processes start.
    pub fn open(&self) {
        // Relaxed: ordered by the store to `go`.
        self.opened_ns.store(now_ns(), Ordering::Relaxed);
        // Release: pairs with the acquire in `Pace::begin`.
        self.go.store(1, Ordering::Release);
        // A process that does not sleep yet sees the new value.
        let _ = futex::wake(&self.go, futex::Flags::empty(), u32::MAX >> 1);
    }
}

/// The pace of one process. All count in the same window of time, so a process that had no CPU in it counts nothing. An
/// operation counts if it starts in the window, as far as the clock is read often enough to tell. The process reads the clock only as often as needed, so that reading it costs no more than a
/// thousandth of the time.
#[derive(Debug)]
pub struct Pace<'a> {
    gate: &'a Gate,
    slot: &'a Slot,
    times: Times,
    started_ns: u64,
    checked_ns: u64,
    is_counting: bool,
    count: u64,
    /// Operations until the next reading, and between two.
    left: u64,
    batch: u64,
}

impl<'a> Pace<'a> {
    /// A process that has not started.
    pub fn new(gate: &'a Gate, slot: &'a Slot, times: Times) -> Self {
        Self {
            gate,
            slot,
            times,
            started_ns: 0,
            checked_ns: 0,
            is_counting: false,
            count: 0,
            left: 1,
            batch: 1,
        }
    }

    /// Waits until every process is ready. To be called once, before the first operation.
    pub fn begin(&mut self) {
        // Release: pairs with the acquire of the parent, which then opens the gate.
        self.gate.ready.fetch_add(1, Ordering::Release);
        // Acquire: pairs with the release in `open`.
        while self.gate.go.load(Ordering::Acquire) == 0 {
            // Returns on a wake-up, at once if the gate is open, or for a signal.
            let _ = futex::wait(&self.gate.go, futex::Flags::empty(), 0, None);
        }
        // Relaxed: ordered by the load of `go`.
        self.started_ns = self.gate.opened_ns.load(Ordering::Relaxed);
        self.checked_ns = now_ns();
    }

    /// Counts an operation. Returns whether the process goes on.
    pub fn goes_on(&mut self) -> bool {
        self.count += 1;
        self.left -= 1;
        self.left > 0 || self.check()
    }

    #[cold]
    fn check(&mut self) -> bool {
        let now = now_ns();
        let took = now.saturating_sub(self.checked_ns);
        if took < CLOCK_EVERY_NS {
            self.batch = (self.batch * 2).min(BATCH_MAX);
        } else if took > 4 * CLOCK_EVERY_NS {
            self.batch = (self.batch / 2).max(1);
        }
        (self.checked_ns, self.left) = (now, self.batch);
        let elapsed = now.saturating_sub(self.started_ns);
        let is_over = elapsed >= self.times.warm_up_ns + self.times.measured_ns;
        if !self.is_counting && elapsed >= self.times.warm_up_ns {
            // What started before the window does not count.
            (self.is_counting, self.count) = (true, 0);
        }
        if !is_over {
            return true;
        }
        // Relaxed: the parent reads them after it has waited for this process.
        self.slot.operations.store(self.count, Ordering::Relaxed);
        self.slot.cpu.store(u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0), Ordering::Relaxed);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_after_the_warm_up_and_the_clock_is_read_rarely() {
        let (gate, slot) = (Gate::default(), Slot::default());
        let mut pace = Pace::new(&gate, &slot, Times { warm_up_ns: 2_000_000, measured_ns: 20_000_000 });
        gate.open();
        pace.begin();
        let mut all = 1_u64;
        while pace.goes_on() {
            all += 1;
        }
        let counted = slot.operations.load(Ordering::Relaxed);
        assert!(counted > 0 && counted < all && pace.batch > 100, "{counted} of {all}, {}", pace.batch);
        // A process that gets no CPU until the window is over counts nothing.
        let late = Slot::default();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let mut idle = Pace::new(&gate, &late, Times { warm_up_ns: 1_000_000, measured_ns: 2_000_000 });
        idle.begin();
        assert!(!idle.goes_on() && late.operations.load(Ordering::Relaxed) == 0);
        assert_eq!(gate.ready.load(Ordering::Relaxed), 2);
    }
}
