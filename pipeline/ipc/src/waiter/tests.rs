//! Waiting in each mode. No test asserts a duration.

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
    let cost = (0..500).find_map(|_| WakeCost::measure(20)).expect("asleep at least once in 3 s");
    assert!(cost.wake_ns > 0 && cost.call_ns > 0 && cost.rounds > 0, "{cost:?}");
    assert!(SpinPolicy::new(cost.wake_ns).budget_ns(false) > 0);
}
