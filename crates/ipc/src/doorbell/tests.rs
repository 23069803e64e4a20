//! A wake is never lost, and none is made without need.

use super::*;

#[cfg(lowlat_loom)]
mod loom_tests {
    use super::*;
    use loom::{sync::Arc, thread};

    /// Sleeps for ever: a lost wake ends in a deadlock, which loom reports.
    struct Loom;

    impl Park for Loom {
        fn sleep(&self, word: &AtomicU32, value: u32, _: Duration) {
            while word.load(Ordering::Acquire) == value {
                thread::yield_now();
            }
        }
        fn wake(&self, _: &AtomicU32) {}
    }

    impl ParkSeveral for Loom {
        fn sleep_several(&self, words: &[&AtomicU32], value: u32, _: Duration) {
            while words.iter().all(|word| word.load(Ordering::Acquire) == value) {
                thread::yield_now();
            }
        }
    }

    /// Two publishers with a bell each, and one subscriber that waits for both.
    #[test]
    fn loom_no_wake_of_several_bells_is_lost() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new(([Bell::default(), Bell::default()], AtomicU64::new(0)));
            let publishers: Vec<_> = (0..2)
                .map(|number: usize| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        shared.1.fetch_add(1, Ordering::Release);
                        shared.0[number].ring(&Loom);
                    })
                })
                .collect();
            let mut seen = 0;
            while seen < 2 {
                let ([one, other], count) = (&shared.0, &shared.1);
                wait_several(&[one, other], &Loom, Duration::MAX, || count.load(Ordering::Acquire) > seen);
                seen = count.load(Ordering::Acquire);
            }
            for publisher in publishers {
                publisher.join().unwrap();
            }
        });
    }

    /// The subscriber sleeps in its epoll loop, for ever: a descriptor that is not written is a deadlock.
    #[test]
    fn loom_no_wake_in_an_epoll_loop_is_lost() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new((Bell::default(), AtomicU64::new(0), AtomicU32::new(0)));
            let publishers: Vec<_> = (0..2)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        shared.1.fetch_add(1, Ordering::Release);
                        fence(Ordering::SeqCst);
                        if let Some(claimed) = shared.0.claim(true) {
                            assert_eq!(claimed, Claimed::InEpoll);
                            shared.2.fetch_add(1, Ordering::Release);
                        }
                    })
                })
                .collect();
            let (mut seen, mut drained) = (0, 0);
            // The first sleep ends by itself, as with a socket's event, maybe between a claim and what is written for it.
            let mut is_other_event = true;
            while seen < 2 {
                if shared.0.arm(|| shared.1.load(Ordering::Acquire) > seen) {
                    while !std::mem::take(&mut is_other_event) && shared.2.load(Ordering::Acquire) == drained
                    {
                        thread::yield_now();
                    }
                    shared.0.disarm();
                    // Whoever wrote it, as `Inbox::disarm` does it.
                    drained = shared.2.load(Ordering::Acquire);
                }
                seen = shared.1.load(Ordering::Acquire);
            }
            for publisher in publishers {
                publisher.join().unwrap();
            }
        });
    }

    /// Two publishers put something there and ring; the subscriber sleeps until it has seen both.
    #[test]
    fn loom_no_wake_is_lost() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = Arc::new((Bell::default(), AtomicU64::new(0)));
            let publishers: Vec<_> = (0..2)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        shared.1.fetch_add(1, Ordering::Release);
                        shared.0.ring(&Loom);
                    })
                })
                .collect();
            let mut seen = 0;
            while seen < 2 {
                let (bell, count) = (&shared.0, &shared.1);
                bell.wait(&Loom, Duration::MAX, || count.load(Ordering::Acquire) > seen);
                seen = count.load(Ordering::Acquire);
            }
            for publisher in publishers {
                publisher.join().unwrap();
            }
            assert_eq!(shared.0.missed(), 0);
        });
    }

    /// A bit that is set is left alone, as [`crate::inbox`] does it: two entries, a subscriber that takes the bit, looks for
    /// entries, and sleeps when there are none.
    #[test]
    fn loom_no_wake_is_lost_where_a_bit_is_left_alone() {
        use crate::atomics::fence;
        use loom::{sync::Arc, thread};
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            // Bell, bit, entries.
            let shared = Arc::new((Bell::default(), AtomicU64::new(0), AtomicU64::new(0)));
            let theirs = Arc::clone(&shared);
            let publisher = thread::spawn(move || {
                let (bell, bit, entries) = &*theirs;
                for entry in 1..=2 {
                    entries.store(entry, Ordering::Release);
                    fence(Ordering::SeqCst);
                    if bit.load(Ordering::Relaxed) == 0 {
                        bit.fetch_or(1, Ordering::Release);
                        fence(Ordering::SeqCst);
                    }
                    if bell.claim(false).is_some() {
                        bell.wake_claimed(&Loom);
                    }
                }
            });
            let (bell, bit, entries) = &*shared;
            let mut seen = 0;
            while seen < 2 {
                if bit.fetch_and(0, Ordering::Acquire) == 0 {
                    bell.wait(&Loom, Duration::MAX, || bit.load(Ordering::Relaxed) != 0);
                    continue;
                }
                fence(Ordering::SeqCst);
                seen = entries.load(Ordering::Acquire);
            }
            publisher.join().unwrap();
            assert_eq!(bell.missed(), 0);
        });
    }
}

#[cfg(not(lowlat_loom))]
mod std_tests {
    use super::*;
    use std::{sync::Arc, thread};

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn a_running_subscriber_is_never_woken() {
        let bell = Bell::default();
        assert!(!bell.ring(&Futex));
        assert_eq!(bell.wait(&Futex, LONG, || true), Waited::Ready, "it looks before it sleeps");
        assert!(!bell.ring(&Futex), "and runs again");
        assert_eq!((bell.woken(), bell.missed()), (0, 0));
    }

    #[test]
    fn nothing_in_time_is_told() {
        let bell = Bell::default();
        assert_eq!(bell.wait(&Futex, Duration::from_millis(2), || false), Waited::TimedOut);
        assert!(!bell.ring(&Futex));
    }

    #[test]
    fn a_publisher_that_died_before_its_bell_is_made_up_for_and_counted() {
        let bell = Bell::default();
        let mut looks = 0;
        let late = bell.wait(&Futex, Duration::from_millis(1), || {
            looks += 1;
            looks > 1
        });
        assert_eq!((late, bell.missed()), (Waited::Ready, 1));
    }

    /// Many publishers, one that sleeps whenever it has caught up.
    #[test]
    fn every_wake_arrives() {
        const PUBLISHERS: u64 = 3;
        const EACH: u64 = 3_000;
        let shared = Arc::new((Bell::default(), AtomicU64::new(0)));
        let publishers: Vec<_> = (0..PUBLISHERS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    for _ in 0..EACH {
                        shared.1.fetch_add(1, Ordering::Release);
                        shared.0.ring(&Futex);
                    }
                })
            })
            .collect();
        let mut seen = 0;
        while seen < PUBLISHERS * EACH {
            let waited = shared.0.wait(&Futex, LONG, || shared.1.load(Ordering::Acquire) > seen);
            assert_ne!(waited, Waited::TimedOut);
            seen = shared.1.load(Ordering::Acquire);
        }
        for publisher in publishers {
            publisher.join().unwrap();
        }
    }
}
