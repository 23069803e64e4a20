//! The ring compared with a model, and between two threads. For every order of the memory model see the loom
//! tests.

use super::*;
use proptest::prelude::*;
use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

fn drained(consumer: &mut Consumer) -> Vec<(u64, u64)> {
    let mut got = Vec::new();
    let count = consumer.drain(|before, now| got.push((before, now)));
    assert_eq!(count, got.len() as u64);
    got
}

#[test]
fn capacities_are_powers_of_two_and_share_a_budget() {
    for (cpus, capacity) in
        [(0, 65_536), (1, 65_536), (64, 65_536), (65, 32_768), (128, 32_768), (1_024, 4_096), (8_192, 2_048)]
    {
        assert_eq!(capacity_for(cpus), capacity, "{cpus} CPUs");
        assert!(cpus * capacity * size_of::<Slot>() <= 64 << 20 || capacity == CAPACITY_MIN);
    }
    assert_eq!((ring(0).1.capacity(), ring(3).1.capacity(), ring(64).1.capacity()), (2, 4, 64));
}

#[test]
fn both_sides_have_separate_lines() {
    let shared = ring(2).0.shared;
    let (tail, head) = (&raw const shared.written as usize, &raw const shared.head as usize);
    assert!(tail.abs_diff(head) >= 128 && tail % 128 == 0 && head % 128 == 0);
    let slots = shared.slots.as_ptr() as usize;
    assert!(slots.abs_diff(tail) >= 64 && slots.abs_diff(head) >= 64, "slots are allocated apart");
}

#[test]
fn a_full_ring_counts_its_losses_and_continues() {
    let (mut producer, mut consumer) = ring(4);
    for n in 0..7 {
        producer.push(n, n + 100);
    }
    assert_eq!(consumer.lost_count(), 3);
    assert_eq!(drained(&mut consumer), [(0, 100), (1, 101), (2, 102), (3, 103)], "the oldest stay");
    producer.push(7, 107);
    assert_eq!((drained(&mut consumer), consumer.lost_count()), (vec![(7, 107)], 3));
}

#[test]
fn discarded_entries_are_not_counted() {
    let (mut producer, mut consumer) = ring(2);
    for n in 0..5 {
        producer.push(n, n);
    }
    consumer.forget();
    assert_eq!((consumer.lost_count(), drained(&mut consumer)), (0, vec![]));
    producer.push(9, 9);
    assert_eq!(drained(&mut consumer), [(9, 9)]);
}

#[test]
fn nothing_is_torn_or_out_of_order_between_two_threads() {
    const COUNT: u64 = 200_000;
    let (mut producer, mut consumer) = ring(64);
    let is_over = AtomicBool::new(false);
    let (mut last, mut got) = (None, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..COUNT {
                producer.push(n, !n);
            }
            // Release: pairs with the Acquire load below; all pushes are seen once this is.
            is_over.store(true, Ordering::Release);
        });
        loop {
            let was_over = is_over.load(Ordering::Acquire);
            got += consumer.drain(|before, now| {
                assert_eq!(now, !before);
                assert!(last.is_none_or(|last| last < before));
                last = Some(before);
            });
            if was_over {
                break;
            }
            thread::yield_now();
        }
    });
    assert_eq!(got + consumer.lost_count(), COUNT);
    assert!(got >= 64);
}

#[derive(Debug, Clone)]
enum RingStep {
    Push(u64, u64),
    Drain,
}

proptest! {
    #[test]
    fn it_is_a_bounded_queue(
        capacity_log in 1_u32..5,
        steps in proptest::collection::vec(
            prop_oneof![
                8 => (any::<u64>(), any::<u64>()).prop_map(|(before, now)| RingStep::Push(before, now)),
                1 => Just(RingStep::Drain),
            ],
            0..300,
        ),
    ) {
        let capacity = 1_usize << capacity_log;
        let (mut producer, mut consumer) = ring(capacity);
        let (mut model, mut lost) = (VecDeque::new(), 0);
        for step in steps {
            match step {
                RingStep::Push(before, now) => {
                    producer.push(before, now);
                    if model.len() < capacity { model.push_back((before, now)) } else { lost += 1 }
                }
                RingStep::Drain => prop_assert_eq!(drained(&mut consumer), model.drain(..).collect::<Vec<_>>()),
            }
            prop_assert_eq!(consumer.lost_count(), lost);
        }
        prop_assert_eq!(drained(&mut consumer), Vec::from(model));
    }
}
