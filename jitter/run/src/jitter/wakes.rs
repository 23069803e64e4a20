//! The sampler of wake-ups: a timer wakes it again and again, and each wake-up's latency is recorded as an
//! interruption, from the moment when it was due until the thread runs (as cyclictest and the kernel's timerlat tracer
//! measure).

use super::{
    progress::Live,
    recorder::CpuRecorder,
    sampler::{Outcome, Plan, record},
};
use crate::clock::{MonotonicCounter, TickScale, ticks_between};
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{Timespec, clock_gettime};
use std::{
    num::NonZeroU64,
    sync::atomic::{AtomicBool, Ordering},
};

const SECOND_NS: i64 = 1_000_000_000;

/// Wakes up `every` ticks until the time is up, `stop` is raised or the thread finds itself on another CPU. A wake-up
/// that comes after the next was due skips that.
pub fn sample<C: MonotonicCounter>(
    counter: &C,
    (plan, every, scale): (&Plan, u64, TickScale),
    recorder: &mut CpuRecorder,
    live: &Live,
    stop: &AtomicBool,
) -> Outcome {
    // The kernel may wake ordinary threads 50 us late, to wake several together. A refusal shows in the latencies.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let first = counter.now();
    let mut outcome = Outcome { first, last: first, ..Outcome::default() };
    let mut due = first.wrapping_add(every);
    loop {
        sleep(scale.ns(ticks_between(counter.now(), due).unwrap_or(0)));
        let now = counter.now();
        outcome.moved_to = counter.cpu().filter(|cpu| *cpu != plan.cpu);
        if outcome.moved_to.is_some() {
            return outcome;
        }
        outcome.turns += 1;
        outcome.last = now;
        // An earlier wake-up is due to a signal, or to clocks that differ by less than the kernel's own steps.
        if let Some(late) = ticks_between(due, now) {
            record(recorder, live, due, now);
            due = due.wrapping_add((late / every + 1).saturating_mul(every));
        }
        // Relaxed: a lone flag that orders no data.
        if outcome.run_ticks() >= plan.duration_ticks || stop.load(Ordering::Relaxed) {
            return outcome;
        }
    }
}

fn sleep(ns: u64) {
    let now = clock_gettime(ClockId::Monotonic);
    let ns = now.tv_nsec + i64::try_from(ns).unwrap_or(i64::MAX - SECOND_NS);
    let until = Timespec { tv_sec: now.tv_sec + ns / SECOND_NS, tv_nsec: ns % SECOND_NS };
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
}
