//! Each position is taken, conflated or still pending, and taken positions only increase.

use super::*;
use crate::region::Heap;
use std::sync::Arc;

fn pair(instruments: u32) -> (Arc<Heap>, LatestPutter<Arc<Heap>>, LatestTaker<Arc<Heap>>) {
    let heap = Arc::new(Heap::zeroed(bytes(instruments)));
    let putter = create(Arc::clone(&heap), instruments).unwrap();
    let taker = open(Arc::clone(&heap)).unwrap();
    (heap, putter, taker)
}

#[cfg(lowlat_loom)]
mod loom_tests {
    use super::*;
    use loom::thread;

    /// Two instruments; the second one is put twice. `newest` is stored last of each put, so the model tries
    /// the orders of the place, the bit and the word before it.
    #[test]
    fn loom_positions_go_up_and_the_newest_arrives() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let (_, mut putter, mut taker) = pair(2);
            let record = loom::sync::Arc::new(AtomicU64::new(0));
            let written = loom::sync::Arc::clone(&record);
            let putting = thread::spawn(move || {
                let mut conflated = 0;
                for (instrument, position) in [(1, 1), (0, 2), (1, 3)] {
                    // Represents the record, which must be visible to any thread that gets its position.
                    written.store(position, Ordering::Relaxed);
                    conflated += u64::from(putter.put(instrument, position) == Put::Conflated);
                }
                conflated
            });
            let (mut last, mut count) = (0, 0);
            let mut take = |taker: &mut LatestTaker<Arc<Heap>>| {
                while let Some(position) = taker.take() {
                    assert!(position > last, "{position} after {last}");
                    assert!(record.load(Ordering::Relaxed) >= position);
                    (last, count) = (position, count + 1);
                }
            };
            take(&mut taker);
            let conflated = putting.join().unwrap();
            take(&mut taker);
            assert_eq!((last, count + conflated), (3, 3));
            assert!(!taker.has_more());
        });
    }
}

#[cfg(not(lowlat_loom))]
mod std_tests {
    use super::*;
    use proptest::prelude::*;
    use std::{collections::BTreeMap, thread};

    fn all<R: Region>(taker: &mut LatestTaker<R>) -> Vec<u64> {
        std::iter::from_fn(|| taker.take()).take(10_000).collect()
    }

    #[test]
    fn the_newest_of_each_instrument_in_order() {
        let (_, mut putter, mut taker) = pair(70);
        assert!(!taker.has_more() && taker.take().is_none());
        for (instrument, position) in [(69, 0), (3, 64), (69, 128), (0, 192)] {
            assert_ne!(putter.put(instrument, position), Put::Outside);
        }
        assert!(taker.has_more());
        assert_eq!(all(&mut taker), [64, 128, 192]);
        assert_eq!((putter.conflated(), taker.conflated(), taker.has_more()), (1, 1, false));
        assert_eq!((putter.put(70, 256), putter.outside()), (Put::Outside, 1));
        assert_eq!(putter.put(69, 320), Put::New);
        assert_eq!(all(&mut taker), [320]);
    }

    #[test]
    fn an_instrument_conflated_during_taking_is_returned_once_and_later() {
        let (_, mut putter, mut taker) = pair(3);
        for position in 0..3 {
            putter.put(u32::try_from(position).unwrap(), position);
        }
        assert_eq!(taker.take(), Some(0));
        assert_eq!(putter.put(2, 3), Put::Conflated);
        assert_eq!(putter.put(0, 4), Put::New);
        assert_eq!(all(&mut taker), [1, 3, 4]);
    }

    #[test]
    fn a_restarted_subscriber_gets_the_positions_not_yet_taken() {
        let (heap, mut putter, mut taker) = pair(3);
        (0..3).for_each(|position| {
            putter.put(u32::try_from(position).unwrap(), position);
        });
        // It has gathered all three, and taken one.
        assert_eq!(taker.take(), Some(0));
        drop(taker);
        assert_eq!(all(&mut open(heap).unwrap()), [1, 2]);
    }

    #[test]
    fn memory_that_does_not_fit_is_refused() {
        assert!(create(Heap::zeroed(bytes(4)), 0).is_none());
        assert!(create(Heap::zeroed(bytes(4)), 500).is_none());
        assert!(open(Heap::zeroed(bytes(4))).is_none(), "not created yet");
        assert!(open(Heap::zeroed(0)).is_none());
    }

    #[test]
    fn between_threads_every_position_is_taken_or_conflated() {
        const COUNT: u64 = if cfg!(miri) { 300 } else { 200_000 };
        let (_, mut putter, mut taker) = pair(100);
        let publisher = thread::spawn(move || {
            (0..COUNT).for_each(|position| {
                putter.put(u32::try_from(position * 7 % 100).unwrap(), position);
            });
        });
        let (mut last, mut count) = (None, 0);
        while last != Some(COUNT - 1) {
            match taker.take() {
                Some(position) => {
                    assert!(last < Some(position), "{position} after {last:?}");
                    (last, count) = (Some(position), count + 1);
                }
                None => thread::yield_now(),
            }
        }
        publisher.join().unwrap();
        assert_eq!(count + taker.conflated(), COUNT);
    }

    proptest! {
        #![proptest_config(crate::testing::cases(256))]

        /// Compared with a map from instrument to its newest position.
        #[test]
        fn it_is_a_map_of_the_newest(steps in proptest::collection::vec(proptest::option::of(0_u32..130), 0..300)) {
            let (_, mut putter, mut taker) = pair(129);
            let (mut model, mut conflated, mut last) = (BTreeMap::new(), 0, None);
            for (position, step) in (0_u64..).zip(steps) {
                let Some(instrument) = step else {
                    let taken = taker.take();
                    prop_assert_eq!(taken.is_none(), model.is_empty());
                    let Some(taken) = taken else { continue };
                    prop_assert!(last < Some(taken));
                    last = Some(taken);
                    let owner = model.iter().find(|(_, position)| **position == taken).map(|(owner, _)| *owner);
                    prop_assert!(owner.is_some(), "only the newest of an instrument");
                    model.remove(&owner.unwrap());
                    continue;
                };
                if instrument == 129 {
                    prop_assert_eq!(putter.put(instrument, position), Put::Outside);
                    continue;
                }
                let was_there = model.insert(instrument, position).is_some();
                conflated += u64::from(was_there);
                prop_assert_eq!(putter.put(instrument, position), if was_there { Put::Conflated } else { Put::New });
            }
            let mut rest: Vec<_> = model.into_values().collect();
            rest.sort_unstable();
            prop_assert_eq!(all(&mut taker), rest);
            prop_assert_eq!(putter.conflated(), conflated);
        }

        #[test]
        fn a_hostile_other_side_is_survived(words in proptest::collection::vec(any::<u64>(), 1..80), at in 0_usize..200) {
            let (heap, mut putter, mut taker) = pair(100);
            (0..50).for_each(|position| { putter.put(u32::try_from(position).unwrap(), position); });
            taker.take();
            let count = heap.words().len();
            for (offset, word) in words.iter().enumerate() {
                heap.words()[(at + offset) % count].store(*word, Ordering::Relaxed);
            }
            prop_assert!(all(&mut taker).len() <= 300);
            (0..50).for_each(|position| { putter.put(u32::try_from(position).unwrap(), position); });
            if let Some(mut taker) = open(heap) {
                prop_assert!(all(&mut taker).len() <= 300);
            }
        }
    }
}
