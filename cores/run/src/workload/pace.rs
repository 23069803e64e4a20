//! Decides when a process counts its operations, and when it ends.

use rustix::{
    thread::futex,
    time::{ClockId, clock_gettime},
};
use std::{
    io,
    sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering},
};

/// Shortest time between two readings of the clock; one takes some 30 ns.
const CLOCK_EVERY_NS: u64 = 50_000;
/// Most operations between two readings.
const BATCH_MAX: u64 = 1 << 24;

/// State that all processes of a run share.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct StartGate {
    /// Number of processes that are ready.
    pub ready: AtomicU32,
    /// 1 once they may start.
    go: AtomicU32,
    /// Time when the gate opened, on the monotonic clock.
    opened_ns: AtomicU64,
}

/// The class of a time: sixteen for each power of two.
pub fn class_of(ns: u64) -> usize {
    let ns = ns.max(16);
    let shift = ns.ilog2() - 4;
    usize::try_from(u64::from(shift) * 16 + (ns >> shift)).unwrap_or(0)
}

/// The middle of a class.
pub fn class_ns(class: usize) -> f64 {
    let shift = (class / 16).saturating_sub(1);
    ((class % 16 + 16) as f64 + 0.5) * 2_f64.powi(i32::try_from(shift).unwrap_or(0))
}

/// Results that one process reports.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct ResultSlot {
    pub operations: AtomicU64,
    /// CPU on which it ended.
    pub cpu: AtomicU32,
    /// Number of the system's error; 0 without one.
    pub errno: AtomicI32,
    /// Sampled operations by the class of their time, flattened.
    pub times: [[AtomicU32; 32]; 32],
}

#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Time before operations are counted.
    pub warm_up_ns: u64,
    /// Time in which operations are counted.
    pub measured_ns: u64,
}

/// The clock of all processes.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

impl StartGate {
    /// Opens the gate: all processes start.
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
/// operation counts if it starts in the window, as precisely as the readings of the clock show. The process reads the
/// clock only as often as needed, so that reading it costs no more than a thousandth of the time.
#[derive(Debug)]
pub struct Pace<'a> {
    gate: &'a StartGate,
    slot: &'a ResultSlot,
    times: Times,
    started_ns: u64,
    checked_ns: u64,
    is_counting: bool,
    count: u64,
    /// Operations until the next reading of the clock.
    left: u64,
    /// Operations between two readings.
    batch: u64,
    /// One operation alone runs until the next reading, so that its time is known.
    is_sample: bool,
}

impl<'a> Pace<'a> {
    /// A process that has not started.
    pub fn new(gate: &'a StartGate, slot: &'a ResultSlot, times: Times) -> Self {
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
            is_sample: false,
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

    /// Counts an operation. Returns whether the process continues.
    pub fn goes_on(&mut self) -> bool {
        self.count += 1;
        self.left -= 1;
        self.left > 0 || self.check()
    }

    /// Counts an operation again and again, until the time is over.
    pub fn count(&mut self, mut operation: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        self.begin();
        loop {
            operation()?;
            if !self.goes_on() {
                return Ok(());
            }
        }
    }

    /// Serves a process that counts.
    pub fn serve(&mut self, mut operation: impl FnMut() -> io::Result<()>) -> io::Result<()> {
        self.begin();
        loop {
            operation()?;
        }
    }

    #[cold]
    fn check(&mut self) -> bool {
        let now = now_ns();
        let took = now.saturating_sub(self.checked_ns);
        if self.is_sample {
            if self.is_counting
                && let Some(times) = self.slot.times.as_flattened().get(class_of(took))
            {
                // Relaxed: the parent reads it after it has waited for this process.
                times.fetch_add(1, Ordering::Relaxed);
            }
        } else if took < CLOCK_EVERY_NS {
            self.batch = (self.batch * 2).min(BATCH_MAX);
        } else if took > 4 * CLOCK_EVERY_NS {
            self.batch = (self.batch / 2).max(1);
        }
        // A batch, then one alone.
        self.is_sample = !self.is_sample;
        (self.checked_ns, self.left) = (now, if self.is_sample { 1 } else { self.batch });
        let elapsed = now.saturating_sub(self.started_ns);
        let is_over = elapsed >= self.times.warm_up_ns + self.times.measured_ns;
        if !self.is_counting && elapsed >= self.times.warm_up_ns {
            // Operations that started before the window do not count.
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
        let (gate, slot) = (StartGate::default(), ResultSlot::default());
        gate.open();
        // Other work may take the CPU for a whole window.
        let mut windows_ns = (1..).zip([20_000_000, 200_000_000, 2_000_000_000]);
        let (begun_count, pace, all, counted) = loop {
            let (begun_count, measured_ns) = windows_ns.next().expect("a count");
            let times = Times { warm_up_ns: 2_000_000, measured_ns };
            let mut pace = Pace::new(&gate, &slot, times);
            pace.begin();
            let mut all = 1_u64;
            while pace.goes_on() {
                all += 1;
            }
            let counted = slot.operations.load(Ordering::Relaxed);
            if counted > 0 {
                break (begun_count, pace, all, counted);
            }
        };
        assert!(counted < all && pace.batch > 100, "{counted} of {all}, {}", pace.batch);
        let samples: u32 = slot.times.as_flattened().iter().map(|of| of.load(Ordering::Relaxed)).sum();
        assert!(samples > 1 && u64::from(samples) < counted, "{samples} of {counted}");
        for ns in [16, 17, 100, 999, 5_000, 1 << 40] {
            let middle = class_ns(class_of(ns));
            assert!((middle / ns as f64 - 1.0).abs() < 0.04, "{ns}: {middle}");
        }
        assert!(class_of(u64::MAX) < slot.times.as_flattened().len() && class_of(0) == 16);
        // A process that gets no CPU until the window is over counts nothing.
        let late = ResultSlot::default();
        std::thread::sleep(std::time::Duration::from_millis(5));
        let mut idle = Pace::new(&gate, &late, Times { warm_up_ns: 1_000_000, measured_ns: 2_000_000 });
        idle.begin();
        assert!(!idle.goes_on() && late.operations.load(Ordering::Relaxed) == 0);
        assert_eq!(gate.ready.load(Ordering::Relaxed), begun_count + 1);
    }
}
