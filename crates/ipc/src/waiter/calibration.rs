//! What a wake costs on this host: measured, since it is 2 us on one and 25 on the other.

use crate::doorbell::{Bell, Futex, Waited};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Rounds at most.
const ROUNDS_MAX: u32 = 1_000;
/// So that the other thread sleeps when it is rung: longer than it takes to go to sleep.
const REST: Duration = Duration::from_micros(300);

/// Wakes as they were measured. It holds for the CPUs that it was measured on, with the load that they had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeCost {
    /// From just before the wake to the first instruction of who was woken; median.
    pub wake_ns: u64,
    /// How long the waking thread was in the system call; median.
    pub call_ns: u64,
    /// Wakes that these are the medians of.
    pub rounds: u32,
}

impl WakeCost {
    /// Wakes a thread so many times (1,000 at most), and takes about 0.3 ms for each. `prepare` is run by that thread first:
    /// it may pin itself to where the subscribers will be. None when it was never found asleep.
    pub fn measure(rounds: u32, prepare: impl FnOnce() + Send) -> Option<Self> {
        let (bell, rung_ns, is_over) = (Bell::default(), AtomicU64::new(0), AtomicBool::new(false));
        let start = Instant::now();
        let now_ns = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (mut wakes, mut calls) = (Vec::new(), Vec::new());
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                prepare();
                let mut wakes = Vec::new();
                while !is_over.load(Ordering::Acquire) {
                    let waited =
                        bell.wait(&Futex, Duration::from_millis(100), || is_over.load(Ordering::Acquire));
                    let woken_ns = now_ns();
                    // Pairs with the store before the bell is rung.
                    let rung_ns = rung_ns.load(Ordering::Acquire);
                    if waited == Waited::Woken && rung_ns > 0 {
                        wakes.push(woken_ns.saturating_sub(rung_ns));
                    }
                }
                wakes
            });
            for _ in 0..rounds.min(ROUNDS_MAX) {
                thread::sleep(REST);
                let before_ns = now_ns();
                rung_ns.store(before_ns, Ordering::Release);
                if bell.ring(&Futex) {
                    calls.push(now_ns().saturating_sub(before_ns));
                }
            }
            rung_ns.store(0, Ordering::Release);
            is_over.store(true, Ordering::Release);
            bell.ring(&Futex);
            wakes = sleeper.join().unwrap_or_default();
        });
        let rounds = u32::try_from(wakes.len().min(calls.len())).ok()?;
        Some(Self { wake_ns: median(&mut wakes)?, call_ns: median(&mut calls)?, rounds })
    }
}

fn median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}
