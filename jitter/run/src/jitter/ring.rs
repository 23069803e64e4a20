//! A ring of interruptions from one sampler to one collector on another CPU.
//!
//! ```text
//! tail line (producer writes)   head line (consumer writes)   slots
//! +------+------+               +------+                      +--------+-----+--------+-----+--
//! | tail | lost |               | head |                      | before | now | before | now | ...
//! +------+------+               +------+                      +--------+-----+--------+-----+--
//! ```
//! Positions only increase; the slot of a position is given by its lower bits. Slots `head..tail` contain
//! unread entries. Neither side waits, makes system calls or allocates. A full ring loses new entries and
//! counts them.

#![cfg_attr(lowlat_loom, deny(clippy::disallowed_types))]

use super::atomics::{Arc, AtomicU64, Claim, Ordering};
use std::hint::black_box;

/// Minimum entries of a ring: twice what a calibration records, so that calibrating never finds a full ring.
pub const CAPACITY_MIN: usize = 2_048;
/// Maximum entries of a ring: 1 MiB. With a poll every [`super::collector::COLLECT_EVERY`] that is more than
/// two million interruptions a second.
pub const CAPACITY_MAX: usize = 65_536;
/// Entries of all rings of a run together: 64 MiB, the maximum for 64 CPUs. More CPUs share it.
const CAPACITY_TOTAL: usize = 64 * CAPACITY_MAX;
/// Entries that the consumer reads before it frees their slots for the producer.
const READ_AT_ONCE: u64 = 256;

/// Entries of each ring in a run on this many CPUs: a power of two, 65,536 up to 64 CPUs, 4,096 for 1,024, and
/// 2,048 from 2,048 CPUs on.
pub fn capacity_for(cpu_count: usize) -> usize {
    let share = (CAPACITY_TOTAL / cpu_count.max(1)).clamp(CAPACITY_MIN, CAPACITY_MAX);
    // The largest power of two up to this.
    1 << share.ilog2()
}

/// A separate cache line: 128 bytes, because processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct OwnLine<T>(T);

/// Position and losses, which the producer writes and the consumer reads.
#[derive(Debug)]
struct ProducerLine {
    /// The position to be written next.
    tail: AtomicU64,
    /// Entries lost because the ring was full.
    lost: AtomicU64,
}

/// Relaxed throughout: `tail` and `head` order the slots.
#[derive(Debug)]
struct Slot {
    before: AtomicU64,
    now: AtomicU64,
    claim: Claim,
}

#[derive(Debug)]
struct Shared {
    written: OwnLine<ProducerLine>,
    /// The position to be read next.
    head: OwnLine<AtomicU64>,
    /// A power of two slots.
    slots: Box<[Slot]>,
}

impl Shared {
    fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    fn slot(&self, position: u64) -> &Slot {
        // Masked by the number of slots, a power of two that fits usize: nothing is lost, and the index is in
        // bounds.
        #[expect(clippy::cast_possible_truncation)]
        let index = position as usize & (self.slots.len() - 1);
        &self.slots[index]
    }
}

/// A ring of at least `capacity` entries, rounded up to a power of two. The calling thread allocates and
/// touches its memory, so it is on that thread's node.
pub fn ring(capacity: usize) -> (Producer, Consumer) {
    let slot = || Slot { before: AtomicU64::new(0), now: AtomicU64::new(0), claim: Claim::default() };
    let slots: Box<[Slot]> = (0..capacity.max(2).next_power_of_two()).map(|_| slot()).collect();
    for slot in &slots {
        // Not zero: the compiler may turn the zeros above into zeroed memory, which is not resident until it is
        // written.
        slot.before.store(1, Ordering::Relaxed);
    }
    black_box(&slots);
    let shared = Arc::new(Shared {
        written: OwnLine(ProducerLine { tail: AtomicU64::new(0), lost: AtomicU64::new(0) }),
        head: OwnLine(AtomicU64::new(0)),
        slots,
    });
    let producer = Producer { shared: Arc::clone(&shared), tail: 0, head_seen: 0, lost: 0 };
    (producer, Consumer { shared, head: 0, lost_before: 0 })
}

/// The sampler's end of a ring.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    /// Its private copy of `tail`.
    tail: u64,
    /// `head` when last read; the true value is this or later.
    head_seen: u64,
    /// Its private copy of `lost`.
    lost: u64,
}

impl Producer {
    /// Adds two readings of the counter. If the ring is full they are lost and counted.
    #[inline]
    pub fn push(&mut self, before: u64, now: u64) {
        if self.tail - self.head_seen >= self.shared.capacity() {
            // Acquire: pairs with the Release store in `Consumer::drain`, so that the slots before `head` have
            // been read when they are overwritten below.
            self.head_seen = self.shared.head.0.load(Ordering::Acquire);
            if self.tail - self.head_seen >= self.shared.capacity() {
                self.lost += 1;
                // Relaxed: only a count.
                self.shared.written.0.lost.store(self.lost, Ordering::Relaxed);
                return;
            }
        }
        let slot = self.shared.slot(self.tail);
        slot.claim.write();
        slot.before.store(before, Ordering::Relaxed);
        slot.now.store(now, Ordering::Relaxed);
        self.tail += 1;
        // Release: pairs with the Acquire load in `Consumer::drain`, so that the slot is seen as written above.
        self.shared.written.0.tail.store(self.tail, Ordering::Release);
    }
}

/// The collector's end of a ring.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
    /// Its private copy of `head`.
    head: u64,
    /// Losses before the last call of `forget`, which do not count.
    lost_before: u64,
}

impl Consumer {
    /// Takes all current entries, oldest first, as readings before and after an interruption. Returns their
    /// number, at most the ring's capacity.
    pub fn drain(&mut self, each: impl FnMut(u64, u64)) -> u64 {
        self.drain_until(u64::MAX, each)
    }

    /// Like [`Consumer::drain`], but leaves the first entry that ended after `limit` and all behind it.
    pub fn drain_until(&mut self, limit: u64, mut each: impl FnMut(u64, u64)) -> u64 {
        // Acquire: pairs with the Release store in `Producer::push`, so that the slots up to `tail` are written.
        let tail = self.shared.written.0.tail.load(Ordering::Acquire);
        let first = self.head;
        let mut is_over = false;
        while self.head < tail && !is_over {
            let end = tail.min(self.head + READ_AT_ONCE);
            while self.head < end && !is_over {
                let slot = self.shared.slot(self.head);
                slot.claim.read();
                let (before, now) = (slot.before.load(Ordering::Relaxed), slot.now.load(Ordering::Relaxed));
                is_over = now > limit;
                if !is_over {
                    each(before, now);
                    self.head += 1;
                }
            }
            // Release: pairs with the Acquire load in `Producer::push`, so that the slots have been read by
            // then.
            self.shared.head.0.store(self.head, Ordering::Release);
        }
        self.head - first
    }

    /// Discards all entries and the count of losses so far.
    pub fn forget(&mut self) {
        self.drain(|_, _| {});
        self.lost_before = self.shared.written.0.lost.load(Ordering::Relaxed);
    }

    /// Entries lost because the ring was full. Exact once the producer has stopped and been waited for.
    pub fn lost_count(&self) -> u64 {
        // Relaxed: only a count.
        self.shared.written.0.lost.load(Ordering::Relaxed) - self.lost_before
    }

    pub fn capacity(&self) -> usize {
        self.shared.slots.len()
    }
}

#[cfg(all(test, not(lowlat_loom)))]
#[path = "ring_tests.rs"]
mod tests;

#[cfg(all(test, lowlat_loom))]
#[path = "ring_loom.rs"]
mod loom_tests;
