//! The times of all instruments' quotes, merged.

use super::Scenario;
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, binary_heap::PeekMut},
};

/// One quote that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Due {
    /// Due time, ns after the start.
    pub due_ns: u64,
    pub instrument: u32,
    /// Its number among the instrument's own, from 0.
    pub number: u64,
}

/// Returns every quote of a scenario in order of time; at equal times, the lower instrument comes first.
///
/// It allocates when it is made and never after. Each step costs the logarithm of the number of instruments.
#[derive(Debug, Clone)]
pub struct Schedule {
    /// The next quote of each instrument that has one left.
    next: BinaryHeap<Reverse<Due>>,
    scenario: Scenario,
}

impl Schedule {
    /// The schedule of a scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let instruments = (0..scenario.instruments).filter(|of| scenario.records_of(*of) > 0);
        let first = |instrument| {
            let due_ns = scenario.start_delay_ns.saturating_mul(u64::from(instrument));
            Reverse(Due { due_ns, instrument, number: 0 })
        };
        Self { next: instruments.map(first).collect(), scenario: scenario.clone() }
    }
}

impl Iterator for Schedule {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let mut top = self.next.peek_mut()?;
        let due = top.0;
        let number = due.number + 1;
        if number < self.scenario.records_of(due.instrument) {
            let due_ns = due.due_ns.saturating_add(self.scenario.interval_ns);
            top.0 = Due { due_ns, number, ..due };
        } else {
            PeekMut::pop(top);
        }
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Quotes of the report's threads, each thread simulated separately.
    fn of_threads(scenario: &Scenario) -> Vec<Due> {
        let mut all: Vec<_> = (0..scenario.instruments)
            .flat_map(|instrument| {
                let start = u64::from(instrument) * scenario.start_delay_ns;
                (0..scenario.records_of(instrument)).map(move |number| Due {
                    due_ns: start + number * scenario.interval_ns,
                    instrument,
                    number,
                })
            })
            .collect();
        all.sort();
        all
    }

    proptest! {
        #[test]
        fn it_is_the_sort_of_all_threads_times(
            instruments in 0_u32..20, records in 0_u64..30, interval in 0_u64..50, delay in 0_u64..50,
        ) {
            let scenario = Scenario {
                name: String::new(), instruments, records_per_instrument: records,
                interval_ns: interval, start_delay_ns: delay, instruments_with_one_more: instruments / 3,
            };
            let given: Vec<_> = Schedule::new(&scenario).collect();
            prop_assert_eq!(given, of_threads(&scenario));
        }

        #[test]
        fn it_never_allocates_after_its_start(instruments in 1_u32..50, records in 1_u64..20) {
            let scenario = Scenario {
                name: String::new(), instruments, records_per_instrument: records,
                interval_ns: 7, start_delay_ns: 3, instruments_with_one_more: 0,
            };
            let mut schedule = Schedule::new(&scenario);
            let room = schedule.next.capacity();
            while schedule.next().is_some() {
                prop_assert_eq!(schedule.next.capacity(), room);
            }
        }
    }
}
