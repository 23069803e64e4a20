//! The pipeline's clock: CLOCK_MONOTONIC, or the time of the recording in a run over one.
//!
//! ```text
//! words of the master's page
//!   1  pace: 0 CLOCK_MONOTONIC, all ones stepped, else the bits of a float: how many times as fast as recorded
//!   2  the run's time, ns: when it started to run; the present one if it is stepped
//!   3  CLOCK_MONOTONIC when it started to run, ns; 0 before
//! ```

use crate::Memory;
use lowlat_ipc::region::Region as _;
use rustix::{
    thread::clock_nanosleep_absolute,
    time::{ClockId, Timespec, clock_gettime},
};
use std::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering},
};

const PACE: usize = 1;
const TIME: usize = 2;
const START: usize = 3;
const STEPPED: u64 = u64::MAX;

/// The clock of the run that this process joined last; null: CLOCK_MONOTONIC.
static CLOCK: AtomicPtr<RunClock> = AtomicPtr::new(ptr::null_mut());

/// Now, in nanoseconds of the pipeline's clock. It is CLOCK_MONOTONIC, unless the run that this process joined last is
/// one over a recording: then it is the time of the recording.
#[inline]
pub fn now_ns() -> u64 {
    // Acquire: pairs with the store in `RunClock::adopt`.
    let clock = CLOCK.load(Ordering::Acquire);
    if clock.is_null() { monotonic_ns() } else { of_run(clock) }
}

#[cold]
fn of_run(clock: *const RunClock) -> u64 {
    // SAFETY: `RunClock::adopt` stores only pointers of leaked boxes, which are never written or freed.
    unsafe { &*clock }.now_ns()
}

/// Now, in nanoseconds of CLOCK_MONOTONIC: the same clock in all processes of a host, never set back, and
/// slewed only by NTP. Not comparable across hosts. Makes no system call if the kernel's vDSO supports the
/// clock.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// How the time of a run over a recording passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// This many times as fast as it was recorded.
    Times(f64),
    /// Its master moves it on when every node waits: as fast as the nodes work, and the same in every run.
    Stepped,
}

/// The clock of a run over a recording, in its master's page.
#[derive(Debug, Clone)]
pub struct RunClock {
    page: Memory,
    /// `None` if it is stepped.
    times: Option<f64>,
}

impl RunClock {
    /// Master: makes the page's clock, which stands at a time until [`RunClock::start`].
    pub fn create(page: &Memory, passes: Pace, time_ns: u64) -> Option<Self> {
        let word = match passes {
            Pace::Times(times) => times.to_bits(),
            Pace::Stepped => STEPPED,
        };
        for (at, value) in [(PACE, word), (TIME, time_ns)] {
            // Relaxed: before the page is shared.
            page.words().get(at)?.store(value, Ordering::Relaxed);
        }
        Self::of(page)
    }

    /// The clock of a master's page; `None` if its run has CLOCK_MONOTONIC.
    pub fn of(page: &Memory) -> Option<Self> {
        // Relaxed: set before the page was shared.
        let times = match page.words().get(PACE)?.load(Ordering::Relaxed) {
            0 => return None,
            STEPPED => None,
            bits => Some(f64::from_bits(bits)).filter(|times| times.is_finite() && *times > 0.0),
        };
        (page.words().len() > START).then(|| Self { page: page.clone(), times })
    }

    /// Makes it, or without one CLOCK_MONOTONIC, the clock of this process. What it replaces is kept: a thread may be
    /// reading it.
    pub(crate) fn adopt(clock: Option<&Self>) {
        let clock = clock.map_or(ptr::null_mut(), |clock| Box::into_raw(Box::new(clock.clone())));
        // Pairs with the load in `now_ns`.
        CLOCK.store(clock, Ordering::Release);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.page.words()[at]
    }

    pub fn is_stepped(&self) -> bool {
        self.times.is_none()
    }

    /// Master: from now on its time passes, unless it is stepped.
    pub fn start(&self) {
        // Pairs with the load in `running`.
        self.word(START).store(monotonic_ns(), Ordering::Release);
    }

    /// Master: moves a stepped clock on to a time.
    pub fn step(&self, time_ns: u64) {
        // Pairs with the load in `now_ns`; the node that gets the next turn sees it.
        self.word(TIME).store(time_ns, Ordering::Release);
    }

    /// The pace and start of a clock whose time passes.
    fn running(&self) -> Option<(f64, u64)> {
        // Pairs with the store in `start`.
        let start_ns = self.word(START).load(Ordering::Acquire);
        self.times.filter(|_| start_ns > 0).map(|times| (times, start_ns))
    }

    /// Now, in this clock, ns.
    pub fn now_ns(&self) -> u64 {
        // Pairs with the store in `step`.
        let time_ns = self.word(TIME).load(Ordering::Acquire);
        let passed_ns = self
            .running()
            .map_or(0, |(times, start_ns)| scaled(monotonic_ns().saturating_sub(start_ns), times));
        time_ns.saturating_add(passed_ns)
    }

    /// When it will show this time, in CLOCK_MONOTONIC; `u64::MAX` if that is unknown.
    pub fn monotonic_of(&self, time_ns: u64) -> u64 {
        // Pairs with the store in `step`.
        let after_ns = time_ns.saturating_sub(self.word(TIME).load(Ordering::Acquire));
        match self.running() {
            _ if after_ns == 0 => 0,
            Some((times, start_ns)) if time_ns < u64::MAX => {
                start_ns.saturating_add(scaled(after_ns, times.recip())).saturating_add(1)
            }
            _ => u64::MAX,
        }
    }
}

/// A duration of another pace, exact at the recorded one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "a cast of floats stays in bounds; 1 is exact"
)]
fn scaled(duration_ns: u64, times: f64) -> u64 {
    if times == 1.0 { duration_ns } else { (duration_ns as f64 * times) as u64 }
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

    fn clock(pace: Pace) -> RunClock {
        let memory = Memory::new(lowlat_ipc::region::Memfd::create("page", 4096).unwrap());
        assert!(RunClock::of(&memory).is_none());
        RunClock::create(&memory, pace, 1_000).unwrap()
    }

    #[test]
    fn a_run_s_time_stands_until_it_starts_and_passes_at_its_pace() {
        let tenfold = clock(Pace::Times(10.0));
        assert_eq!((tenfold.now_ns(), tenfold.monotonic_of(1_000)), (1_000, 0));
        assert_eq!(tenfold.monotonic_of(1_001), u64::MAX);
        let before_ns = monotonic_ns();
        tenfold.start();
        let due_ns = tenfold.monotonic_of(1_000 + 10_000_000_000);
        assert!((1_000_000_000..2_000_000_000).contains(&(due_ns - before_ns)), "{before_ns} {due_ns}");
        sleep_until(tenfold.monotonic_of(1_000 + 50_000_000));
        assert!(tenfold.now_ns() >= 1_000 + 50_000_000);
        assert_eq!(tenfold.monotonic_of(u64::MAX), u64::MAX);
    }

    #[test]
    fn a_stepped_clock_moves_only_with_its_master() {
        let stepped = clock(Pace::Stepped);
        stepped.start();
        assert_eq!((stepped.now_ns(), stepped.monotonic_of(2_000)), (1_000, u64::MAX));
        stepped.step(2_000);
        assert_eq!((stepped.now_ns(), stepped.monotonic_of(2_000)), (2_000, 0));
    }
}
