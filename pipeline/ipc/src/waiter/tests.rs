//! Waiting in each mode, and the limit of spins. No test asserts a duration.

use super::*;
use crate::{doorbell::Futex, inbox, region::Memfd};
use std::{sync::Arc, thread};

const LONG: Duration = Duration::from_secs(30);

fn inbox_pair() -> (Inbox<Arc<Memfd>>, Inbox<Arc<Memfd>>) {
    let memory = Arc::new(Memfd::create("lowlat-test", inbox::BYTES).unwrap());
    (Inbox::new(Arc::clone(&memory)).unwrap(), Inbox::new(memory).unwrap())
}

fn adaptive() -> Mode {
    Mode::Adaptive(SpinPolicy::new(SPIN_NS_MAX))
}

#[test]
fn a_ready_inbox_needs_no_wait() {
    let (ours, theirs) = inbox_pair();
    theirs.notify(3, &Futex);
    for mode in [Mode::Fast, Mode::Parked, adaptive()] {
        let mut waiter = Waiter::new(mode);
        assert_eq!(waiter.wait(&ours, &Futex, LONG), Waited::Ready);
        assert_eq!(waiter.counts(), WaitCounts::default());
    }
}

#[test]
fn each_mode_counts_its_spins_and_sleeps() {
    let (ours, _theirs) = inbox_pair();
    let short = Duration::from_millis(2);
    let mut fast = Waiter::new(Mode::Fast);
    assert_eq!(fast.wait(&ours, &Futex, short), Waited::TimedOut);
    assert_eq!(fast.counts(), WaitCounts { spins_unpaid: 1, ..WaitCounts::default() });
    let mut parked = Waiter::new(Mode::Parked);
    assert_eq!(parked.wait(&ours, &Futex, short), Waited::TimedOut);
    assert_eq!(parked.counts(), WaitCounts { parks: 1, ..WaitCounts::default() });
    let mut adaptive = Waiter::new(adaptive());
    assert_eq!(adaptive.wait(&ours, &Futex, short), Waited::TimedOut);
    assert_eq!(adaptive.counts().parks, 1);
    assert!(adaptive.counts().spins_unpaid <= 1, "0 if the kernel does not expose the run delay");
    assert_eq!(ours.state(), crate::doorbell::RUNNING);
}

#[test]
fn every_mode_is_woken_or_finds_the_record() {
    const COUNT: u32 = 300;
    for mode in [Mode::Fast, Mode::Parked, adaptive()] {
        let (ours, theirs) = inbox_pair();
        let publisher = thread::spawn(move || {
            for number in 0..COUNT {
                theirs.notify(number, &Futex);
                if number % 8 == 0 {
                    thread::sleep(Duration::from_micros(200));
                }
            }
        });
        let (mut waiter, mut seen) = (Waiter::new(mode), 0);
        while seen < COUNT {
            assert_ne!(waiter.wait(&ours, &Futex, LONG), Waited::TimedOut);
            seen += ours.take_ready(|_| ());
        }
        publisher.join().unwrap();
        assert_eq!(ours.woken_and_missed().1, 0);
        let counts = waiter.counts();
        match mode {
            Mode::Fast => assert_eq!(counts.parks, 0),
            Mode::Parked => assert_eq!(counts.spins_paid + counts.spins_unpaid, 0),
            Mode::Adaptive(_) => {}
        }
    }
}

#[test]
fn a_wake_has_a_cost() {
    // On a busy host the thread may not get a CPU to fall asleep on during any of 20 rounds.
    let cost = (0..500).find_map(|_| wake_ns(20)).expect("asleep at least once in 3 s");
    assert!(cost > 0 && SpinPolicy::new(cost).budget_ns(false) > 0);
}

#[test]
fn the_budget_is_twice_the_wake_within_bounds_or_zero() {
    assert_eq!(SpinPolicy::new(12_000).budget_ns(false), 24_000);
    assert_eq!(SpinPolicy::new(u64::MAX).budget_ns(false), SPIN_NS_MAX);
    assert_eq!(SpinPolicy::new(12_000).budget_ns(true), 0);
}

#[test]
fn a_wait_is_soon_if_enough_of_the_last_ones_were_short() {
    let (mut history, budget_ns) = (SpinHistory::default(), 10_000);
    let mut add = |waits: &[u64]| {
        for waited_ns in waits {
            history.add(*waited_ns, budget_ns);
        }
        history.is_soon()
    };
    assert!(add(&[1_000_000; 5]), "it does not give up at once");
    assert!(!add(&[1_000_000; 5]));
    assert!(add(&[15_000; 8]), "a sleep that a record ended in time");
    assert!(!add(&[1_000_000, 3_000].repeat(50)), "a quote follows each answer");
    assert!(add(&[1_000_000]), "an answer follows each order");
    assert!(!add(&[1_000_000, 1_000_000, 3_000].repeat(50)));
}

/// Spins of the last tenth of the waits, in each order in which quotes and answers come.
#[test]
fn only_short_waits_of_a_pattern_are_spun_for() {
    const LONG: u64 = 1_000_000;
    for pattern in [&[LONG, 3_000][..], &[LONG, 3_000, 3_000], &[LONG, LONG, 3_000], &[LONG], &[3_000]] {
        let mut history = SpinHistory::default();
        let waits = pattern.repeat(60);
        for (at, waited_ns) in waits.iter().enumerate() {
            let is_spun_for = history.is_soon();
            history.add(*waited_ns, 10_000);
            assert!(at < waits.len() * 9 / 10 || is_spun_for == (*waited_ns < LONG), "{pattern:?} {at}");
        }
    }
}

#[test]
fn long_waits_end_the_spins() {
    let (ours, _theirs) = inbox_pair();
    let mut waiter = Waiter::new(adaptive());
    for _ in 0..40 {
        waiter.wait(&ours, &Futex, Duration::from_millis(2));
    }
    assert!(waiter.counts().spins_unpaid <= 8, "{:?}", waiter.counts());
    assert!(waiter.counts().parks >= 32);
}

#[test]
fn a_core_is_wanted_if_the_thread_was_delayed() {
    let policy = SpinPolicy::new(10_000);
    let at = |delayed_ns, slices| RunDelay { delayed_ns, slices };
    assert!(!policy.is_core_wanted(at(5, 5), at(5, 5)));
    assert!(!policy.is_core_wanted(at(0, 0), at(30_000, 2)), "wakes on an idle core");
    assert!(policy.is_core_wanted(at(0, 0), at(4_000_000, 2)), "another thread's slice");
    assert!(!policy.is_core_wanted(at(9, 9), at(0, 0)), "nonsense");
}

#[test]
fn schedstat_holds_three_numbers() {
    let text = "1635153 10187365 3\n";
    assert_eq!(RunDelay::parse(text), Some(RunDelay { delayed_ns: 10_187_365, slices: 3 }));
    assert_eq!((RunDelay::parse("1 2"), RunDelay::parse("1 x 3"), RunDelay::parse("")), (None, None, None));
}
