//! The ring in every order allowed by the memory model.
//!
//! RUSTFLAGS="--cfg lowlat_loom" cargo test -p lowlat-jitter-run --lib loom_

use super::*;
use loom::thread;

/// Pairs whose halves belong together, so that a torn or stale slot is detected.
fn pair(n: u64) -> (u64, u64) {
    (10 * n + 7, 10 * n + 9)
}

#[test]
fn entries_that_are_not_lost_arrive_intact_and_in_order() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring(2);
        let sampler = thread::spawn(move || {
            for n in 0..3 {
                let (before, now) = pair(n);
                producer.push(before, now);
            }
        });
        let mut got = Vec::new();
        consumer.drain(|before, now| got.push((before, now)));
        consumer.drain(|before, now| got.push((before, now)));
        sampler.join().unwrap();
        consumer.drain(|before, now| got.push((before, now)));
        let lost = consumer.lost_count();
        assert_eq!(got.len() as u64 + lost, 3);
        // The first two always fit; the third does if one of them was read before.
        let all = [pair(0), pair(1), pair(2)];
        assert_eq!(got, all[..got.len()]);
        assert!(lost <= 1);
    });
}

#[test]
fn a_slot_is_not_overwritten_while_it_is_read() {
    loom::model(|| {
        let (mut producer, mut consumer) = ring(2);
        // Full, so that each of the two below needs a slot freed by the consumer.
        for n in 0..2 {
            let (before, now) = pair(n);
            producer.push(before, now);
        }
        let sampler = thread::spawn(move || {
            for n in 2..4 {
                let (before, now) = pair(n);
                producer.push(before, now);
            }
        });
        let mut got = Vec::new();
        consumer.drain(|before, now| got.push((before, now)));
        sampler.join().unwrap();
        consumer.drain(|before, now| got.push((before, now)));
        assert_eq!(got[..2], [pair(0), pair(1)]);
        assert_eq!(got.len() as u64 + consumer.lost_count(), 4);
        assert!(got.iter().all(|one| (0..4).any(|n| *one == pair(n))), "{got:?}");
        assert!(got.is_sorted());
    });
}
