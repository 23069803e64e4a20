//! A program that counts in several threads.

use lowlat_counter::{PerCpuCounter, is_restartable};

fn main() {
    let counter = PerCpuCounter::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|_| counter.add(1)));
        }
    });
    assert_eq!(counter.sum(), 4_000);
    println!("restartable: {}", is_restartable());
}
