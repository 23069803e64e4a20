//! A ring of interruptions from one sampler to one collector on another CPU.
//!
//! ```text
//! tail line (producer writes)   head line (consumer writes)   slots
//! +------+------+               +------+                      +--------+-----+--------+-----+--
//! | tail | lost |               | head |                      | before | now | before | now | ...
//! +------+------+               +------+                      +--------+-----+--------+-----+--
//! ```
//! Positions only go up; the slot of a position is its lower bits. Slots `head..tail` hold what was not read yet.
//! Neither side waits, calls the kernel or allocates. A full ring loses what comes and counts it.

use super::atomics::{Arc, AtomicU64, Claim, Ordering};
use std::hint::black_box;

/// The fewest entries of a ring: twice what a calibration records, so that calibrating never meets a full ring.
pub const CAPACITY_MIN: usize = 2_048;
/// The most entries of a ring: 1 MiB. At a poll every [`super::collector::COLLECT_EVERY`] that is more than two million
/// interruptions a second.
pub const CAPACITY_MAX: usize = 65_536;
/// Entries of all rings of a run together: 64 MiB, the most that 64 CPUs need. More CPUs share it.
const CAPACITY_TOTAL: usize = 64 * CAPACITY_MAX;
/// Entries that the consumer reads before it tells the producer that their slots are free.
const READ_AT_ONCE: u64 = 256;

/// Entries of each ring in a run on so many CPUs: a power of two, 65,536 up to 64 CPUs, 4,096 for 1,024, and 2,048
/// from 2,048 CPUs on.
pub fn capacity_for(cpu_count: usize) -> usize {
    let share = (CAPACITY_TOTAL / cpu_count.max(1)).clamp(CAPACITY_MIN, CAPACITY_MAX);
    // The highest power of two that is not above.
    1 << share.ilog2()
}

/// On a line of its own. 128 bytes, since processors fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
struct OwnLine<T>(T);

/// What the producer writes and the consumer reads.
#[derive(Debug)]
struct Written {
    /// The position that is written next.
    tail: AtomicU64,
    /// Entries that found the ring full.
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
    written: OwnLine<Written>,
    /// The position that is read next.
    head: OwnLine<AtomicU64>,
    /// A power of two of them.
    slots: Box<[Slot]>,
}

impl Shared {
    fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    fn slot(&self, position: u64) -> &Slot {
        // Masked by the number of slots, which is a power of two and fits usize: nothing is lost, and the index is
        // inside.
        #[expect(clippy::cast_possible_truncation)]
        let index = position as usize & (self.slots.len() - 1);
        &self.slots[index]
    }
}

/// A ring of at least `capacity` entries, rounded up to a power of two. Its memory is allocated and touched by the
/// calling thread, so on that thread's node.
pub fn ring(capacity: usize) -> (Producer, Consumer) {
    let slot = || Slot { before: AtomicU64::new(0), now: AtomicU64::new(0), claim: Claim::default() };
    let slots: Box<[Slot]> = (0..capacity.max(2).next_power_of_two()).map(|_| slot()).collect();
    for slot in &slots {
        // Not zero: the compiler may make zeroed memory of the zeros above, which is not there until it is written.
        slot.before.store(1, Ordering::Relaxed);
    }
    black_box(&slots);
    let shared = Arc::new(Shared {
        written: OwnLine(Written { tail: AtomicU64::new(0), lost: AtomicU64::new(0) }),
        head: OwnLine(AtomicU64::new(0)),
        slots,
    });
    let producer = Producer { shared: Arc::clone(&shared), tail: 0, head_seen: 0, lost: 0 };
    (producer, Consumer { shared, head: 0, lost_before: 0 })
}

/// The sampler's end.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    /// Its own copy of `tail`.
    tail: u64,
    /// `head` when it was last looked at; the true one is this or later.
    head_seen: u64,
    /// Its own copy of `lost`.
    lost: u64,
}

impl Producer {
    /// Puts in two readings of the counter. When the ring is full they are lost and counted.
    #[inline]
    pub fn push(&mut self, before: u64, now: u64) {
        if self.tail - self.head_seen >= self.shared.capacity() {
            // Acquire: pairs with the Release store in `Consumer::drain`, so that the slots before `head` have been
            // read when they are overwritten below.
            self.head_seen = self.shared.head.0.load(Ordering::Acquire);
            if self.tail - self.head_seen >= self.shared.capacity() {
                self.lost += 1;
                // Relaxed: a count and nothing else.
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

/// The collector's end.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
    /// Its own copy of `head`.
    head: u64,
    /// Lost entries that are not counted.
    lost_before: u64,
}

impl Consumer {
    /// Takes out what the ring holds at this moment, oldest first, as readings before and after an interruption.
    /// Gives their number, which the ring's capacity bounds.
    pub fn drain(&mut self, mut each: impl FnMut(u64, u64)) -> u64 {
        // Acquire: pairs with the Release store in `Producer::push`, so that the slots up to `tail` are written.
        let tail = self.shared.written.0.tail.load(Ordering::Acquire);
        let count = tail - self.head;
        while self.head < tail {
            let end = tail.min(self.head + READ_AT_ONCE);
            while self.head < end {
                let slot = self.shared.slot(self.head);
                slot.claim.read();
                each(slot.before.load(Ordering::Relaxed), slot.now.load(Ordering::Relaxed));
                self.head += 1;
            }
            // Release: pairs with the Acquire load in `Producer::push`, so that the slots are read by now.
            self.shared.head.0.store(self.head, Ordering::Release);
        }
        count
    }

    /// Forgets what the ring holds and what it has lost so far.
    pub fn forget(&mut self) {
        self.drain(|_, _| {});
        self.lost_before = self.shared.written.0.lost.load(Ordering::Relaxed);
    }

    /// Entries that found the ring full. Exact once the producer has stopped and its end was waited for.
    pub fn lost_count(&self) -> u64 {
        // Relaxed: a count and nothing else.
        self.shared.written.0.lost.load(Ordering::Relaxed) - self.lost_before
    }

    /// Entries that fit in.
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
