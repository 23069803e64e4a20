//! One addition while another thread, on another CPU, adds as fast as it can: one atomic, the counter, and a slot that
//! a thread owns, which is the least that an addition can cost.

use criterion::{Criterion, criterion_group, criterion_main};
use lowlat_counter::PerCpuCounter;
use std::{
    cell::Cell,
    hint::black_box,
    ptr,
    sync::atomic::{AtomicBool, AtomicI64, Ordering},
    thread,
};

/// Slots of threads; a program needs one for each thread that may ever add, and keeps those of threads that ended.
static SLOTS: [Slot; 2] = [const { Slot(AtomicI64::new(0)) }; 2];

#[repr(align(128))]
struct Slot(AtomicI64);

thread_local! {
    /// The slot of this thread.
    static OWN: Cell<*const AtomicI64> = const { Cell::new(ptr::null()) };
}

/// Measures `add` while another thread calls it too.
fn beside(criterion: &mut Criterion, name: &str, add: &(dyn Fn() + Sync)) {
    let is_done = AtomicBool::new(false);
    OWN.set(&raw const SLOTS[0].0);
    thread::scope(|scope| {
        scope.spawn(|| {
            OWN.set(&raw const SLOTS[1].0);
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
    beside(criterion, "slot of the thread", &|| {
        // SAFETY: `beside` sets it to a static before anything is added.
        let slot = unsafe { &*OWN.get() };
        // Relaxed: only this thread writes; a reader sees a whole value.
        slot.store(slot.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    });
    let counter = PerCpuCounter::new();
    beside(criterion, "counter, add_local", &|| counter.add_local(1));
    beside(criterion, "counter, add", &|| counter.add(1));
}

criterion_group!(benches, additions);
criterion_main!(benches);
