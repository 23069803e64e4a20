//! Positions from one publisher to one subscriber.
//!
//! ```text
//! words of the ring
//!   0  capacity in entries, a power of two
//!  16  tail: how many entries were pushed       (publisher's line)
//!  32  head: how many were taken                (subscriber's line)
//!  48  refused: how many found the ring full    (publisher's)
//!  64  entries
//! ```

use crate::{
    atomics::{AtomicU64, Ordering},
    region::Region,
};

const CAPACITY: usize = 0;
const TAIL: usize = 16;
const HEAD: usize = 32;
const REFUSED: usize = 48;
const ENTRIES: usize = 64;

/// Bytes of memory that a ring of so many entries takes.
pub const fn bytes(entries: u64) -> u64 {
    (ENTRIES as u64 + entries) * 8
}

/// The ring as both sides see it.
#[derive(Debug)]
struct Ring<R> {
    region: R,
    mask: u64,
}

impl<R: Region> Ring<R> {
    fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.region.words().get(at)
    }

    fn load(&self, at: usize, ordering: Ordering) -> u64 {
        self.word(at).map_or(0, |word| word.load(ordering))
    }

    fn store(&self, at: usize, value: u64, ordering: Ordering) {
        if let Some(word) = self.word(at) {
            word.store(value, ordering);
        }
    }

    fn entry(&self, number: u64) -> usize {
        ENTRIES + usize::try_from(number & self.mask).unwrap_or(0)
    }
}

/// The publisher's side.
#[derive(Debug)]
pub struct Pusher<R> {
    ring: Ring<R>,
    tail: u64,
    /// What the subscriber had taken when it was last looked up.
    head: u64,
}

/// The subscriber's side.
#[derive(Debug)]
pub struct Taker<R> {
    ring: Ring<R>,
    head: u64,
    /// What the publisher had pushed when it was last looked up.
    tail: u64,
}

/// Makes a ring of zeroed memory and gives the publisher's side; none when `entries` is no power of two or the memory
/// too small.
pub fn create<R: Region>(region: R, entries: u64) -> Option<Pusher<R>> {
    let is_right = entries.is_power_of_two() && has_room(&region, entries);
    let ring = Ring { region, mask: entries.wrapping_sub(1) };
    is_right.then(|| {
        // Pairs with the load in `open`.
        ring.store(CAPACITY, entries, Ordering::Release);
        Pusher { ring, tail: 0, head: 0 }
    })
}

/// Opens a ring that the publisher made; none when its first word does not fit the memory.
pub fn open<R: Region>(region: R) -> Option<Taker<R>> {
    // Pairs with the store in `create`.
    let entries = region.words().get(CAPACITY).map_or(0, |word| word.load(Ordering::Acquire));
    let is_right = entries.is_power_of_two() && has_room(&region, entries);
    let ring = Ring { region, mask: entries.wrapping_sub(1) };
    // A subscriber that starts again goes on where it was.
    let head = ring.load(HEAD, Ordering::Relaxed);
    is_right.then_some(Taker { ring, head, tail: head })
}

/// The publisher's side of a ring that was made before, where the one before it stopped: for who finishes the work of a
/// publisher that died. None when the ring's words do not fit each other.
pub fn resume<R: Region>(region: R) -> Option<Pusher<R>> {
    let ring = open(region)?.ring;
    // Pair with the stores in `Pusher::push` and `Taker::take`.
    let (tail, head) = (ring.load(TAIL, Ordering::Acquire), ring.load(HEAD, Ordering::Acquire));
    (tail.wrapping_sub(head) <= ring.mask + 1).then_some(Pusher { ring, tail, head })
}

fn has_room(region: &impl Region, entries: u64) -> bool {
    usize::try_from(entries).is_ok_and(|entries| region.words().len().saturating_sub(ENTRIES) >= entries)
}

impl<R: Region> Pusher<R> {
    /// Puts an entry in; false when the ring is full, which is counted.
    pub fn push(&mut self, entry: u64) -> bool {
        let capacity = self.ring.mask + 1;
        if self.tail.wrapping_sub(self.head) >= capacity {
            // Pairs with the store in `Taker::take`: the entry's old content was read.
            self.head = self.ring.load(HEAD, Ordering::Acquire);
            // A subscriber that writes nonsense is as good as full.
            if self.tail.wrapping_sub(self.head) >= capacity {
                let refused = self.ring.load(REFUSED, Ordering::Relaxed);
                self.ring.store(REFUSED, refused + 1, Ordering::Relaxed);
                return false;
            }
        }
        self.ring.store(self.ring.entry(self.tail), entry, Ordering::Relaxed);
        self.tail += 1;
        // Pairs with the load in `Taker::take`: the entry is seen.
        self.ring.store(TAIL, self.tail, Ordering::Release);
        true
    }

    /// How many entries found the ring full.
    pub fn refused(&self) -> u64 {
        self.ring.load(REFUSED, Ordering::Relaxed)
    }

    /// The entry that was pushed last, also when it was taken since; none before the first.
    pub fn last(&self) -> Option<u64> {
        let number = self.tail.checked_sub(1)?;
        Some(self.ring.load(self.ring.entry(number), Ordering::Relaxed))
    }
}

impl<R: Region> Taker<R> {
    /// How many entries found the ring full: what this subscriber lost.
    pub fn refused(&self) -> u64 {
        self.ring.load(REFUSED, Ordering::Relaxed)
    }

    /// The next entry.
    pub fn take(&mut self) -> Option<u64> {
        if self.head == self.tail && !self.has_more() {
            return None;
        }
        let entry = self.ring.load(self.ring.entry(self.head), Ordering::Relaxed);
        self.head += 1;
        // Pairs with the load in `Pusher::push`.
        self.ring.store(HEAD, self.head, Ordering::Release);
        Some(entry)
    }

    /// Whether an entry waits. Looks at the publisher's line.
    pub fn has_more(&mut self) -> bool {
        // Pairs with the store in `Pusher::push`.
        let tail = self.ring.load(TAIL, Ordering::Acquire);
        // A publisher that writes nonsense has pushed nothing.
        if tail.wrapping_sub(self.head) <= self.ring.mask + 1 {
            self.tail = tail;
        }
        self.tail != self.head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Heap;

    #[cfg(lowlat_loom)]
    #[test]
    fn loom_entries_arrive_whole_and_in_order() {
        use loom::{sync::Arc, thread};
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let heap = std::sync::Arc::new(Heap::zeroed(bytes(2)));
            let mut pusher = create(std::sync::Arc::clone(&heap), 2).unwrap();
            let mut taker = open(heap).unwrap();
            let refused = Arc::new(AtomicU64::new(0));
            let count = Arc::clone(&refused);
            let pushing = thread::spawn(move || {
                for entry in 1..=3 {
                    if !pusher.push(entry) {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
            let mut last = 0;
            for _ in 0..2 {
                if let Some(entry) = taker.take() {
                    assert!(entry > last, "{entry} after {last}");
                    last = entry;
                }
            }
            pushing.join().unwrap();
            let rest = std::iter::from_fn(|| taker.take()).last().unwrap_or(last);
            assert!(rest >= last && refused.load(Ordering::Relaxed) <= 1);
        });
    }

    #[cfg(not(lowlat_loom))]
    mod std_tests {
        use super::*;
        use std::{collections::VecDeque, sync::Arc, thread};

        #[test]
        fn full_is_refused_and_counted() {
            let heap = Arc::new(Heap::zeroed(bytes(4)));
            let mut pusher = create(Arc::clone(&heap), 4).unwrap();
            let mut taker = open(Arc::clone(&heap)).unwrap();
            assert_eq!(taker.take(), None);
            assert_eq!((0..6).map(|entry| pusher.push(entry)).filter(|is_in| *is_in).count(), 4);
            assert_eq!(pusher.refused(), 2);
            assert_eq!((taker.take(), taker.take()), (Some(0), Some(1)));
            // One that starts again goes on where the one before it was.
            let mut taker = open(heap).unwrap();
            assert!(pusher.push(9));
            assert_eq!(std::iter::from_fn(|| taker.take()).collect::<Vec<_>>(), [2, 3, 9]);
        }

        #[test]
        fn another_goes_on_where_a_publisher_stopped() {
            let heap = Arc::new(Heap::zeroed(bytes(4)));
            let mut pusher = create(Arc::clone(&heap), 4).unwrap();
            let mut taker = open(Arc::clone(&heap)).unwrap();
            assert_eq!(resume(Arc::clone(&heap)).unwrap().last(), None);
            (0..6).for_each(|entry| _ = pusher.push(entry));
            assert_eq!((taker.take(), taker.refused()), (Some(0), 2));
            let mut second = resume(Arc::clone(&heap)).unwrap();
            assert_eq!(second.last(), Some(3));
            assert!(second.push(7) && !second.push(8));
            assert_eq!(std::iter::from_fn(|| taker.take()).collect::<Vec<_>>(), [1, 2, 3, 7]);
            heap.words()[TAIL].store(99, Ordering::Relaxed);
            assert!(resume(heap).is_none(), "nonsense");
        }

        #[test]
        fn memory_that_does_not_fit_is_refused() {
            assert!(create(Heap::zeroed(bytes(4)), 8).is_none());
            assert!(create(Heap::zeroed(bytes(4)), 3).is_none());
            assert!(open(Heap::zeroed(bytes(4))).is_none(), "nobody has made it");
            assert!(open(Heap::zeroed(0)).is_none());
        }

        #[test]
        fn between_threads_nothing_is_lost_or_doubled() {
            const COUNT: u64 = 300_000;
            let heap = Arc::new(Heap::zeroed(bytes(256)));
            let mut pusher = create(Arc::clone(&heap), 256).unwrap();
            let mut taker = open(heap).unwrap();
            let pushing = thread::spawn(move || {
                for entry in 0..COUNT {
                    while !pusher.push(entry) {
                        thread::yield_now();
                    }
                }
            });
            for expected in 0..COUNT {
                let entry = loop {
                    match taker.take() {
                        Some(entry) => break entry,
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(entry, expected);
            }
            pushing.join().unwrap();
        }

        proptest::proptest! {
            #[test]
            fn it_is_a_queue(steps in proptest::collection::vec(proptest::option::of(0_u64..1000), 0..200)) {
                let heap = Arc::new(Heap::zeroed(bytes(8)));
                let mut pusher = create(Arc::clone(&heap), 8).unwrap();
                let mut taker = open(heap).unwrap();
                let mut model = VecDeque::new();
                for step in steps {
                    let Some(entry) = step else {
                        proptest::prop_assert_eq!(taker.take(), model.pop_front());
                        continue;
                    };
                    let has_room = model.len() < 8;
                    proptest::prop_assert_eq!(pusher.push(entry), has_room);
                    if has_room {
                        model.push_back(entry);
                    }
                }
            }

            #[test]
            fn a_hostile_other_side_is_survived(tail: u64, head: u64) {
                let heap = Arc::new(Heap::zeroed(bytes(8)));
                let mut pusher = create(Arc::clone(&heap), 8).unwrap();
                let mut taker = open(Arc::clone(&heap)).unwrap();
                heap.words()[TAIL].store(tail, Ordering::Relaxed);
                let taken = std::iter::from_fn(|| taker.take()).take(100).count();
                proptest::prop_assert!(taken <= 8);
                heap.words()[HEAD].store(head, Ordering::Relaxed);
                for entry in 0..20 {
                    pusher.push(entry);
                }
            }
        }
    }
}
