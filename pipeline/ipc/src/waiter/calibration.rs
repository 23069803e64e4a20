//! Cost of a wake on this host: measured, because it ranges from 2 us to 25 us.

use crate::doorbell::{Bell, Futex, Waited};
use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

const ROUNDS_MAX: u32 = 1_000;
/// Pause that lets the other thread fall asleep before it is woken.
const REST: Duration = Duration::from_micros(300);

/// Measured cost of a wake. It is valid for the measured CPUs under the load at that time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeCost {
    /// Median time from just before the wake to the first instruction of the woken thread.
    pub wake_ns: u64,
    /// Median time of the waking thread in the system call.
    pub call_ns: u64,
    /// Number of wakes behind these medians.
    pub rounds: u32,
}

impl WakeCost {
    /// Wakes a thread this many times (1,000 at most), about 0.3 ms each. `None` if it was never found asleep.
    pub fn measure(rounds: u32) -> Option<Self> {
        let (bell, rung_ns, is_over) = (Bell::default(), AtomicU64::new(0), AtomicBool::new(false));
        // On a busy host a thread can take longer to start than all rounds take.
        let started = Barrier::new(2);
        let start = Instant::now();
        let now_ns = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (mut wakes, mut calls) = (Vec::new(), Vec::new());
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                started.wait();
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
            started.wait();
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
