//! Counters that threads on different CPUs increment without sharing a cache line.
//!
//! Each CPU has a part of its own, two cache lines apart from the others. With restartable sequences (rseq(2), Linux
//! 4.18) an increment is a plain addition to the part of the CPU that the thread runs on: no atomic instruction, and
//! the kernel restarts it if the thread is moved or interrupted in the middle. Elsewhere threads share a few
//! parts and add atomically.
//!
//! [`PerCpuCounter::add_local`] and [`PerCpuCounter::sub_local`] touch the own part alone; [`PerCpuCounter::sum`] adds all parts.
//! [`PerCpuCounter::add`] also adds what has gathered to a global value now and then, so that
//! [`PerCpuCounter::approximate`] is cheap. These are the operations of the kernel's `percpu_counter`.
//!
//! A slot that a thread owns and increments without any of this is faster: about 0.6 of the time of
//! [`PerCpuCounter::add_local`] (`benches/counter.rs`). It is right for a counter of a fixed set of threads that one place
//! starts and ends. A [`PerCpuCounter`] needs no list of threads: its memory grows with CPUs, a thread may come from a pool
//! or from another library, and what it has added stays when it ends.

#[cfg(not(lowlat_loom))]
mod current;
#[cfg(all(test, lowlat_loom))]
mod loom_tests;
#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(lowlat_loom)))]
mod rseq;

#[cfg(lowlat_loom)]
use loom::sync::atomic::{AtomicI64, Ordering};
#[cfg(not(lowlat_loom))]
use std::sync::atomic::{AtomicI64, Ordering};

/// Parts for threads without restartable sequences.
const SHARED_PARTS: usize = if cfg!(lowlat_loom) { 2 } else { 64 };
/// Amount that a part gathers before [`PerCpuCounter::add`] adds it to the global value.
const BATCH: i64 = 1_024;

/// A value on cache lines of its own: two, because processors fetch pairs.
#[derive(Debug)]
#[repr(align(128))]
struct Part {
    /// All that was added here.
    value: AtomicI64,
    /// Part of it that the global value includes.
    published: AtomicI64,
}

impl Part {
    fn new() -> Self {
        Self { value: AtomicI64::new(0), published: AtomicI64::new(0) }
    }
}

/// A counter with a part for each CPU.
#[derive(Debug)]
pub struct PerCpuCounter {
    /// One for each CPU that can ever exist. Only a thread on that CPU changes it, within a restartable sequence.
    own: Box<[Part]>,
    /// For threads without them. Changed atomically.
    shared: Box<[Part]>,
    /// Sum of what all parts have published.
    global: Part,
    batch: i64,
}

impl Default for PerCpuCounter {
    fn default() -> Self {
        Self::new()
    }
}

impl PerCpuCounter {
    /// Creates a counter with value zero.
    pub fn new() -> Self {
        Self::with_batch(BATCH)
    }

    /// A counter of zero whose parts gather up to `batch` before [`PerCpuCounter::add`] adds that to the global value.
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

    /// Adds, and adds what this CPU has gathered to the global value when it exceeds the batch.
    #[inline]
    pub fn add(&self, value: i64) {
        let Some(part) = self.add_to_part(value) else { return };
        // Relaxed: a hint; `publish` looks again.
        if self.is_due(part.value.load(Ordering::Relaxed), part.published.load(Ordering::Relaxed)) {
            self.publish(part);
        }
    }

    /// Subtracts; otherwise the same as [`PerCpuCounter::add`].
    #[inline]
    pub fn sub(&self, value: i64) {
        self.add(value.wrapping_neg());
    }

    /// The global value: off by at most what [`PerCpuCounter::add`] has not published yet, the batch for each part, and by
    /// all of what was added locally.
    #[inline]
    pub fn approximate(&self) -> i64 {
        // Relaxed: pairs with the addition in `publish`; orders nothing.
        self.global.value.load(Ordering::Relaxed)
    }

    /// The sum of all parts: exact while no other thread adds, otherwise with perhaps some of what is added at the same
    /// time. It never decreases while nothing is subtracted: a thread that has seen a sum sees at least that one later.
    pub fn sum(&self) -> i64 {
        let parts = self.own.iter().chain(&self.shared);
        // Relaxed: pairs with the additions to the parts; each is whole, and they order nothing.
        parts.map(|part| part.value.load(Ordering::Relaxed)).fold(0, i64::wrapping_add)
    }

    fn is_due(&self, held: i64, published: i64) -> bool {
        held.wrapping_sub(published).unsigned_abs() >= self.batch.unsigned_abs()
    }

    /// Adds what a part has gathered to the global value. Its own value stays, so that no sum sees it twice or not at
    /// all.
    #[cold]
    fn publish(&self, part: &Part) {
        // Acquire, here and in the exchange: pairs with the release of the exchange of other threads, so that the value
        // that is loaded next is not older than what they published.
        let mut published = part.published.load(Ordering::Acquire);
        loop {
            // Relaxed: pairs with the additions to this part, of which this thread made one; orders nothing.
            let held = part.value.load(Ordering::Relaxed);
            if !self.is_due(held, published) {
                return;
            }
            match part.published.compare_exchange(published, held, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    // Relaxed: pairs with the load in `approximate`; orders nothing.
                    self.global.value.fetch_add(held.wrapping_sub(published), Ordering::Relaxed);
                    return;
                }
                Err(by_another) => published = by_another,
            }
        }
    }

    /// Adds to a part, and returns it.
    #[inline]
    fn add_to_part(&self, value: i64) -> Option<&Part> {
        #[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri), not(lowlat_loom)))]
        if let Some(part) = rseq::add(&self.own, value) {
            return Some(part);
        }
        self.add_shared(value)
    }

    /// Adds atomically to the part of this thread, which others may share.
    fn add_shared(&self, value: i64) -> Option<&Part> {
        let part = self.shared.get(thread_number() % self.shared.len().max(1))?;
        // Relaxed: pairs with the loads in `sum` and the additions of other threads; orders nothing.
        part.value.fetch_add(value, Ordering::Relaxed);
        Some(part)
    }
}

/// True if increments on this thread are plain additions in a restartable sequence.
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
