//! A queue with an exact account of entries that found no room.

use super::*;
use crate::region::Heap;
use std::{collections::VecDeque, sync::Arc, thread};

#[test]
fn a_successor_resumes_where_a_publisher_stopped() {
    let heap = Arc::new(Heap::zeroed(bytes(4)));
    let mut pusher = create(Arc::clone(&heap), 4).unwrap();
    let mut taker = open(Arc::clone(&heap)).unwrap();
    let resumed = || resume(Arc::clone(&heap));
    assert_eq!(resumed().unwrap().last(), None);
    (0..3).for_each(|entry| _ = pusher.push(entry));
    assert_eq!(resumed().unwrap().last(), Some(2));
    (3..6).for_each(|entry| _ = pusher.push(entry));
    // The last one found no room.
    let mut second = resumed().unwrap();
    assert_eq!((second.last(), second.push(6)), (Some(5), false));
    assert_eq!((0..4).map(|_| taker.take()).collect::<Vec<_>>(), [0, 1, 2, 3].map(Some));
    assert!(second.push(7));
    assert_eq!(taker.next(), Some(Taken::Gap(RingGap { count: 3, first: 4, last: 6 })));
    assert_eq!(taker.next(), Some(Taken::Entry(7)));
    // The publisher died while it extended a gap.
    (8..14).for_each(|entry| _ = second.push(entry));
    let word = place(1) + gap::STATE;
    heap.words()[word].store(2 << 2 | gap::CHANGING, Ordering::Relaxed);
    // It had not yet written the entry into the gap.
    heap.words()[ADDING].store(14, Ordering::Relaxed);
    assert_eq!((0..4).map(|_| taker.take()).collect::<Vec<_>>(), [8, 9, 10, 11].map(Some));
    assert_eq!(taker.take(), None, "nothing until the change is complete");
    assert_eq!(resumed().unwrap().last(), Some(14));
    assert!(matches!(taker.next(), Some(Taken::Gap(RingGap { count: 3, first: 12, last: 14 }))));
    // The publisher died between an entry and its count: the entry was seen.
    assert!(second.push(15));
    let tail = heap.words()[TAIL].fetch_sub(1, Ordering::Relaxed);
    assert_eq!(taker.take(), Some(15));
    let mut third = resumed().unwrap();
    assert_eq!((third.last(), third.push(16), taker.take()), (Some(15), true, Some(16)));
    assert_eq!(heap.words()[TAIL].load(Ordering::Relaxed), tail + 1);
    heap.words()[TAIL].store(99, Ordering::Relaxed);
    assert!(resumed().is_none(), "nonsense");
}

/// The words of a dead publisher are as untrusted as any other's.
#[test]
fn a_successor_resumes_with_the_largest_numbers() {
    for at in [HEAD, GAPS] {
        let heap = Arc::new(Heap::zeroed(bytes(4)));
        create(Arc::clone(&heap), 4).unwrap();
        for word in [at, HEAD, TAIL] {
            heap.words()[word].store(u64::MAX, Ordering::Relaxed);
        }
        let mut pusher = resume(Arc::clone(&heap)).unwrap();
        // In a lap with this number zeros are a valid entry, which it takes for the previous one's.
        assert_eq!((0..40).filter(|entry| pusher.push(*entry)).count(), 3);
        let _ = pusher.last();
        let mut taker = open(heap).unwrap();
        (0..40).for_each(|_| _ = taker.next());
        (0..40).for_each(|entry| _ = pusher.push(entry));
    }
}

#[test]
fn entries_to_a_full_ring_are_refused_and_counted() {
    let heap = Arc::new(Heap::zeroed(bytes(4)));
    let mut pusher = create(Arc::clone(&heap), 4).unwrap();
    let mut taker = open(Arc::clone(&heap)).unwrap();
    assert_eq!(taker.take(), None);
    assert_eq!((0..6).map(|entry| pusher.push(entry)).filter(|is_in| *is_in).count(), 4);
    assert_eq!(pusher.refused(), 2);
    assert_eq!((taker.take(), taker.take()), (Some(0), Some(1)));
    // A restarted taker resumes where its predecessor stopped.
    let mut taker = open(heap).unwrap();
    assert!(pusher.push(9));
    assert_eq!(std::iter::from_fn(|| taker.take()).collect::<Vec<_>>(), [2, 3, 9]);
}

fn taken(taker: &mut Taker<Arc<Heap>>) -> Vec<Taken> {
    std::iter::from_fn(|| taker.next()).take(1000).collect()
}

#[test]
fn a_gap_is_reported_where_it_happened() {
    let heap = Arc::new(Heap::zeroed(bytes(2)));
    let mut pusher = create(Arc::clone(&heap), 2).unwrap();
    let mut taker = open(heap).unwrap();
    (0..5).for_each(|entry| {
        pusher.push(entry * 10);
    });
    assert_eq!(taker.next(), Some(Taken::Entry(0)));
    assert!(pusher.push(50), "after the gap");
    let gap = RingGap { count: 3, first: 20, last: 40 };
    assert_eq!(taken(&mut taker), [Taken::Entry(10), Taken::Gap(gap), Taken::Entry(50)]);
    assert!(!taker.has_more());
}

#[test]
fn a_gap_is_reported_even_without_a_later_entry() {
    let heap = Arc::new(Heap::zeroed(bytes(1)));
    let mut pusher = create(Arc::clone(&heap), 1).unwrap();
    let mut taker = open(heap).unwrap();
    (1..=3).for_each(|entry| {
        pusher.push(entry);
    });
    let gap = RingGap { count: 2, first: 2, last: 3 };
    assert_eq!(taken(&mut taker), [Taken::Entry(1), Taken::Gap(gap)]);
    assert_eq!(taken(&mut taker), []);
}

/// More gaps than places, for a subscriber that takes one entry at a time: the ring then stays shut, and still
/// every lost entry is reported.
#[test]
fn more_gaps_than_places_are_reported_one_by_one() {
    let heap = Arc::new(Heap::zeroed(bytes(64)));
    let mut pusher = create(Arc::clone(&heap), 64).unwrap();
    let mut taker = open(heap).unwrap();
    let (mut next, mut entry, mut gaps) = (0, 0, 0);
    let mut check = |taken| {
        next += match taken {
            Taken::Entry(entry) => {
                assert_eq!(entry, next);
                1
            }
            Taken::Gap(gap) => {
                assert_eq!((gap.first, gap.last), (next, next + gap.count - 1));
                gaps += 1;
                gap.count
            }
            Taken::Evicted { .. } => panic!("nothing evicts it"),
        };
        next
    };
    (0..64).for_each(|_| {
        pusher.push(entry);
        entry += 1;
    });
    for _ in 0..500 {
        check(taker.next().unwrap());
        (0..2).for_each(|_| {
            pusher.push(entry);
            entry += 1;
        });
    }
    let last = taken(&mut taker).into_iter().map(check).last();
    assert_eq!(last, Some(entry));
    assert!(gaps > GAP_PLACES);
}

#[test]
fn a_restarted_subscriber_gets_the_gaps_not_yet_reported() {
    let heap = Arc::new(Heap::zeroed(bytes(2)));
    let mut pusher = create(Arc::clone(&heap), 2).unwrap();
    let mut taker = open(Arc::clone(&heap)).unwrap();
    (0..4).for_each(|entry| {
        pusher.push(entry);
    });
    assert_eq!(taker.hold(), Some(Taken::Entry(0)));
    // It ends before it releases the entry.
    let mut taker = open(Arc::clone(&heap)).unwrap();
    assert_eq!(taken(&mut taker).len(), 3);
    assert_eq!(taken(&mut open(heap).unwrap()), []);
}

/// All places hold gaps, and a subscriber ends after it took the first one and before it counted it.
#[test]
fn a_gap_taken_but_not_counted_keeps_its_place() {
    let heap = Arc::new(Heap::zeroed(bytes(64)));
    let mut pusher = create(Arc::clone(&heap), 64).unwrap();
    let mut taker = open(Arc::clone(&heap)).unwrap();
    let mut entries = 0..;
    let mut push = |count| entries.by_ref().take(count).filter(|entry| pusher.push(*entry)).count();
    assert_eq!(push(64), 64);
    for _ in 0..GAP_PLACES {
        assert!(taker.take().is_some());
        assert_eq!(push(2), 1, "the other one is a gap");
    }
    let first = heap.words()[place(0) + gap::AT].load(Ordering::Relaxed);
    while heap.words()[HEAD].load(Ordering::Relaxed) < first {
        assert!(taker.take().is_some());
    }
    heap.words()[place(0) + gap::STATE].store(gap::TAKEN, Ordering::Relaxed);
    push(100);
    let mut taker = open(Arc::clone(&heap)).unwrap();
    // Entry 65 was the gap.
    let mut next = first + 1;
    while let Some(taken) = taker.next() {
        next += match taken {
            Taken::Entry(entry) => {
                assert_eq!(entry, next);
                1
            }
            Taken::Gap(gap) => {
                assert_eq!((gap.first, gap.last), (next, next + gap.count - 1));
                gap.count
            }
            Taken::Evicted { .. } => panic!("nothing evicts it"),
        };
        push(1);
        if next > 1000 {
            break;
        }
    }
    assert!(next > 1000, "{next}");
}

#[test]
fn the_oldest_entry_is_the_first_unreleased_one() {
    let heap = Arc::new(Heap::zeroed(bytes(4)));
    let mut pusher = create(Arc::clone(&heap), 4).unwrap();
    let mut taker = open(heap).unwrap();
    assert_eq!((pusher.oldest(), pusher.behind()), (None, 0));
    (10..13).for_each(|entry| {
        pusher.push(entry);
    });
    assert_eq!((taker.hold(), taker.hold()), (Some(Taken::Entry(10)), Some(Taken::Entry(11))));
    assert_eq!((pusher.oldest(), pusher.is_behind(2)), (Some(10), true));
    taker.release();
    assert_eq!((pusher.oldest(), pusher.is_behind(1)), (Some(12), false));
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    assert!(create(Heap::zeroed(bytes(4)), 8).is_none());
    assert!(create(Heap::zeroed(bytes(4)), 3).is_none());
    assert!(open(Heap::zeroed(bytes(4))).is_none(), "not created yet");
    assert!(open(Heap::zeroed(0)).is_none());
}

#[test]
fn between_threads_nothing_is_lost_or_doubled() {
    const COUNT: u64 = if cfg!(miri) { 500 } else { 300_000 };
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

#[test]
fn between_threads_every_loss_is_reported() {
    const COUNT: u64 = if cfg!(miri) { 500 } else { 300_000 };
    let heap = Arc::new(Heap::zeroed(bytes(16)));
    let mut pusher = create(Arc::clone(&heap), 16).unwrap();
    let mut taker = open(heap).unwrap();
    let pushing = thread::spawn(move || {
        for entry in 0..COUNT {
            pusher.push(entry);
            if entry % 50 == 0 {
                thread::yield_now();
            }
        }
        pusher.refused()
    });
    let (mut next, mut lost) = (0, 0);
    while next < COUNT {
        match taker.next() {
            Some(Taken::Entry(entry)) => {
                assert_eq!(entry, next);
                next += 1;
            }
            Some(Taken::Gap(gap)) => {
                assert_eq!((gap.first, gap.last), (next, next + gap.count - 1));
                (next, lost) = (next + gap.count, lost + gap.count);
            }
            _ => thread::yield_now(),
        }
    }
    assert_eq!(pushing.join().unwrap(), lost);
}

proptest::proptest! {
    #![proptest_config(crate::testing::cases(256))]

    /// Compared with a list of pushed entries: pushes, takes, holds and restarts in any order.
    #[test]
    fn it_is_a_queue_with_gaps(steps in proptest::collection::vec(0_u8..10, 0..400), size in 0_u32..4) {
        let heap = Arc::new(Heap::zeroed(bytes(1 << size)));
        let mut pusher = create(Arc::clone(&heap), 1 << size).unwrap();
        let mut taker = open(Arc::clone(&heap)).unwrap();
        // The next item, and the next item after a restart.
        let (mut entry, mut next, mut given_back, mut pushed) = (0, 0, 0, Vec::new());
        for step in steps {
            match step {
                0..=5 => {
                    let has_room = pushed.iter().filter(|entry| **entry >= given_back).count() < 1 << size;
                    if pusher.push(entry) {
                        proptest::prop_assert!(has_room);
                        pushed.push(entry);
                    }
                    entry += 1;
                }
                6..=8 => match taker.hold() {
                    Some(Taken::Entry(found)) => {
                        proptest::prop_assert_eq!(found, next);
                        proptest::prop_assert!(pushed.contains(&found));
                        next += 1;
                        if step < 8 {
                            taker.release();
                            given_back = next;
                        }
                    }
                    Some(Taken::Gap(gap)) => {
                        proptest::prop_assert_eq!((gap.first, gap.last), (next, next + gap.count - 1));
                        next += gap.count;
                    }
                    other => {
                        proptest::prop_assert_eq!(other, None);
                        proptest::prop_assert_eq!(next, entry, "everything was reported");
                    }
                },
                _ => {
                    taker.release();
                    given_back = next;
                    taker = open(Arc::clone(&heap)).unwrap();
                }
            }
        }
    }

    #[test]
    fn hostile_words_are_survived(words in proptest::collection::vec(proptest::num::u64::ANY, 1..130), at in 0_usize..136) {
        let heap = Arc::new(Heap::zeroed(bytes(8)));
        let mut pusher = create(Arc::clone(&heap), 8).unwrap();
        let mut taker = open(Arc::clone(&heap)).unwrap();
        (0..12).for_each(|entry| { pusher.push(entry); });
        taker.take();
        let count = heap.words().len();
        for (offset, word) in words.iter().enumerate() {
            heap.words()[(at + offset) % count].store(*word, Ordering::Relaxed);
        }
        let found = (0..200).map_while(|_| taker.hold()).filter(|taken| !matches!(taken, Taken::Evicted { .. }));
        proptest::prop_assert!(found.count() <= 8 + 16);
        for entry in 0..40 {
            pusher.push(entry);
            let _ = (pusher.oldest(), pusher.is_behind(2), taker.take());
        }
        if let Some(mut taker) = open(heap) {
            (0..200).map_while(|_| taker.next()).for_each(drop);
        }
    }

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
    fn a_hostile_other_side_is_survived(
        tail: u64,
        head: u64,
        words in proptest::collection::vec(proptest::num::u64::ANY, 8),
    ) {
        let heap = Arc::new(Heap::zeroed(bytes(8)));
        let mut pusher = create(Arc::clone(&heap), 8).unwrap();
        let mut taker = open(Arc::clone(&heap)).unwrap();
        heap.words()[TAIL].store(tail, Ordering::Relaxed);
        heap.words()[ENTRIES..].iter().zip(words).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        let taken = std::iter::from_fn(|| taker.take()).take(100).count();
        proptest::prop_assert!(taken <= 8, "each word belongs to one lap");
        heap.words()[HEAD].store(head, Ordering::Relaxed);
        for entry in 0..20 {
            pusher.push(entry);
        }
    }
}
