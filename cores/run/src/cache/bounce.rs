//! Passes cache lines between two CPUs.

use super::link;
use lowlat_cache::c2c::Method;
use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::affinity;
use lowlat_jitter_run::clock::{ArchCounter, MonotonicCounter, TickScale, complete_loads};
use std::{
    hint,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};
use thiserror::Error;

/// Round trips per sample where one is short: the counter costs a good part of one.
const ROUNDS_PER_SAMPLE: u64 = 10;
/// Lines that one CPU reads or writes at once.
const LINES: usize = 64;
/// Turns without an answer after which the thread naps and the time is checked.
const TURNS_PER_CHECK: u32 = 1 << 16;
/// Sleep of a thread whose turns had no answer.
const NAP: Duration = Duration::from_micros(100);
/// Longest measurement of a pair. Two CPUs of a busy host may not run at once for long.
const TIME_MAX: Duration = Duration::from_secs(2);

/// Error that prevents the measurement of a pair.
#[derive(Debug, Error)]
pub enum BounceError {
    /// A thread could not run on its CPU.
    #[error("cannot run on CPU {cpu}: {why}")]
    Cpu { cpu: CpuId, why: String },
    /// The threads were not on their CPUs at the same time often enough.
    #[error("cannot measure CPUs {a} and {b}: they did not answer each other within {} s", TIME_MAX.as_secs())]
    Slow { a: CpuId, b: CpuId },
}

/// Round trips of one measurement of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounds {
    pub warm_up: u64,
    pub measured: u64,
}

/// A number on separate cache lines: two, because processors fetch pairs.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

/// A line of a chain.
#[derive(Default)]
#[repr(align(128))]
struct Link(AtomicUsize);

/// State that both threads share.
struct Lines {
    there: Line,
    back: Line,
    chain: Vec<Link>,
}

/// Passes lines between two CPUs. Returns samples in nanoseconds of what [`Method::figure`] says, in the order of
/// measurement.
///
/// # Errors
/// [`BounceError`] if a thread cannot run on its CPU, or the two hardly run at the same time.
pub fn bounce(
    method: Method,
    (a, b): (CpuId, CpuId),
    rounds: Rounds,
    scale: TickScale,
) -> Result<Vec<f64>, BounceError> {
    let lines = Lines { there: Line::default(), back: Line::default(), chain: chain() };
    let deadline = Instant::now() + TIME_MAX;
    let (ask, answer): (Side, Side) = match method {
        Method::Store => (store_ask, store_answer),
        Method::CompareExchange => (exchange_ask, exchange_answer),
        Method::Read => (write_chain, read_chain),
        Method::Invalidate => (invalidate_chain, load_chain),
    };
    let run = |cpu: CpuId, side: Side| {
        affinity::pin_to(&CpuSet::of(cpu))
            .map_err(|error| BounceError::Cpu { cpu, why: error.to_string() })?;
        side(&lines, rounds, deadline).ok_or(BounceError::Slow { a, b })
    };
    let (asked, answered) = thread::scope(|scope| {
        let named = |name: &str| thread::Builder::new().name(name.into());
        let start = |name, cpu, side| {
            let failed = |error: std::io::Error| BounceError::Cpu { cpu, why: error.to_string() };
            named(name).spawn_scoped(scope, move || run(cpu, side)).map_err(failed)
        };
        // Both are joined even if one did not start; the other then ends at its deadline.
        let (asking, answering) = (start("lowlat-ping", a, ask), start("lowlat-pong", b, answer));
        let join = |thread: Result<thread::ScopedJoinHandle<'_, _>, _>| {
            thread.and_then(|thread| thread.join().unwrap_or(Err(BounceError::Slow { a, b })))
        };
        (join(asking), join(answering))
    });
    // A side that could not start is the reason why the other waited in vain.
    let (asked, answered) = match (asked, answered) {
        (_, Err(error @ BounceError::Cpu { .. })) => return Err(error),
        (asked, answered) => (asked?, answered?),
    };
    let ticks = if asked.is_empty() { answered } else { asked };
    let per_sample = match method {
        Method::Store | Method::CompareExchange => 2 * ROUNDS_PER_SAMPLE,
        Method::Read | Method::Invalidate => LINES as u64,
    };
    Ok(ticks.into_iter().map(|ticks| scale.ns(ticks) as f64 / per_sample as f64).collect())
}

/// One side of a measurement. Returns ticks per sample, empty on the side that does not measure.
type Side = fn(&Lines, Rounds, Instant) -> Option<Vec<u64>>;

/// Calls `round` for each round, and measures groups of them after the warm-up.
fn measured(rounds: Rounds, mut round: impl FnMut(u64) -> Option<()>) -> Option<Vec<u64>> {
    let mut samples = Vec::with_capacity(usize::try_from(rounds.measured / ROUNDS_PER_SAMPLE).ok()?);
    for number in 1..=rounds.warm_up {
        round(number)?;
    }
    let mut start = ArchCounter.now();
    for done in 1..=rounds.measured {
        round(rounds.warm_up + done)?;
        if done.is_multiple_of(ROUNDS_PER_SAMPLE) {
            let now = ArchCounter.now();
            samples.push(now.saturating_sub(start));
            start = now;
        }
    }
    Some(samples)
}

fn store_ask(lines: &Lines, rounds: Rounds, deadline: Instant) -> Option<Vec<u64>> {
    measured(rounds, |round| {
        // Release: pairs with the acquire in `store_answer`.
        lines.there.0.store(round, Ordering::Release);
        wait_for(&lines.back, round, deadline)
    })
}

fn store_answer(lines: &Lines, rounds: Rounds, deadline: Instant) -> Option<Vec<u64>> {
    for round in 1..=rounds.warm_up + rounds.measured {
        wait_for(&lines.there, round, deadline)?;
        // Release: pairs with the acquire in `store_ask`.
        lines.back.0.store(round, Ordering::Release);
    }
    Some(Vec::new())
}

fn exchange_ask(lines: &Lines, rounds: Rounds, deadline: Instant) -> Option<Vec<u64>> {
    // The line holds twice the number of rounds before, plus one while the other side has its turn.
    measured(rounds, |round| exchange(&lines.there, 2 * (round - 1), deadline))
}

fn exchange_answer(lines: &Lines, rounds: Rounds, deadline: Instant) -> Option<Vec<u64>> {
    for round in 1..=rounds.warm_up + rounds.measured {
        exchange(&lines.there, 2 * round - 1, deadline)?;
    }
    Some(Vec::new())
}

/// Increments the line as soon as it holds `from`.
fn exchange(line: &Line, from: u64, deadline: Instant) -> Option<()> {
    let mut turns: u32 = 0;
    // Acquire and release: pairs with the exchange of the other side.
    while line.0.compare_exchange_weak(from, from + 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        spent(&mut turns, deadline)?;
    }
    Some(())
}

/// A random cycle through all lines, so that no line is fetched before its turn.
fn chain() -> Vec<Link> {
    let mut chain: Vec<Link> = (0..LINES).map(|_| Link::default()).collect();
    link(&mut chain, |link| link.0.get_mut(), |place| place);
    chain
}

/// Follows the chain once. `visit` returns the next line.
fn follow(lines: &Lines, visit: impl Fn(&AtomicUsize) -> usize) -> usize {
    let mut at = 0;
    for _ in 0..LINES {
        at = lines.chain.get(at).map_or(0, |link| visit(&link.0));
    }
    at
}

/// A load that the next one depends on.
fn load(link: &AtomicUsize) -> usize {
    // Relaxed: the rounds are ordered by `there` and `back`; the loads by their addresses.
    link.load(Ordering::Relaxed)
}

/// A store that the next one waits for: an exchange is complete before what depends on its result starts.
fn store(link: &AtomicUsize) -> usize {
    let next = load(link);
    // Relaxed: the rounds are ordered by `there` and `back`.
    link.swap(next, Ordering::Relaxed)
}

/// The counter once all loads before are complete.
fn settled() -> u64 {
    complete_loads();
    ArchCounter.now()
}

/// Time of the first pass minus that of a second one, which finds the lines in the own cache.
fn extra(lines: &Lines, visit: fn(&AtomicUsize) -> usize) -> u64 {
    let start = settled();
    hint::black_box(follow(lines, visit));
    let middle = settled();
    hint::black_box(follow(lines, visit));
    let end = settled();
    middle.saturating_sub(start).saturating_sub(end.saturating_sub(middle))
}

/// Writes all lines, then lets the other side read them.
fn write_chain(lines: &Lines, rounds: Rounds, deadline: Instant) -> Option<Vec<u64>> {
    for round in 1..=rounds.warm_up + rounds.measured {
        hint::black_box(follow(lines, store));
        // Release: pairs with the acquire in `read_chain`.
        lines.there.0.store(round, Ordering::Release);
        wait_for(&lines.back, round, deadline)?;
    }
    Some(Vec::new())
}

/// Measures reading the lines that the other side wrote.
fn read_chain(lines: &Lines, rounds: Rounds, deadline: Instant) -> Option<Vec<u64>> {
    let mut samples = Vec::with_capacity(usize::try_from(rounds.measured).ok()?);
    for round in 1..=rounds.warm_up + rounds.measured {
        wait_for(&lines.there, round, deadline)?;
        let ticks = extra(lines, load);
        if round > rounds.warm_up {
            samples.push(ticks);
        }
        // Release: pairs with the acquire in `write_chain`.
        lines.back.0.store(round, Ordering::Release);
    }
    Some(samples)
}

/// Measures writing the lines that the other side has read.
fn invalidate_chain(lines: &Lines, rounds: Rounds, deadline: Instant) -> Option<Vec<u64>> {
    let mut samples = Vec::with_capacity(usize::try_from(rounds.measured).ok()?);
    for round in 1..=rounds.warm_up + rounds.measured {
        // Release: pairs with the acquire in `load_chain`.
        lines.there.0.store(round, Ordering::Release);
        wait_for(&lines.back, round, deadline)?;
        let ticks = extra(lines, store);
        if round > rounds.warm_up {
            samples.push(ticks);
        }
    }
    Some(samples)
}

/// Reads all lines each time that the other side has written them.
fn load_chain(lines: &Lines, rounds: Rounds, deadline: Instant) -> Option<Vec<u64>> {
    for round in 1..=rounds.warm_up + rounds.measured {
        wait_for(&lines.there, round, deadline)?;
        hint::black_box(follow(lines, load));
        // Release: pairs with the acquire in `invalidate_chain`.
        lines.back.0.store(round, Ordering::Release);
    }
    Some(Vec::new())
}

fn wait_for(line: &Line, round: u64, deadline: Instant) -> Option<()> {
    let mut turns: u32 = 0;
    // Acquire: pairs with the release of the other thread.
    while line.0.load(Ordering::Acquire) != round {
        spent(&mut turns, deadline)?;
    }
    Some(())
}

/// Waits a moment; `None` after the deadline.
fn spent(turns: &mut u32, deadline: Instant) -> Option<()> {
    hint::spin_loop();
    *turns = turns.wrapping_add(1);
    if !turns.is_multiple_of(TURNS_PER_CHECK) {
        return Some(());
    }
    // The other thread has no CPU. One that slept gets its own before one that span: so both soon run at once, where
    // two that take turns with others might not for seconds.
    thread::sleep(NAP);
    (Instant::now() <= deadline).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chain_passes_every_line_once() {
        let lines = Lines { there: Line::default(), back: Line::default(), chain: chain() };
        let mut seen: Vec<usize> = lines.chain.iter().map(|link| load(&link.0)).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..LINES).collect::<Vec<_>>());
        assert_eq!(follow(&lines, load), 0, "it is a cycle of all lines");
        assert_eq!(follow(&lines, store), 0, "writing keeps it");
    }

    /// Loads that miss the nearer caches take their time in the first pass, not in the second.
    #[test]
    fn a_pass_ends_with_its_loads() {
        let lines = Lines { there: Line::default(), back: Line::default(), chain: chain() };
        let mut other = vec![1_u64; 4 << 20];
        let mut extras: Vec<u64> = (0..101_u64)
            .map(|round| {
                for word in &mut other {
                    *word += round;
                }
                hint::black_box(&mut other);
                extra(&lines, load)
            })
            .collect();
        extras.sort_unstable();
        // A chain of loads from the nearest cache takes four cycles each or more.
        let mut warm: Vec<u64> = (0..101)
            .map(|_| {
                let begun = settled();
                hint::black_box(follow(&lines, load));
                settled().saturating_sub(begun)
            })
            .collect();
        warm.sort_unstable();
        assert!(extras[50] > warm[50], "{} more than {}", extras[50], warm[50]);
    }

    #[test]
    fn every_method_measures_two_cpus_and_missing_ones_are_an_error() {
        let allowed = affinity::current().unwrap();
        let mut cpus = allowed.iter();
        let (Some(first), Some(second)) = (cpus.next(), cpus.next()) else {
            eprintln!("skipped: every_method_measures_two_cpus: one CPU");
            return;
        };
        let rounds = Rounds { warm_up: 100, measured: 1_000 };
        let scale = TickScale::new(1_000_000_000);
        for method in Method::ALL {
            // A busy machine may leave the two threads no turn at the same time.
            let samples = (0..10)
                .find_map(|_| match bounce(method, (first, second), rounds, scale) {
                    Err(BounceError::Slow { .. }) => None,
                    measured => Some(measured.unwrap()),
                })
                .expect("a turn on both CPUs");
            let expected =
                if matches!(method, Method::Store | Method::CompareExchange) { 100 } else { 1_000 };
            assert_eq!(samples.len(), expected, "{method}");
            assert!(samples.iter().any(|ns| *ns > 0.0), "{method}");
        }
        let error = bounce(Method::Store, (first, 60_000), rounds, scale).unwrap_err().to_string();
        assert!(error.contains("60000"), "{error}");
    }
}
