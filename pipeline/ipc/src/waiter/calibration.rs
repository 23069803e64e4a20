//! Cost of a wake on this host: measured, because it ranges from 2 us to 25 us.

use crate::doorbell::{Bell, Futex, Waited};
use std::{
    collections::BinaryHeap,
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

/// Wakes a thread this many times (1,000 at most), about 0.3 ms each, and returns the median time from just before the
/// wake to the first instruction of the woken thread. It is valid for the measured CPUs under the load at that time.
/// `None` if the thread was never found asleep.
pub fn wake_ns(rounds: u32) -> Option<u64> {
    let (bell, rung_ns, is_over) = (Bell::default(), AtomicU64::new(0), AtomicBool::new(false));
    // On a busy host a thread can take longer to start than all rounds take.
    let started = Barrier::new(2);
    let start = Instant::now();
    let now_ns = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let wakes = thread::scope(|scope| {
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
            rung_ns.store(now_ns(), Ordering::Release);
            bell.ring(&Futex);
        }
        rung_ns.store(0, Ordering::Release);
        is_over.store(true, Ordering::Release);
        bell.ring(&Futex);
        sleeper.join().unwrap_or_default()
    });
    // A heap's code is a tenth of a sort's.
    let wakes = BinaryHeap::from(wakes).into_sorted_vec();
    wakes.get(wakes.len() / 2).copied()
}
