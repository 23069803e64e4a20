//! Cost of attribution per interruption, including events: an ordinary tick, and a tick on a CPU with
//! changing threads, so that many causes are kept apart. And its cost per event on whole hosts of up to 1,024
//! CPUs: each replays a recorded CPU, and is interrupted by broadcasts of other CPUs, whose senders are found.

mod host;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lowlat_jitter::{attribution::AttributionPlan, attribution::CpuAttributor, attribution::Sleep};
use lowlat_trace::{Activity, TraceEvent, TraceStep, Vector};
use std::{collections::BTreeSet, hint::black_box};

const SAMPLER: i32 = 1_000;
const ROUND: u64 = 1_000;
/// Interval between interruptions: 100,000 per second.
const APART: u64 = 10_000;
const LENGTH: u64 = 6_000;

fn attributor() -> CpuAttributor {
    CpuAttributor::new(AttributionPlan {
        cpu: 1,
        sampler_tid: SAMPLER,
        own_tids: BTreeSet::from([SAMPLER]).into(),
        hz: 1_000_000_000,
        epoch_ticks: 0,
        slack_ticks: 200,
        worst_count: 32,
        first_count: 32,
        sleep: Sleep::Never,
        events_max: 50_000,
    })
}

/// Ten events of a timer tick with two softirqs and a kworker.
fn tick(at: u64, thread: i32) -> [TraceEvent; 10] {
    let timer = Activity::Vector(Vector::LocalTimer);
    let steps = [
        TraceStep::Enter(timer),
        TraceStep::Enter(Activity::Hrtimer(0x1000)),
        TraceStep::Exit(Activity::Hrtimer(0)),
        TraceStep::Exit(timer),
        TraceStep::Enter(Activity::Softirq(1)),
        TraceStep::Exit(Activity::Softirq(1)),
        TraceStep::Enter(Activity::Softirq(9)),
        TraceStep::Exit(Activity::Softirq(9)),
        TraceStep::Switch { from: SAMPLER, to: thread, hold: None },
        TraceStep::Switch { from: thread, to: SAMPLER, hold: None },
    ];
    let mut ticks = at;
    steps.map(|step| {
        ticks += 500;
        TraceEvent { ticks, step }
    })
}

fn round(attributor: &mut CpuAttributor, began: u64, threads: u64) {
    for place in 0..ROUND {
        let at = began + place * APART;
        let thread = 2_000 + i32::try_from(place % threads).unwrap_or(0);
        attributor.push_events(&tick(at, thread));
        black_box(attributor.attribute(at, at + LENGTH));
    }
}

fn attribution(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("attribution");
    group.throughput(Throughput::Elements(ROUND));
    for threads in [1, 300] {
        group.bench_function(format!("interruption of 10 events, {threads} threads"), |bencher| {
            let mut attributor = attributor();
            let mut began = 0;
            bencher.iter(|| {
                round(&mut attributor, began, threads);
                began += ROUND * APART;
            });
        });
    }
    group.finish();
}

criterion_group!(benches, attribution, host::hosts);
criterion_main!(benches);
