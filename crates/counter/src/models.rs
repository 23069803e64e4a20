//! Models of folding under loom.

use super::{Counter, NUMBER};
use loom::{sync::Arc, thread};

/// Two threads, each with a part of its own or with the same one.
fn two_add(numbers: [usize; 2]) {
    loom::model(move || {
        let counter = Arc::new(Counter::with_batch(2));
        let adders = numbers.map(|number| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                NUMBER.with(|own| own.set(number));
                counter.add(3);
                counter.sub_local(1);
            })
        });
        for adder in adders {
            adder.join().unwrap();
        }
        assert_eq!(counter.sum(), 4);
    });
}

#[test]
fn loom_folding_loses_nothing_with_parts_of_their_own() {
    two_add([0, 1]);
}

#[test]
fn loom_folding_loses_nothing_with_a_shared_part() {
    two_add([0, 0]);
}

#[test]
fn loom_a_reader_is_off_by_what_is_folded_at_most() {
    loom::model(|| {
        let counter = Arc::new(Counter::with_batch(2));
        let adder = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                counter.add(1);
                counter.add(2);
            })
        };
        let seen = counter.sum();
        assert!((0..=6).contains(&seen), "at most the folded value twice: {seen}");
        adder.join().unwrap();
        assert_eq!((counter.sum(), counter.approximate()), (3, 3));
    });
}
