//! Threads that begin together: one that chases, and those that read, write or copy.

use super::{
    MemoryError,
    buffer::{Chase, Line},
};
use lowlat_cache::{memory::LoadTime, quantile};
use lowlat_host::{CpuId, CpuSet, statistics::carries_quantile};
use lowlat_host_run::Root;
use lowlat_host_run::affinity;
use lowlat_jitter_run::clock::complete_loads;
use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// Longest time of a thread that another one ends: real-time threads on all CPUs would keep the other from running.
const PATIENCE: Duration = Duration::from_secs(1);
/// Lines between two checks of the clock: 64 KiB.
const LINES_PER_LOOK: usize = 1_024;
/// The same for readers that pause: 4 KiB.
const LINES_PER_PAUSE: usize = 64;
/// Length of a block of loads: short, so that an interruption spoils few of them.
const BLOCK_NS: u64 = 20_000;
/// Loads after which the time of one is estimated, and how often: an interruption makes it longer, never shorter.
const STEPS_TO_ESTIMATE: u64 = 500;
const ESTIMATES: u32 = 9;

/// Operation of a thread on lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    Read,
    Write,
    /// One half is copied over the other: each is read or written.
    Copy,
}

/// A chase on one CPU.
pub struct Chaser<'a, 'ring, const N: usize> {
    pub cpu: CpuId,
    pub chase: &'a mut Chase<'ring, N>,
    /// Steps before it is measured.
    pub warm_steps: u64,
    /// Measured time after the warm-up.
    pub figure: Duration,
}

/// The host, and for how long threads had to wait for their CPUs.
pub struct Bench<'a> {
    pub root: &'a Root,
    ran_ns: AtomicU64,
    waited_ns: AtomicU64,
}

impl<'a> Bench<'a> {
    pub fn new(root: &'a Root) -> Self {
        Self { root, ran_ns: AtomicU64::new(0), waited_ns: AtomicU64::new(0) }
    }

    /// Share of their time that threads waited since the last call; `None` if the kernel does not count.
    pub fn waited_share(&self) -> Option<f64> {
        // Relaxed, here and in `count`: the threads have been joined.
        let [ran, waited] = [&self.ran_ns, &self.waited_ns].map(|sum| sum.swap(0, Ordering::Relaxed));
        (ran > 0).then(|| waited as f64 / (ran + waited) as f64)
    }

    /// Runs on this CPU only once all threads are there. Counts how long it waits for the CPU.
    fn count<T>(&self, cpu: CpuId, start: &Barrier, act: impl FnOnce() -> T) -> Result<T, MemoryError> {
        let pinned = affinity::pin_to(&CpuSet::of(cpu));
        // Also without its CPU, so that the others do not wait forever.
        start.wait();
        pinned.map_err(MemoryError::Cpu)?;
        let times = || -> Option<(u64, u64)> {
            let text = self.root.read("/proc/thread-self/schedstat").into_known()?;
            let mut fields = text.split_ascii_whitespace().map(str::parse);
            Some((fields.next()?.ok()?, fields.next()?.ok()?))
        };
        let before = times();
        let result = act();
        if let Some(((ran, waited), (ran_before, waited_before))) = times().zip(before) {
            self.ran_ns.fetch_add(ran.saturating_sub(ran_before), Ordering::Relaxed);
            self.waited_ns.fetch_add(waited.saturating_sub(waited_before), Ordering::Relaxed);
        }
        Ok(result)
    }

    /// Time of a load while nothing else of lowlat runs.
    pub fn chase<const N: usize>(&self, mut chaser: Chaser<'_, '_, N>) -> Result<LoadTime, MemoryError> {
        self.chase_beside(&mut chaser, &CpuSet::new(), &mut [], Duration::ZERO).map(|(time, _)| time)
    }

    /// Time of a load while each of `others` reads a part of the lines, with a pause after each page, and what they
    /// read together, in bytes per second.
    pub fn chase_beside<const N: usize>(
        &self,
        chaser: &mut Chaser<'_, '_, N>,
        others: &CpuSet,
        lines: &mut [Line],
        pause: Duration,
    ) -> Result<(LoadTime, f64), MemoryError> {
        let (start, is_over) = (Barrier::new(others.len() + 1), AtomicBool::new(false));
        // Relaxed: pairs with the store below; only its arrival matters.
        let may_go_on = |begun: Instant| !is_over.load(Ordering::Relaxed) && begun.elapsed() < PATIENCE;
        thread::scope(|scope| {
            let readers = self.start(scope, others, &start, lines, (Act::Read, pause), &may_go_on);
            let timed = scope.spawn(|| {
                let time = self.count(chaser.cpu, &start, || {
                    chaser.chase.advance(chaser.warm_steps);
                    load_time(chaser.chase, chaser.figure)
                });
                // Relaxed: pairs with the loads of the readers.
                is_over.store(true, Ordering::Relaxed);
                time
            });
            let time = join(timed)?;
            Ok((time, readers.into_iter().map(join).sum::<Result<f64, _>>()?))
        })
    }

    /// Returns what these CPUs read, write or copy together, in bytes per second.
    pub fn throughput(
        &self,
        cpus: &CpuSet,
        lines: &mut [Line],
        act: Act,
        figure: Duration,
    ) -> Result<f64, MemoryError> {
        let start = Barrier::new(cpus.len());
        let may_go_on = |begun: Instant| begun.elapsed() < figure;
        thread::scope(|scope| {
            let workers = self.start(scope, cpus, &start, lines, (act, Duration::ZERO), &may_go_on);
            workers.into_iter().map(join).sum()
        })
    }

    /// Starts a thread on each CPU, with an equal part of the lines.
    fn start<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope thread::Scope<'scope, 'env>,
        cpus: &CpuSet,
        start: &'scope Barrier,
        lines: &'scope mut [Line],
        (act, pause): (Act, Duration),
        may_go_on: &'scope (impl Fn(Instant) -> bool + Sync),
    ) -> Vec<thread::ScopedJoinHandle<'scope, Result<f64, MemoryError>>> {
        let size = lines.len().div_ceil(cpus.len().max(1)).max(1);
        let mut parts = lines.chunks_mut(size);
        let mut begin = |cpu: CpuId| {
            let part = parts.next().unwrap_or_default();
            scope.spawn(move || {
                self.count(cpu, start, || {
                    let begun = Instant::now();
                    let bytes = work(part, act, pause, || may_go_on(begun));
                    bytes as f64 / begun.elapsed().as_secs_f64().max(f64::MIN_POSITIVE)
                })
            })
        };
        cpus.iter().map(&mut begin).collect()
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Goes through lines over and over while it may. Returns the bytes that were read and written.
fn work(lines: &mut [Line], act: Act, pause: Duration, may_go_on: impl Fn() -> bool) -> u64 {
    let per_look = if pause.is_zero() { LINES_PER_LOOK } else { LINES_PER_PAUSE };
    let (mut bytes, mut sum) = (0, 0_u64);
    loop {
        for lines in lines.chunks_mut(per_look) {
            if !may_go_on() {
                // The compiler must not drop the loads.
                std::hint::black_box(sum);
                return bytes;
            }
            match act {
                Act::Read => {
                    for line in &*lines {
                        let sum_of = |sum: u64, word: &u64| sum.wrapping_add(*word);
                        sum = line.rest.iter().fold(sum, sum_of);
                    }
                }
                Act::Write => lines.fill(Line::filled(sum)),
                Act::Copy => {
                    let (from, to) = lines.split_at_mut(lines.len() / 2);
                    if let Some(to) = to.get_mut(..from.len()) {
                        to.copy_from_slice(from);
                    }
                }
            }
            bytes += size_of_val(lines) as u64;
            if !pause.is_zero() {
                let paused = Instant::now();
                while paused.elapsed() < pause {
                    std::hint::spin_loop();
                }
            }
        }
        if lines.is_empty() {
            return 0;
        }
    }
}

/// Time of a load in blocks, on the present CPU.
fn load_time<const N: usize>(chase: &mut Chase<'_, N>, figure: Duration) -> LoadTime {
    let mut timed = |steps: u64| {
        let begun = Instant::now();
        chase.advance(steps);
        complete_loads();
        u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    };
    let estimated_ns = (0..ESTIMATES).map(|_| timed(STEPS_TO_ESTIMATE)).min().unwrap_or(0);
    let steps = (BLOCK_NS * STEPS_TO_ESTIMATE / estimated_ns.max(1)).max(1);
    let mut blocks = Vec::new();
    let begun = Instant::now();
    while blocks.is_empty() || begun.elapsed() < figure {
        blocks.push(timed(steps));
    }
    let count = blocks.len() as u64;
    let ns: Vec<f64> = blocks.into_iter().map(|ns| ns as f64 / (steps * N as u64) as f64).collect();
    let ns_p99 = carries_quantile(count, 0.99).then(|| quantile(ns.clone(), 0.99)).flatten();
    LoadTime { ns: quantile(ns, 0.5).unwrap_or(0.0), ns_p99 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn work_goes_through_all_lines_and_counts_them() {
        let mut lines = vec![Line::filled(3); 1_500];
        for (act, pause) in [(Act::Read, 0), (Act::Copy, 0), (Act::Write, 0), (Act::Read, 1)] {
            let looks = Cell::new(0);
            let bytes =
                work(&mut lines, act, Duration::from_nanos(pause), || looks.replace(looks.get() + 1) < 3);
            let looked = if pause == 0 { 2 * 1_024 + 476 } else { 3 * 64 };
            assert_eq!(bytes, looked * 64, "{act:?}");
        }
        assert!(lines.iter().all(|line| line.rest == [0; 7]), "zeroes were written");
        assert_eq!(work(&mut [], Act::Read, Duration::ZERO, || true), 0);
    }
}
