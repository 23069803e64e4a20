//! Time that a cache line takes between two CPUs: the control of a network measurement.
//!
//! The times of sockets between two CPUs follow it, and in virtual machines it moves while they run.

use crate::{
    affinity,
    clock::{ArchCounter, Counter, TickScale},
};
use lowlat_host::{CpuId, CpuSet};
use lowlat_net::pingpong::{ControlRow, Figures};
use std::{
    hint,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Round trips of one control.
const ROUNDS: u64 = 20_000;
/// Unmeasured round trips before them.
const WARM_UP_ROUNDS: u64 = 2_000;
/// Round trips per sample: the counter costs a good part of one.
const ROUNDS_PER_SAMPLE: u64 = 10;
/// Turns without an answer after which the time is checked.
const TURNS_PER_CHECK: u32 = 1 << 16;
/// Longest control. Two CPUs of a busy host may not run at once for long.
const TIME_MAX: Duration = Duration::from_secs(2);

/// A number on cache lines of its own: two, because processors fetch pairs.
#[repr(align(128))]
struct Line(AtomicU64);

/// Measures the two CPUs.
///
/// # Errors
/// A sentence if they cannot be measured.
pub fn measure(
    client: CpuId,
    server: CpuId,
    scale: TickScale,
    sizes_before: u32,
) -> Result<ControlRow, String> {
    let (there, back) = (Line(AtomicU64::new(0)), Line(AtomicU64::new(0)));
    let deadline = Instant::now() + TIME_MAX;
    let samples = thread::scope(|scope| {
        let named = |name: &str| thread::Builder::new().name(name.into());
        let answering = named("lowlat-pong").spawn_scoped(scope, || answer(&there, &back, server, deadline));
        let asking = named("lowlat-ping").spawn_scoped(scope, || ask(&there, &back, client, deadline));
        // Both are joined even if one did not start; the other then ends at its deadline.
        let [answered, asked] = [answering, asking].map(|thread| thread.ok()?.join().ok()?);
        answered.and(asked)
    });
    let missing = || format!("The cache line between CPUs {client} and {server} could not be measured.");
    let mut samples_ns: Vec<u64> = samples
        .ok_or_else(missing)?
        .into_iter()
        .map(|ticks| scale.ns(ticks) / (2 * ROUNDS_PER_SAMPLE))
        .collect();
    let figures = Figures::of(&mut samples_ns, 99.0).ok_or_else(missing)?;
    Ok(ControlRow { sizes_before, client_cpu: client, server_cpu: server, figures })
}

/// Writes each round and waits for its echo. Returns ticks per sample.
fn ask(there: &Line, back: &Line, cpu: CpuId, deadline: Instant) -> Option<Vec<u64>> {
    affinity::pin_to(&CpuSet::of(cpu)).ok()?;
    let mut samples = Vec::with_capacity(usize::try_from(ROUNDS / ROUNDS_PER_SAMPLE).ok()?);
    let mut start = ArchCounter.now();
    for round in 1..=WARM_UP_ROUNDS + ROUNDS {
        // Release: pairs with the acquire in `answer`.
        there.0.store(round, Ordering::Release);
        wait_for(back, round, deadline)?;
        if round >= WARM_UP_ROUNDS && round.is_multiple_of(ROUNDS_PER_SAMPLE) {
            let now = ArchCounter.now();
            if round > WARM_UP_ROUNDS {
                samples.push(now.saturating_sub(start));
            }
            start = now;
        }
    }
    Some(samples)
}

/// Echoes each round.
fn answer(there: &Line, back: &Line, cpu: CpuId, deadline: Instant) -> Option<Vec<u64>> {
    affinity::pin_to(&CpuSet::of(cpu)).ok()?;
    for round in 1..=WARM_UP_ROUNDS + ROUNDS {
        wait_for(there, round, deadline)?;
        // Release: pairs with the acquire in `ask`.
        back.0.store(round, Ordering::Release);
    }
    Some(Vec::new())
}

fn wait_for(line: &Line, round: u64, deadline: Instant) -> Option<()> {
    let mut turns: u32 = 0;
    // Acquire: pairs with the release of the other thread.
    while line.0.load(Ordering::Acquire) != round {
        hint::spin_loop();
        turns = turns.wrapping_add(1);
        if turns.is_multiple_of(TURNS_PER_CHECK) && Instant::now() > deadline {
            return None;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cpus_have_a_control_and_missing_ones_have_none() {
        let allowed = affinity::current().unwrap();
        let mut cpus = allowed.iter();
        let (Some(first), Some(second)) = (cpus.next(), cpus.next()) else {
            eprintln!("skipped: two_cpus_have_a_control: one CPU");
            return;
        };
        let row = measure(first, second, TickScale::new(1_000_000_000), 3).unwrap();
        assert_eq!((row.client_cpu, row.server_cpu, row.sizes_before), (first, second, 3));
        assert_eq!(row.figures.iterations, ROUNDS / ROUNDS_PER_SAMPLE);
        assert!(row.figures.min_ns > 0);
        assert!(measure(first, 60_000, TickScale::NANOSECONDS, 0).unwrap_err().contains("60000"));
    }
}
