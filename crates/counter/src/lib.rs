//! Counters that threads on different CPUs increment without sharing a cache line.
//!
//! Each CPU has a part of its own, two cache lines apart from the others. With restartable sequences (rseq(2), Linux
//! 4.18) an increment is a plain addition to the part of the CPU that the thread runs on: no atomic instruction, and
//! the kernel restarts it if the thread is moved or interrupted in the middle. Elsewhere threads share a few
//! parts and add atomically.
//!
//! [`Counter::add_local`] and [`Counter::sub_local`] touch the own part alone; [`Counter::sum`] adds all parts.
//! [`Counter::add`] also moves what has gathered into a global value now and then, so that
//! [`Counter::approximate`] is cheap. These are the operations of the kernel's `percpu_counter`.

#[cfg(not(lowlat_loom))]
mod current;
#[cfg(all(test, lowlat_loom))]
mod models;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(lowlat_loom)))]
mod rseq;

#[cfg(lowlat_loom)]
use loom::sync::atomic::{AtomicI64, Ordering};
#[cfg(not(lowlat_loom))]
use std::sync::atomic::{AtomicI64, Ordering};

/// Parts for threads without restartable sequences.
const SHARED_PARTS: usize = if cfg!(lowlat_loom) { 2 } else { 64 };
/// What a part gathers before [`Counter::add`] moves it into the global value.
const BATCH: i64 = 1_024;

/// A value on cache lines of its own: two, because processors fetch pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Part(AtomicI64);

impl Part {
    fn new() -> Self {
        Self(AtomicI64::new(0))
    }
}

/// A counter with a part for each CPU.
#[derive(Debug)]
pub struct Counter {
    /// One for each CPU that can ever exist. Only a thread on that CPU changes it, within a restartable sequence.
    own: Box<[Part]>,
    /// For threads without them. Changed atomically.
    shared: Box<[Part]>,
    global: Part,
    batch: i64,
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

impl Counter {
    /// A counter of zero.
    pub fn new() -> Self {
        Self::with_batch(BATCH)
    }

    /// A counter of zero whose parts gather up to `batch` before [`Counter::add`] moves them into the global value.
    pub fn with_batch(batch: i64) -> Self {
        let parts = |count| (0..count).map(|_| Part::new()).collect();
        Self {
            own: parts(own_parts()),
            shared: parts(SHARED_PARTS),
            global: Part::new(),
            batch: batch.max(1),
        }
    }

    /// Adds to the part of this CPU. Wraps around at the limits of the type.
    #[inline]
    pub fn add_local(&self, value: i64) {
        self.add_to_part(value);
    }

    /// Subtracts from the part of this CPU.
    #[inline]
    pub fn sub_local(&self, value: i64) {
        self.add_to_part(value.wrapping_neg());
    }

    /// Adds, and moves what this CPU has gathered into the global value when it exceeds the batch.
    #[inline]
    pub fn add(&self, value: i64) {
        let gathered = self.add_to_part(value);
        if gathered.unsigned_abs() >= self.batch.unsigned_abs() {
            self.fold(gathered);
        }
    }

    /// Subtracts, as [`Counter::add`].
    #[inline]
    pub fn sub(&self, value: i64) {
        self.add(value.wrapping_neg());
    }

    /// The global value: off by at most what [`Counter::add`] has not moved yet, the batch for each part, and by
    /// all of what was added locally.
    #[inline]
    pub fn approximate(&self) -> i64 {
        // Relaxed: pairs with the addition in `fold`; orders nothing.
        self.global.0.load(Ordering::Relaxed)
    }

    /// The sum of all parts: exact while no other thread adds. Otherwise it has perhaps some of what is added
    /// meanwhile, and what another thread is folding may be counted twice or not at all.
    pub fn sum(&self) -> i64 {
        let parts = self.own.iter().chain(&self.shared);
        // Relaxed: pairs with the additions to the parts; each is whole, and they order nothing.
        let values = parts.map(|part| part.0.load(Ordering::Relaxed));
        values.fold(self.approximate(), i64::wrapping_add)
    }

    /// Moves a value from the part of this CPU into the global value. If the thread has been moved since, it is
    /// taken from another part, which changes no sum.
    #[cold]
    fn fold(&self, value: i64) {
        // Relaxed: pairs with the load in `approximate`; orders nothing.
        self.global.0.fetch_add(value, Ordering::Relaxed);
        self.add_to_part(value.wrapping_neg());
    }

    /// Adds to a part, and returns what it holds then.
    #[inline]
    fn add_to_part(&self, value: i64) -> i64 {
        #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(lowlat_loom)))]
        if let Some(gathered) = rseq::add(&self.own, value) {
            return gathered;
        }
        self.add_shared(value)
    }

    /// Adds atomically to the part of this thread, which others may share.
    fn add_shared(&self, value: i64) -> i64 {
        let place = thread_number() % self.shared.len().max(1);
        // Relaxed: pairs with the loads in `sum` and the additions of other threads; orders nothing.
        let add = |part: &Part| part.0.fetch_add(value, Ordering::Relaxed).wrapping_add(value);
        self.shared.get(place).map_or(0, add)
    }
}

/// Whether increments on this thread are plain additions in a restartable sequence.
pub fn is_restartable() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(lowlat_loom)))]
    return rseq::is_registered();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux", not(miri), not(lowlat_loom))))]
    return false;
}

#[cfg(not(lowlat_loom))]
use current::{own_parts, thread_number};

#[cfg(lowlat_loom)]
fn own_parts() -> usize {
    0
}

#[cfg(lowlat_loom)]
loom::thread_local! {
    /// The number that a model gives this thread.
    static NUMBER: std::cell::Cell<usize> = std::cell::Cell::new(0);
}

#[cfg(lowlat_loom)]
fn thread_number() -> usize {
    NUMBER.with(std::cell::Cell::get)
}

#[cfg(all(test, not(lowlat_loom)))]
mod tests;
