//! Compares copies of a job in one group of CPUs with copies in one group each.

use super::link;
use lowlat_cache::clusters::{ClustersRecord, FillRound, FillTime, Filling, Job, Side};
use lowlat_host::printable::without_hint;
use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::Root;
use lowlat_host_run::affinity::{self, AffinityError};
use lowlat_jitter_run::clock::{ArchCounter, ClockError, MonotonicCounter as _, TickScale, frequency_of};
use std::{
    hint,
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};
use thiserror::Error;

/// Time of each job on each side in a round.
const FIGURE_NS: u64 = 20_000_000;
/// Steps between two readings of the clock.
const STEPS_PER_LOOK: usize = 2_000;
/// Multiplier of the arithmetic (Knuth's MMIX).
const MULTIPLIER: u64 = 6_364_136_223_846_793_005;

/// Error that prevents a measurement.
#[derive(Debug, Error)]
pub enum FillError {
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A thread could not run on its CPU.
    #[error("cannot run on CPU {cpu}: {source}\nhint: choose others with --cpus")]
    Cpu { cpu: CpuId, source: AffinityError },
}

/// A cache line of the ring.
#[derive(Clone, Default)]
#[repr(align(64))]
struct Line {
    /// Place of the next line of the ring.
    next: usize,
    value: u64,
}

/// Measures every job on both sides for some rounds. Ends early, with what it has, when `stop` is raised. A round whose
/// CPUs fail, because one went offline, is left out with a warning.
///
/// # Errors
/// [`FillError`] if no round could be measured, or there is no clock.
pub fn run(
    root: &Root,
    filling: &Filling,
    rounds: u32,
    stop: &AtomicBool,
    on_round: &mut dyn FnMut(u32),
) -> Result<ClustersRecord, FillError> {
    let scale = TickScale::new(frequency_of(ArchCounter::KIND, root)?.hz);
    let mut record = ClustersRecord { filling: Some(filling.clone()), ..ClustersRecord::default() };
    let mut failures = Vec::new();
    for number in 0..rounds {
        // Relaxed: set by the signal handler; orders nothing.
        if stop.load(Ordering::Relaxed) {
            break;
        }
        on_round(number);
        match measure_round(filling, number, scale) {
            Ok(round) => record.rounds.push(round),
            Err(error) => failures.push(error),
        }
    }
    let count = failures.len();
    if let Some(first) = failures.into_iter().next() {
        if record.rounds.is_empty() {
            return Err(first);
        }
        let cause = without_hint(&first);
        record.warnings.push(format!("{count} of {rounds} rounds are missing: {cause}."));
    }
    Ok(record)
}

/// Every job on both sides.
fn measure_round(filling: &Filling, number: u32, scale: TickScale) -> Result<FillRound, FillError> {
    let lines = usize::try_from(filling.set_bytes).unwrap_or(usize::MAX) / size_of::<Line>();
    let place = usize::try_from(number).unwrap_or(0);
    let mut round =
        FillRound { packed: filling.packed(place), spread: filling.spread(place), times: Vec::new() };
    // The order alternates, so that slow changes of the host do not favour one side.
    let sides =
        if number.is_multiple_of(2) { [Side::Packed, Side::Spread] } else { [Side::Spread, Side::Packed] };
    for job in Job::ALL {
        for side in sides {
            let cpus = if side == Side::Packed { &round.packed } else { &round.spread };
            let step_ns = measure(job, cpus, lines, scale)?;
            round.times.push(FillTime { job, side, step_ns });
        }
    }
    Ok(round)
}

/// Nanoseconds of one step, mean of the copies, which all run for the same time.
fn measure(job: Job, cpus: &[CpuId], lines: usize, scale: TickScale) -> Result<f64, FillError> {
    let start = Barrier::new(cpus.len());
    let copy = |cpu: CpuId| -> Result<f64, FillError> {
        let pinned = affinity::pin_to(&CpuSet::of(cpu));
        // Filled here, so that the memory is near the CPU and its lines are in the cache.
        let mut work = Work::new(job, lines);
        work.steps(lines);
        // Also without its CPU, so that the others do not wait forever.
        start.wait();
        pinned.map_err(|source| FillError::Cpu { cpu, source })?;
        let begun = ArchCounter.now();
        let mut steps = 0_u64;
        loop {
            work.steps(STEPS_PER_LOOK);
            steps += STEPS_PER_LOOK as u64;
            let ns = scale.ns(ArchCounter.now().saturating_sub(begun));
            if ns >= FIGURE_NS {
                return Ok(ns as f64 / steps as f64);
            }
        }
    };
    let times: Result<Vec<f64>, FillError> = thread::scope(|scope| {
        let copy = &copy;
        let threads: Vec<_> = cpus.iter().map(|cpu| scope.spawn(move || copy(*cpu))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let times = times?;
    Ok(times.iter().sum::<f64>() / times.len().max(1) as f64)
}

/// One copy of a job.
struct Work {
    job: Job,
    lines: Vec<Line>,
    /// Index of the line that comes next.
    place: usize,
    /// Result of the arithmetic so far.
    value: u64,
}

impl Work {
    fn new(job: Job, lines: usize) -> Self {
        let lines = if job.needs_cache() { lines.max(2) } else { 0 };
        let mut work = Self { job, lines: vec![Line::default(); lines], place: 0, value: 1 };
        link(&mut work.lines, |line| &mut line.next, |place| place);
        work
    }

    #[inline(never)]
    fn steps(&mut self, count: usize) {
        match self.job {
            Job::Compute => {
                for _ in 0..count {
                    self.value = self.value.wrapping_mul(MULTIPLIER).wrapping_add(1);
                }
                self.value = hint::black_box(self.value);
            }
            Job::Random => {
                for _ in 0..count {
                    self.place = self.lines.get(self.place).map_or(0, |line| line.next);
                }
                hint::black_box(self.place);
            }
            Job::Sequential => {
                for _ in 0..count {
                    if self.place >= self.lines.len() {
                        self.place = 0;
                    }
                    if let Some(line) = self.lines.get_mut(self.place) {
                        line.value = line.value.wrapping_add(1);
                    }
                    self.place += 1;
                }
                hint::black_box(&mut self.lines);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_reads_visit_every_line_and_updates_too() {
        let mut random = Work::new(Job::Random, 100);
        let mut seen = [false; 100];
        for _ in 0..100 {
            random.steps(1);
            assert!(!std::mem::replace(&mut seen[random.place], true));
        }
        assert_eq!(random.place, 0);
        let mut updates = Work::new(Job::Sequential, 100);
        updates.steps(250);
        let values: Vec<u64> = updates.lines.iter().map(|line| line.value).collect();
        assert_eq!((values[0], values[49], values[50], values[99]), (3, 3, 2, 2));
        assert!(Work::new(Job::Compute, 100).lines.is_empty());
    }

    #[test]
    fn every_job_is_measured_on_both_sides() {
        // Two groups of one CPU each stand for groups of several; on one CPU the copies take turns.
        let cpus: Vec<CpuId> = affinity::current().unwrap().iter().take(2).collect();
        let groups = vec![cpus.iter().copied().collect(), CpuSet::of(cpus[0])];
        let filling = Filling { groups, copies: cpus.len(), set_bytes: 1 << 16, ..Filling::default() };
        let measured = |filling: &Filling, stop: bool| {
            run(&Root::live(), filling, 3, &AtomicBool::new(stop), &mut |_| {})
        };
        let rounds = measured(&filling, false).unwrap().rounds;
        assert_eq!(rounds.len(), 3);
        for round in &rounds {
            assert_eq!(round.packed, cpus);
            assert_eq!(round.times.len(), 2 * Job::ALL.len());
            assert!(round.times.iter().all(|time| time.step_ns > 0.0), "{round:?}");
        }
        assert_ne!(rounds[0].times[0].side, rounds[1].times[0].side);
        assert!(measured(&filling, true).unwrap().rounds.is_empty());
    }

    #[test]
    fn rounds_on_a_cpu_that_fails_are_left_out() {
        let first = affinity::current().unwrap().lowest().unwrap();
        let measured = |groups| {
            let filling = Filling { groups, copies: 1, ..Filling::default() };
            run(&Root::live(), &filling, 3, &AtomicBool::new(false), &mut |_| {})
        };
        let missing = || CpuSet::of(8_000);
        // Of three rounds, the second uses the missing CPU.
        let record = measured(vec![CpuSet::of(first), missing()]).unwrap();
        assert_eq!(record.rounds.len(), 2);
        assert!(
            record.warnings[0].starts_with("1 of 3 rounds are missing: cannot run on CPU 8000"),
            "{record:?}"
        );
        let error = measured(vec![missing()]).unwrap_err();
        assert!(error.to_string().contains("8000"), "{error}");
    }
}
