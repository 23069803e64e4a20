//! Models of folding under loom.

use super::{NUMBER, PerCpuCounter};
use loom::{sync::Arc, thread};

/// Two threads, each with a part of its own or with the same one.
fn two_add(numbers: [usize; 2]) {
    loom::model(move || {
        let counter = Arc::new(PerCpuCounter::with_batch(2));
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
fn loom_a_sum_has_no_more_than_was_added_and_never_runs_backward() {
    loom::model(|| {
        let counter = Arc::new(PerCpuCounter::with_batch(2));
        let adder = {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                counter.add(1);
                counter.add(2);
            })
        };
        let (first, second) = (counter.sum(), counter.sum());
        assert!(0 <= first && first <= second && second <= 3, "{first}, then {second}");
        adder.join().unwrap();
        assert_eq!((counter.sum(), counter.approximate()), (3, 3));
    });
}

#[test]
fn loom_two_that_publish_one_part_leave_less_than_the_batch() {
    loom::model(|| {
        let counter = Arc::new(PerCpuCounter::with_batch(2));
        let adders = [2, 3].map(|value| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || counter.add(value))
        });
        for adder in adders {
            adder.join().unwrap();
        }
        assert_eq!((counter.sum(), counter.approximate()), (5, 5));
    });
}
