//! One turn of the sampling loop, relative to a plain loop that tests a flag, reads the counter and compares.
//!
//! The ratio comes from interleaved rounds of one run on one pinned CPU; criterion's figures are printed as
//! well.

use criterion::{Criterion, Throughput, criterion_group};
use lowlat_host::CpuSet;
use lowlat_host_run::{affinity, affinity::pin_to};
use lowlat_jitter_run::{
    clock::{ArchCounter, MonotonicCounter},
    jitter::{STRETCH_TURNS, spin},
};
use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

const ROUNDS: usize = 401;
const TURNS: u32 = 64 * STRETCH_TURNS;
/// No gap reaches it, so all turns are made.
const NEVER: u64 = i64::MAX.cast_unsigned();

static GO: AtomicBool = AtomicBool::new(true);

/// Our loop as the sampler runs it: stretches, with a check of the time and the flag between two of them.
fn ours(turns: u32) -> u64 {
    let end = ArchCounter.now().wrapping_add(NEVER / 2);
    let mut last = ArchCounter.now();
    for _ in 0..turns / STRETCH_TURNS {
        last = spin(&ArchCounter, last, black_box(NEVER), STRETCH_TURNS).now;
        if last >= end || !GO.load(Ordering::Relaxed) {
            break;
        }
    }
    last
}

/// The plain loop: in each turn a flag in memory, a reading, a difference, a comparison.
fn plain(turns: u32) -> u64 {
    let threshold = black_box(NEVER);
    let mut last = ArchCounter.now();
    for _ in 0..turns {
        if !GO.load(Ordering::Relaxed) {
            break;
        }
        let now = ArchCounter.now();
        if now.wrapping_sub(last) >= threshold {
            black_box(now);
        }
        last = now;
    }
    last
}

fn ns_per_turn(of: fn(u32) -> u64) -> f64 {
    let began = Instant::now();
    black_box(of(black_box(TURNS)));
    began.elapsed().as_secs_f64() * 1e9 / f64::from(TURNS)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Both in turn, so that other load affects both.
fn print_ratio() {
    let rounds: Vec<(f64, f64)> = (0..ROUNDS).map(|_| (ns_per_turn(ours), ns_per_turn(plain))).collect();
    let ours = median(rounds.iter().map(|round| round.0).collect());
    let plain = median(rounds.iter().map(|round| round.1).collect());
    let ratio = median(rounds.iter().map(|round| round.0 / round.1).collect());
    println!("turn: ours {ours:.2} ns, plain {plain:.2} ns, median ratio {ratio:.3} over {ROUNDS} rounds");
}

fn turns(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("loop turn");
    group.throughput(Throughput::Elements(u64::from(TURNS)));
    group.bench_function("ours", |bencher| bencher.iter(|| ours(black_box(TURNS))));
    group.bench_function("plain", |bencher| bencher.iter(|| plain(black_box(TURNS))));
    group.finish();
}

criterion_group!(benches, turns);

fn main() {
    let cpu = affinity::current().ok().and_then(|cpus| cpus.highest());
    if let Some(Err(error)) = cpu.map(|cpu| pin_to(&CpuSet::of(cpu))) {
        eprintln!("not pinned: {error}");
    }
    // `cargo test --benches` only checks that it runs.
    if std::env::args().any(|argument| argument == "--bench") {
        print_ratio();
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
