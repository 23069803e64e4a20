//! One CPU's sampler: a state machine over a counter, so that tests can supply any sequence of readings.

use super::{
    progress::Live,
    recorder::CpuRecorder,
    spin::{STRETCH_TURNS, spin},
};
use crate::clock::{MonotonicCounter, ticks_between};
use lowlat_host::CpuId;
use std::sync::atomic::{AtomicBool, Ordering};

/// Consecutive interruptions of the recording itself that are recorded; further time counts as recording.
const RECORDING_INTERRUPTED_MAX: u32 = 8;

#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The CPU to which it is pinned.
    pub cpu: CpuId,
    /// A gap of at least this long is an interruption.
    pub threshold_ticks: u64,
    pub duration_ticks: u64,
    /// Calibrated time of recording one interruption.
    pub recording_ticks: u64,
    /// Excess over `recording_ticks` from which a recording counts as interrupted itself.
    pub slack_ticks: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The first reading of the counter.
    pub first: u64,
    /// The last reading that belongs to this CPU.
    pub last: u64,
    /// Number of turns of the loop.
    pub turns: u64,
    pub recording_ticks: u64,
    /// Readings below the previous one.
    pub backward_count: u64,
    /// The CPU on which the thread was found, if that was another one.
    pub moved_to: Option<CpuId>,
}

impl Outcome {
    /// Ticks from the first reading to the last.
    pub fn run_ticks(&self) -> u64 {
        ticks_between(self.first, self.last).unwrap_or(0)
    }
}

/// Samples until the time is up, `stop` is raised or the thread finds itself on another CPU.
///
/// `stop` is read once per [`STRETCH_TURNS`] turns. It is only read, so its line stays shared in every core's
/// cache and costs a hit, as long as nothing else is written next to it.
pub fn sample<C: MonotonicCounter>(
    counter: &C,
    plan: &Plan,
    recorder: &mut CpuRecorder,
    live: &Live,
    stop: &AtomicBool,
) -> Outcome {
    let first = counter.now();
    let mut outcome = Outcome { first, last: first, ..Outcome::default() };
    loop {
        let stretch = spin(counter, outcome.last, plan.threshold_ticks, STRETCH_TURNS);
        outcome.turns += u64::from(stretch.turns);
        outcome.last = stretch.now;
        if stretch.gap() >= plan.threshold_ticks {
            if ticks_between(stretch.before, stretch.now).is_none() {
                outcome.backward_count += 1;
            } else if let Some(cpu) = counter.cpu().filter(|cpu| *cpu != plan.cpu) {
                // The gap is the move, not an interruption of this CPU; the record ends before it.
                outcome.last = stretch.before;
                outcome.moved_to = Some(cpu);
                return outcome;
            } else {
                record(recorder, live, stretch.before, stretch.now);
                resume(counter, plan, recorder, live, &mut outcome);
            }
        }
        // Relaxed: a lone flag that orders no data.
        if outcome.run_ticks() >= plan.duration_ticks || stop.load(Ordering::Relaxed) {
            outcome.moved_to = counter.cpu().filter(|cpu| *cpu != plan.cpu);
            return outcome;
        }
    }
}

/// Records an interruption, and shows the sums.
pub fn record(recorder: &mut CpuRecorder, live: &Live, before: u64, now: u64) {
    recorder.record(before, now);
    live.show(recorder.count, recorder.ticks_total, recorder.ticks_max);
}

/// Resumes the loop after a recording, with a fresh reading as the last one.
///
/// So the time of the recording itself is not an interruption; it is added to `recording_ticks` instead. If it
/// exceeded the calibrated time by the slack, it was itself interrupted: the surplus is recorded too. With cold
/// caches a recording takes some hundred nanoseconds longer than calibrated, which the slack must cover; a
/// shorter interruption during a recording is missed, and `recording_ticks` bounds that time.
fn resume<C: MonotonicCounter>(
    counter: &C,
    plan: &Plan,
    recorder: &mut CpuRecorder,
    live: &Live,
    outcome: &mut Outcome,
) {
    for _ in 0..RECORDING_INTERRUPTED_MAX {
        let began = outcome.last;
        let now = counter.now();
        outcome.last = now;
        let Some(taken) = ticks_between(began, now) else {
            outcome.backward_count += 1;
            return;
        };
        if taken < plan.recording_ticks.saturating_add(plan.slack_ticks) {
            outcome.recording_ticks += taken;
            return;
        }
        outcome.recording_ticks += plan.recording_ticks;
        record(recorder, live, began.wrapping_add(plan.recording_ticks), now);
    }
    let now = counter.now();
    outcome.recording_ticks += ticks_between(outcome.last, now).unwrap_or(0);
    outcome.last = now;
}
