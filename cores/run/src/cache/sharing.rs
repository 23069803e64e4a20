//! Demonstrates false sharing: threads add to values that are laid out in different ways.

use lowlat_cache::sharing::{Layout, SharingRecord, SharingRound, SharingTime};
use lowlat_counter::PerCpuCounter;
use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::Root;
use lowlat_host_run::affinity::{self, AffinityError};
use lowlat_jitter_run::clock::{ArchCounter, ClockError, MonotonicCounter as _, TickScale, frequency_of};
use std::{
    hint,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};
use thiserror::Error;

/// Additions of a thread in one measurement.
const ADDITIONS: u64 = 2_000_000;
/// Distance of two values, in words: neighbours, 64 bytes and 128 bytes apart.
const WORDS_PER_VALUE: [usize; 3] = [1, 8, 16];
/// Words before the first value, and the alignment of the first, in words: a page, so that no layout crosses one.
const WORDS_PER_PAGE: usize = 512;

/// Error that prevents a measurement.
#[derive(Debug, Error)]
pub enum SharingError {
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A thread could not run on its CPU.
    #[error("{0}\nhint: choose others with --cpus")]
    Cpu(AffinityError),
    /// The per-CPU counter is wrong.
    #[error("the per-CPU counter has {sum} after {wanted} additions")]
    Counter { sum: i64, wanted: i64 },
}

/// Lets a thread on each CPU add, for some rounds. Ends early, with what it has, when `stop` is raised, or a CPU goes
/// offline.
///
/// # Errors
/// [`SharingError`] before the first round is complete: a thread cannot run on its CPU.
pub fn run(
    root: &Root,
    cpus: &[CpuId],
    rounds: u32,
    stop: &AtomicBool,
) -> Result<SharingRecord, SharingError> {
    let scale = TickScale::new(frequency_of(ArchCounter::KIND, root)?.hz);
    let mut record = SharingRecord {
        cpus: cpus.to_vec(),
        is_restartable: lowlat_counter::is_restartable(),
        ..SharingRecord::default()
    };
    for number in 0..rounds {
        let mut layouts = Layout::ALL;
        // Each round starts with another layout, so that slow changes of the host do not favour one.
        layouts.rotate_left(usize::try_from(number).unwrap_or(0) % Layout::ALL.len());
        let mut round = SharingRound::default();
        for layout in layouts {
            // Relaxed: set by the signal handler; orders nothing.
            if stop.load(Ordering::Relaxed) {
                return Ok(record);
            }
            match measure(layout, cpus, scale) {
                Ok(addition_ns) => round.times.push(SharingTime { layout, addition_ns }),
                Err(error) if record.rounds.is_empty() => return Err(error),
                Err(error) => {
                    record.cut_short = Some(error.to_string());
                    return Ok(record);
                }
            }
        }
        record.rounds.push(round);
    }
    Ok(record)
}

/// Nanoseconds of one addition, mean of all threads.
fn measure(layout: Layout, cpus: &[CpuId], scale: TickScale) -> Result<f64, SharingError> {
    let [near, line, pair] = WORDS_PER_VALUE;
    let step = match layout {
        Layout::OneValue | Layout::PerCpu => 0,
        Layout::Neighbours => near,
        Layout::Apart64 => line,
        Layout::Apart128 => pair,
    };
    let words: Vec<AtomicU64> = (0..=WORDS_PER_PAGE + step * cpus.len()).map(|_| AtomicU64::new(0)).collect();
    let first = words.iter().position(|word| std::ptr::from_ref(word).addr() % 4_096 == 0).unwrap_or(0);
    let counter = PerCpuCounter::new();
    let start = Barrier::new(cpus.len());
    let add = |place: usize, cpu: CpuId| -> Result<u64, SharingError> {
        let pinned = affinity::pin_to(&CpuSet::of(cpu));
        // Also without its CPU, so that the others do not wait forever.
        start.wait();
        pinned.map_err(SharingError::Cpu)?;
        let begun = ArchCounter.now();
        match words.get(first + place * step) {
            Some(word) if layout != Layout::PerCpu => {
                for _ in 0..ADDITIONS {
                    // Relaxed: only its cost matters.
                    hint::black_box(word).fetch_add(1, Ordering::Relaxed);
                }
            }
            _ => (0..ADDITIONS).for_each(|_| hint::black_box(&counter).add_local(1)),
        }
        Ok(ArchCounter.now().saturating_sub(begun))
    };
    let ticks: Result<Vec<u64>, SharingError> = thread::scope(|scope| {
        let add = &add;
        let threads: Vec<_> =
            cpus.iter().enumerate().map(|(place, cpu)| scope.spawn(move || add(place, *cpu))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let ticks = ticks?;
    let wanted = i64::try_from(ADDITIONS * cpus.len() as u64).unwrap_or(i64::MAX);
    if layout == Layout::PerCpu && counter.sum() != wanted {
        return Err(SharingError::Counter { sum: counter.sum(), wanted });
    }
    let ns: u64 = ticks.iter().map(|ticks| scale.ns(*ticks)).sum();
    Ok(ns as f64 / (ADDITIONS * ticks.len().max(1) as u64) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_is_measured_in_every_round() {
        let allowed = affinity::current().unwrap();
        let cpus: Vec<CpuId> = allowed.iter().take(2).collect();
        let record = run(&Root::live(), &cpus, 2, &AtomicBool::new(false)).unwrap();
        assert_eq!(record.rounds.len(), 2);
        assert!(record.rounds.iter().all(|round| round.times.len() == Layout::ALL.len()));
        assert!(record.figures().iter().all(|figures| figures.addition_ns > 0.0));
        let error = run(&Root::live(), &[cpus[0], 8_000], 1, &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("8000"), "{error}");
        let stopped = run(&Root::live(), &cpus, 2, &AtomicBool::new(true)).unwrap();
        assert!(stopped.rounds.is_empty());
    }
}
