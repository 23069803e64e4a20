//! Measures the clock of cores while all of them are busy.
//!
//! Each CPU runs a chain of additions in which each needs the result of the one before. Such an addition takes one
//! cycle on current x86-64 and aarch64 cores, so the time of a block of them shows the clock without performance
//! counters, also in virtual machines. Both operands are registers: some cores join additions of constants.

use lowlat_cache::clock::{ClockRecord, CpuClock};
use lowlat_host::{CpuId, CpuSet, HostSnapshot};
use lowlat_host_run::Root;
use lowlat_host_run::affinity;
use lowlat_jitter_run::clock::{ArchCounter, ClockError, MonotonicCounter as _, frequency_of};
use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Additions in one turn of the chain's loop.
const ADDITIONS_PER_TURN: u64 = 64;
/// Turns of one block: long enough that reading the counter costs nothing, short enough that interruptions hit few.
const TURNS: u64 = 4_096;
/// Time that one figure stands for.
const INTERVAL: Duration = Duration::from_millis(100);
/// Most blocks of an interval that are kept; enough for a clock of 10 GHz.
const BLOCKS_MAX: usize = 4_096;
/// Fewest blocks from which an interval gets a figure.
const BLOCKS_MIN: usize = 16;
/// Busy time before the first interval: clocks rise, or fall to what all cores can keep.
const SETTLE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub struct ClockOptions {
    /// The CPUs, all of which are busy at once.
    pub cpus: CpuSet,
    pub duration: Duration,
}

/// Keeps every CPU busy and measures its clock. Ends early, with what it has, when `stop` is raised.
///
/// # Errors
/// [`ClockError`] if the counter cannot be used.
pub fn run(
    root: &Root,
    host: &HostSnapshot,
    options: &ClockOptions,
    stop: &AtomicBool,
) -> Result<ClockRecord, ClockError> {
    let hz = frequency_of(ArchCounter::KIND, root)?.hz;
    let mut record = ClockRecord {
        duration_ns: u64::try_from(options.duration.as_nanos()).unwrap_or(u64::MAX),
        interval_ns: u64::try_from(INTERVAL.as_nanos()).unwrap_or(u64::MAX),
        ..ClockRecord::default()
    };
    let start = Barrier::new(options.cpus.len());
    let results: Vec<(CpuId, Result<Vec<f64>, String>)> = thread::scope(|scope| {
        let start = &start;
        let run_on = move |cpu| {
            let pinned = affinity::pin_to(&CpuSet::of(cpu)).map_err(|error| error.to_string());
            // Also without its CPU, so that the others do not wait forever.
            start.wait();
            pinned.map(|()| sample(hz, options.duration, stop))
        };
        let threads: Vec<_> =
            options.cpus.iter().map(|cpu| (cpu, scope.spawn(move || run_on(cpu)))).collect();
        let joined = |thread: thread::ScopedJoinHandle<'_, Result<Vec<f64>, String>>| {
            thread.join().unwrap_or_else(|_| Err("its thread died".to_owned()))
        };
        threads.into_iter().map(|(cpu, thread)| (cpu, joined(thread))).collect()
    });
    for (cpu, result) in results {
        match result {
            Ok(mhz) if !mhz.is_empty() => {
                record.cpus.push(CpuClock { cpu, hardware_mhz_max: hardware_mhz_max(host, cpu), mhz });
            }
            Ok(_) => record.left_out.push(format!("CPU {cpu}: too short a time on the CPU for a figure.")),
            Err(why) => record.left_out.push(format!("CPU {cpu}: {why}.")),
        }
    }
    Ok(record)
}

fn hardware_mhz_max(host: &HostSnapshot, cpu: CpuId) -> Option<f64> {
    let policy = host.cpu.frequency.iter().find(|policy| policy.cpus.contains(cpu))?;
    policy.cpuinfo_max_khz.known().map(|khz| *khz as f64 / 1_000.0)
}

/// The clock of the present CPU in each interval, in MHz.
fn sample(hz: u64, duration: Duration, stop: &AtomicBool) -> Vec<f64> {
    let ticks = |time: Duration| (time.as_secs_f64() * hz as f64).round();
    let mut blocks: Vec<u64> = Vec::with_capacity(BLOCKS_MAX);
    let intervals = usize::try_from(duration.as_nanos().div_ceil(INTERVAL.as_nanos())).unwrap_or(0);
    let mut clocks = Vec::with_capacity(intervals);
    let since = |then: u64| ArchCounter.now().saturating_sub(then) as f64;
    let begun = ArchCounter.now();
    // Relaxed, here and below: set by the signal handler; orders nothing.
    while since(begun) < ticks(SETTLE) && !stop.load(Ordering::Relaxed) {
        chain(TURNS);
    }
    let begun = ArchCounter.now();
    while since(begun) < ticks(duration) && !stop.load(Ordering::Relaxed) {
        blocks.clear();
        let interval = ArchCounter.now();
        while since(interval) < ticks(INTERVAL) && blocks.len() < BLOCKS_MAX {
            let before = ArchCounter.now();
            chain(TURNS);
            blocks.push(ArchCounter.now().saturating_sub(before));
        }
        clocks.extend(clock_mhz(&mut blocks, hz));
    }
    clocks
}

/// The clock from the median block, which interruptions of some blocks do not move.
fn clock_mhz(blocks: &mut [u64], hz: u64) -> Option<f64> {
    if blocks.len() < BLOCKS_MIN {
        return None;
    }
    let (_, median, _) = blocks.select_nth_unstable(blocks.len() / 2);
    let seconds = *median as f64 / hz as f64;
    (seconds > 0.0).then(|| (TURNS * ADDITIONS_PER_TURN) as f64 / seconds / 1e6)
}

/// Runs the chain of additions.
#[cfg(target_arch = "x86_64")]
fn chain(turns: u64) {
    // SAFETY: the block adds one register to another and counts a third down from `turns`, which is above zero. All three
    // are its operands. It touches no memory and no stack; the flags that it changes are not declared as preserved.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 64",
            "add {sum}, {step}",
            ".endr",
            "dec {turns}",
            "jnz 2b",
            sum = inout(reg) 0_u64 => _,
            step = in(reg) 1_u64,
            turns = inout(reg) turns.max(1) => _,
            options(nomem, nostack),
        );
    }
}

/// Runs the chain of additions.
#[cfg(target_arch = "aarch64")]
fn chain(turns: u64) {
    // SAFETY: the block adds one register to another and counts a third down from `turns`, which is above zero. All three
    // are its operands. It touches no memory and no stack; the flags that it changes are not declared as preserved.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 64",
            "add {sum}, {sum}, {step}",
            ".endr",
            "subs {turns}, {turns}, #1",
            "b.ne 2b",
            sum = inout(reg) 0_u64 => _,
            step = in(reg) 1_u64,
            turns = inout(reg) turns.max(1) => _,
            options(nomem, nostack),
        );
    }
}

/// Runs a chain of additions that the compiler cannot shorten; elsewhere an addition may take more than a cycle.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn chain(turns: u64) {
    let mut sum = 0_u64;
    for _ in 0..turns * ADDITIONS_PER_TURN {
        sum = std::hint::black_box(sum.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_block_gives_the_clock() {
        // A counter of 3 GHz, and a core at 1.5 GHz: two ticks for each addition.
        let block = TURNS * ADDITIONS_PER_TURN * 2;
        let mut blocks = vec![block; 20];
        blocks[..9].fill(block * 50);
        assert_eq!(clock_mhz(&mut blocks, 3_000_000_000), Some(1_500.0));
        assert_eq!(clock_mhz(&mut [block; BLOCKS_MIN - 1], 3_000_000_000), None);
    }

    #[test]
    fn every_cpu_has_a_clock_and_a_missing_one_is_named() {
        let root = Root::live();
        let host = HostSnapshot::default();
        let cpu = affinity::current().unwrap().iter().next().unwrap();
        let cpus = CpuSet::of(cpu).union(&CpuSet::of(8_000));
        let options = ClockOptions { cpus, duration: Duration::from_millis(300) };
        let record = run(&root, &host, &options, &AtomicBool::new(false)).unwrap();
        assert!(record.left_out.len() == 1 && record.left_out[0].contains("8000"), "{:?}", record.left_out);
        assert_eq!(record.cpus.len(), 1);
        assert!(record.cpus[0].range().unwrap().mhz > 1.0);
        let stopped = run(&root, &host, &options, &AtomicBool::new(true)).unwrap();
        assert!(stopped.cpus.is_empty());
    }
}
