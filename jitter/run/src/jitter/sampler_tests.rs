//! The sampler over given sequences of readings.

use super::{
    progress::Live,
    recorder::CpuRecorder,
    sampler::{Outcome, Plan, sample},
    series::SeriesPlan,
};
use crate::clock::{MonotonicCounter, TickScale};
use lowlat_host::CpuId;
use lowlat_jitter::JitterCpu;
use std::{
    cell::{Cell, RefCell},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Readings in order; after the last it continues in steps of 10.
struct Script<'a> {
    readings: RefCell<std::iter::Copied<std::slice::Iter<'a, u64>>>,
    last: Cell<u64>,
    cpu: Cell<Option<CpuId>>,
    /// Raised after the last reading.
    at_end: &'a AtomicBool,
}

impl MonotonicCounter for Script<'_> {
    fn now(&self) -> u64 {
        let next = self.readings.borrow_mut().next();
        if next.is_none() {
            self.at_end.store(true, Ordering::Relaxed);
        }
        self.last.set(next.unwrap_or_else(|| self.last.get().wrapping_add(10)));
        self.last.get()
    }

    fn cpu(&self) -> Option<CpuId> {
        self.cpu.get()
    }
}

const PLAN: Plan =
    Plan { cpu: 2, threshold_ticks: 100, duration_ticks: 1 << 62, recording_ticks: 30, slack_ticks: 1_000 };

/// Runs the script to its end; one tick is one nanosecond and the epoch is the first reading.
fn run_on(plan: Plan, cpu: Option<CpuId>, readings: &[u64]) -> (Outcome, JitterCpu) {
    let stop = AtomicBool::new(false);
    let script = Script {
        readings: RefCell::new(readings.iter().copied()),
        last: Cell::new(0),
        cpu: Cell::new(cpu),
        at_end: &stop,
    };
    let series = SeriesPlan::of(Duration::from_secs(3), 1);
    let mut recorder = CpuRecorder::new(TickScale::new(1_000_000_000), series, 4, 4);
    recorder.begin(readings[0]);
    let live = Live::default();
    let outcome = sample(&script, &plan, &mut recorder, &live, &stop);
    assert_eq!(live.seen(), (recorder.count, recorder.ticks_total, recorder.ticks_max));
    (outcome, recorder.into_record(outcome.last))
}

fn run(readings: &[u64]) -> (Outcome, JitterCpu) {
    run_on(PLAN, Some(2), readings)
}

fn first(record: &JitterCpu) -> Vec<(u64, u64)> {
    record.first.iter().map(|one| (one.at_ns, one.length_ns)).collect()
}

#[test]
fn a_gap_is_an_interruption_from_the_threshold_on() {
    // After each recorded gap follows the reading that resumes the loop.
    let (outcome, record) = run(&[1_000, 1_010, 1_109, 1_119, 1_219, 1_240, 1_341, 1_360, 1_370]);
    assert_eq!(first(&record), [(119, 100), (240, 101)], "99 is a turn, 100 is not");
    assert_eq!(outcome.recording_ticks, 21 + 19);
    assert_eq!((outcome.backward_count, outcome.moved_to), (0, None));
    assert_eq!(record.interruption_ns_total, 201);
}

#[test]
fn recording_is_neither_an_interruption_nor_hides_one() {
    // Recording took 900 ticks: cold caches, within the slack.
    let (outcome, record) = run(&[0, 10, 210, 1_110, 1_120]);
    assert_eq!((first(&record), outcome.recording_ticks), (vec![(10, 200)], 900));
    // It took 5,030: all but the calibrated 30 were an interruption. Recording that one takes 25.
    let (outcome, record) = run(&[0, 10, 210, 5_240, 5_265, 5_275]);
    assert_eq!(first(&record), [(10, 200), (240, 5_000)]);
    assert_eq!(outcome.recording_ticks, 30 + 25);
    // At the limit: one tick less counts as recording.
    let (_, record) = run(&[0, 10, 210, 210 + 1_029, 1_250]);
    assert_eq!(record.interruption_count, 1);
    let (_, record) = run(&[0, 10, 210, 210 + 1_030, 1_250, 1_260]);
    assert_eq!(first(&record), [(10, 200), (240, 1_000)]);
}

#[test]
fn recordings_that_are_always_interrupted_terminate() {
    let readings: Vec<u64> = (0..40).map(|n| n * 10_000).collect();
    let (outcome, record) = run(&readings);
    assert!(record.interruption_count >= 8);
    let taken = record.interruption_ns_total + outcome.recording_ticks;
    assert!(taken <= outcome.last, "{taken} of {}", outcome.last);
}

#[test]
fn backward_readings_are_counted_and_no_interruption() {
    let (outcome, record) = run(&[1_000, 1_010, 990, 1_000, 1_300, 1_310, 1_320]);
    assert_eq!(outcome.backward_count, 1);
    assert_eq!(first(&record), [(0, 300)]);
    // Also if the recording's own reading goes backwards.
    let (outcome, record) = run(&[1_000, 1_010, 1_310, 1_300, 1_310]);
    assert_eq!((outcome.backward_count, record.interruption_count), (1, 1));
}

#[test]
fn a_counter_that_wraps_is_read_on() {
    let start = u64::MAX - 25;
    let (outcome, record) = run(&[start, start + 10, start + 20, 4, 14, 514, 530, 540]);
    assert_eq!((outcome.backward_count, record.interruption_count), (0, 1));
    assert_eq!(record.interruption_ns_total, 500);
}

#[test]
fn an_interruption_over_a_second_counts_where_it_ended() {
    let second = 1_000_000_000;
    let (_, record) = run(&[0, second - 50, second - 40, second - 30, second + 200, second + 210]);
    let counts: Vec<u64> = record.seconds.iter().map(|second| second.count).collect();
    assert_eq!(counts[..2], [1, 1], "the first covers the long gap to the second");
    assert_eq!(record.seconds[1].ns_max, 230);
}

#[test]
fn interruptions_that_are_not_kept_are_counted() {
    let mut readings = vec![0_u64];
    for length in [200, 900, 300, 800, 400, 700, 500] {
        let last = readings[readings.len() - 1];
        readings.extend([last + 10, last + 10 + length, last + 10 + length + 5]);
    }
    let (_, record) = run(&readings);
    let lengths =
        |of: &[lowlat_jitter::Interruption]| -> Vec<u64> { of.iter().map(|one| one.length_ns).collect() };
    assert_eq!(lengths(&record.worst), [900, 800, 700, 500]);
    assert_eq!(lengths(&record.first), [200, 900, 300, 800]);
    assert_eq!(record.interruption_count, 7);
}

#[test]
fn a_move_ends_the_record_before_it() {
    let (outcome, record) = run_on(PLAN, Some(7), &[0, 10, 20, 9_000, 9_010]);
    assert_eq!((outcome.moved_to, outcome.last), (Some(7), 20));
    assert_eq!(record.interruption_count, 0, "the move is not an interruption of the CPU");
    // Detected only at the end, if the move itself stayed below the threshold.
    let (outcome, _) = run_on(PLAN, Some(7), &[0, 10, 20]);
    assert_eq!(outcome.moved_to, Some(7));
    // If the CPU is unknown, nothing is claimed.
    let (outcome, record) = run_on(PLAN, None, &[0, 10, 20, 9_000, 9_010]);
    assert_eq!((outcome.moved_to, record.interruption_count), (None, 1));
}

#[test]
fn the_time_ends_the_run_and_turns_are_counted() {
    let plan = Plan { duration_ticks: 20_000, ..PLAN };
    let readings: Vec<u64> = (0..10_000).map(|n| n * 10).collect();
    let (outcome, record) = run_on(plan, Some(2), &readings);
    // 2,000 turns fit; the end is checked after each stretch of 1,024.
    assert_eq!((outcome.turns, outcome.last), (2_048, 20_480));
    assert_eq!(record.interruption_count, 0);
}
