//! No wake is lost, and none is unnecessary.

use super::*;

#[cfg(lowlat_loom)]
mod loom_tests {
    use super::*;
    use loom::{sync::Arc, thread};

    /// Sleeps forever: a lost wake causes a deadlock, which loom reports.
    struct Loom;

    impl Park for Loom {
        fn sleep(&self, word: &AtomicU32, value: u32, _: Duration) {
            while word.load(Ordering::Acquire) == value {
                thread::yield_now();
            }
        }
        fn wake(&self, _: &AtomicU32) {}
    }

    /// Two publishers put an entry each and ring; the subscriber sleeps until it has seen both.
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

    /// A set bit is left alone, as in [`crate::inbox`]: two entries, and a subscriber that takes the bit, looks
    /// for entries, and sleeps if there are none.
    #[test]
    fn loom_no_wake_is_lost_if_a_set_bit_is_left_alone() {
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
                    if bell.claim() {
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
        assert_eq!(bell.wait(&Futex, LONG, || true), Waited::Ready, "it checks before it sleeps");
        assert!(!bell.ring(&Futex), "it runs again");
        assert_eq!((bell.woken(), bell.missed()), (0, 0));
    }

    #[test]
    fn a_wait_without_a_ring_times_out() {
        let bell = Bell::default();
        assert_eq!(bell.wait(&Futex, Duration::from_millis(2), || false), Waited::TimedOut);
        assert!(!bell.ring(&Futex));
    }

    #[test]
    fn the_safety_net_catches_and_counts_a_missing_ring() {
        let bell = Bell::default();
        let mut looks = 0;
        let late = bell.wait(&Futex, Duration::from_millis(1), || {
            looks += 1;
            looks > 1
        });
        assert_eq!((late, bell.missed()), (Waited::Ready, 1));
    }

    /// Many publishers, and a subscriber that sleeps whenever it has caught up.
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
