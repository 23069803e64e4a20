//! Every order of few steps of both sides.

use super::*;
use crate::{
    region::Heap,
    testing::{Mortal, unless_it_ends},
};

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

/// Every entry is taken or in a gap, in order: together they contain each number once.
#[test]
fn loom_gaps_are_exact_and_in_order() {
    use loom::thread;
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let heap = std::sync::Arc::new(Heap::zeroed(bytes(1)));
        let mut pusher = create(std::sync::Arc::clone(&heap), 1).unwrap();
        let mut taker = open(heap).unwrap();
        let pushing = thread::spawn(move || {
            for entry in 1..=4 {
                pusher.push(entry);
            }
            pusher
        });
        let mut next = 1;
        let mut take = |taker: &mut Taker<_>| match taker.next() {
            Some(Taken::Entry(entry)) => {
                assert_eq!(entry, next);
                next += 1;
                true
            }
            Some(Taken::Gap(gap)) => {
                assert_eq!((gap.first, gap.last), (next, next + gap.count - 1));
                next += gap.count;
                true
            }
            other => {
                assert_eq!(other, None);
                false
            }
        };
        (0..3).for_each(|_| {
            take(&mut taker);
        });
        pushing.join().unwrap();
        while take(&mut taker) {}
        assert_eq!(next, 5);
    });
}

/// An evicted subscriber gets all pushed entries before it learns of the eviction.
#[test]
fn loom_an_eviction_is_reported_after_the_last_entry() {
    use loom::thread;
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let heap = std::sync::Arc::new(Heap::zeroed(bytes(2)));
        let mut pusher = create(std::sync::Arc::clone(&heap), 2).unwrap();
        let mut taker = open(heap).unwrap();
        let pushing = thread::spawn(move || {
            assert!(pusher.push(1) && pusher.push(2));
            pusher.evict(3);
        });
        let mut taken = Vec::new();
        taken.extend((0..2).filter_map(|_| taker.next()));
        pushing.join().unwrap();
        while taken.last() != Some(&Taken::Evicted { first: 3 }) {
            taken.push(taker.next().expect("reported at the end"));
        }
        taken.dedup();
        assert_eq!(taken, [Taken::Entry(1), Taken::Entry(2), Taken::Evicted { first: 3 }]);
    });
}

/// A held entry is not overwritten before it is released.
#[test]
fn loom_held_entries_are_not_overwritten() {
    use loom::{sync::Arc, thread};
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let heap = std::sync::Arc::new(Heap::zeroed(bytes(1)));
        let mut pusher = create(std::sync::Arc::clone(&heap), 1).unwrap();
        let mut taker = open(heap).unwrap();
        // Represents the segment: written only with credit.
        let record = Arc::new(AtomicU64::new(1));
        let written = Arc::clone(&record);
        assert!(pusher.push(1));
        let pushing = thread::spawn(move || {
            if pusher.has_room() {
                written.store(2, Ordering::Relaxed);
                assert!(pusher.push(2));
            }
        });
        assert_eq!(taker.hold(), Some(Taken::Entry(1)));
        assert_eq!(record.load(Ordering::Relaxed), 1, "not released yet");
        taker.release();
        pushing.join().unwrap();
    });
}

/// Both places hold gaps. A subscriber takes the first one and dies, at any access, and its successor continues
/// while the publisher pushes: the place is not the publisher's before the gap is counted.
#[test]
fn loom_a_taken_gap_keeps_its_place_until_it_is_counted() {
    use loom::thread;
    // It opens the ring with the first 4 accesses; from 9 to 11 it has taken the gap, and not counted it.
    for accesses in [4, 8, 9, 10, 11, 12] {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let heap = std::sync::Arc::new(Heap::zeroed(bytes(2)));
            let mut pusher = create(std::sync::Arc::clone(&heap), 2).unwrap();
            let mut taker = open(std::sync::Arc::clone(&heap)).unwrap();
            let pushed = [1, 2, 3].map(|entry| pusher.push(entry));
            assert_eq!((pushed, taker.take()), ([true, true, false], Some(1)));
            assert_eq!(([4, 5].map(|entry| pusher.push(entry)), taker.take()), ([true, false], Some(2)));
            let pushing = thread::spawn(move || [6, 7].map(|entry| pusher.push(entry)));
            let told = unless_it_ends(|| open(Mortal::new(&heap, accesses)).unwrap().next());
            let mut next = match told {
                Some(Some(Taken::Gap(gap))) => gap.last + 1,
                None if heap.words()[place(0) + gap::STATE].load(Ordering::Relaxed) == gap::TAKEN => 4,
                other => {
                    assert_eq!(other, None);
                    3
                }
            };
            let mut taker = open(heap).unwrap();
            let mut take = |next: &mut u64| match taker.next() {
                Some(Taken::Entry(entry)) => {
                    assert_eq!(entry, *next);
                    *next += 1;
                    true
                }
                Some(Taken::Gap(gap)) => {
                    assert_eq!((gap.first, gap.last), (*next, *next + gap.count - 1));
                    *next += gap.count;
                    true
                }
                other => {
                    assert_eq!(other, None);
                    false
                }
            };
            take(&mut next);
            pushing.join().unwrap();
            while take(&mut next) {}
            assert_eq!(next, 8);
        });
    }
}
