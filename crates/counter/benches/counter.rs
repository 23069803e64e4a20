//! One addition while another thread, on another CPU, adds as fast as it can: one atomic, and the counter.

use criterion::{Criterion, criterion_group, criterion_main};
use lowlat_counter::Counter;
use std::{
    hint::black_box,
    sync::atomic::{AtomicBool, AtomicI64, Ordering},
    thread,
};

/// Measures `add` while another thread calls it too.
fn beside(criterion: &mut Criterion, name: &str, add: &(dyn Fn() + Sync)) {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed: only ends the loop.
            while !is_done.load(Ordering::Relaxed) {
                add();
            }
        });
        criterion.bench_function(name, |bencher| bencher.iter(add));
        // Relaxed: only ends the loop.
        is_done.store(true, Ordering::Relaxed);
    });
}

fn additions(criterion: &mut Criterion) {
    let atomic = AtomicI64::new(0);
    // Relaxed: a count; orders nothing.
    beside(criterion, "shared atomic", &|| {
        black_box(atomic.fetch_add(1, Ordering::Relaxed));
    });
    let counter = Counter::new();
    beside(criterion, "counter, add_local", &|| counter.add_local(1));
    beside(criterion, "counter, add", &|| counter.add(1));
}

criterion_group!(benches, additions);
criterion_main!(benches);
