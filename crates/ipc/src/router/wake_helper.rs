//! Another core that makes the wakes, when one record wakes many.
//!
//! A wake is a system call of the publisher, several microseconds each; while it makes them it publishes nothing. The
//! publisher takes the wakes on itself as always ([`crate::doorbell::Bell::claim`]), so that none is lost, and hands the
//! calls to a thread through a ring. That costs a core where the thread spins, and one wake where it sleeps. So it is off
//! unless the caller has measured that it pays ([`HandOver`]).

use super::Door;
use crate::{
    atomics::{AtomicU64, Ordering},
    doorbell::{Bell, Claimed, Futex},
    index_ring::{self, Pusher, Taker},
    interest::SUBSCRIBERS_MAX,
    region::{Heap, Region},
    threads::{AtomicBool, Mutex, is_finished, thread},
};
use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

/// Fewer than this many wakes are never handed over.
const PARKED_MAX_LEAST: u32 = 2;
/// How long a helper sleeps at most; it is rung.
const LONGEST: Duration = Duration::from_secs(1);
/// Bit of a ring's entry: the subscriber sleeps in an epoll loop.
const IN_EPOLL: u64 = 1 << 32;

/// What it costs a publisher to wake, and to have others wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandOver {
    /// One wake of its own ([`crate::waiter::WakeCost::call_ns`]).
    pub call_ns: u64,
    /// Handing over, however many: with a helper that sleeps one wake, with one that spins some stores.
    pub hand_ns: u64,
}

impl HandOver {
    /// Up to how many wakes the publisher makes itself: beyond, handing over saves it at least half. None when it never
    /// would, within as many subscribers as there can be.
    pub fn parked_max(&self) -> Option<u32> {
        let most = self.hand_ns.saturating_mul(2).checked_div(self.call_ns)?;
        let most = u32::try_from(most).ok()?.max(PARKED_MAX_LEAST);
        (most < SUBSCRIBERS_MAX).then_some(most)
    }
}

/// How the helper itself waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperMode {
    /// It takes a whole core.
    Spin,
    /// It sleeps, and is woken first.
    Park,
}

/// The thread, as the publisher has it. It ends when this is dropped.
#[derive(Debug)]
pub struct WakeHelper<R> {
    shared: Arc<Shared<R>>,
    ring: Pusher<Arc<Heap>>,
    handed: u64,
    pub(super) parked_max: u32,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared<R> {
    bell: Bell,
    is_over: AtomicBool,
    /// How many wakes are made.
    done: AtomicU64,
    /// Changed when a subscriber is connected, and held by the helper for one wake each; never on the publisher's way.
    doors: Mutex<Vec<Option<Arc<Door<R>>>>>,
}

impl<R: Region> WakeHelper<R> {
    /// Starts the thread. It makes the wakes of records that wake more than `parked_max` subscribers; `prepare` is run by it
    /// first: it may pin itself.
    pub fn start(
        parked_max: u32,
        mode: HelperMode,
        prepare: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self>
    where
        R: 'static,
    {
        let entries = u64::from(SUBSCRIBERS_MAX);
        let heap = Arc::new(Heap::zeroed(index_ring::bytes(entries)));
        let rings = index_ring::create(Arc::clone(&heap), entries).zip(index_ring::open(heap));
        let (ring, taker) = rings.ok_or_else(|| std::io::Error::other("a ring of its own size"))?;
        let shared = Arc::new(Shared {
            bell: Bell::default(),
            is_over: AtomicBool::new(false),
            done: AtomicU64::new(0),
            doors: Mutex::new((0..SUBSCRIBERS_MAX).map(|_| None).collect()),
        });
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name("lowlat-wakes".to_owned()).spawn(move || {
            prepare();
            its.run(taker, mode);
        })?;
        let parked_max = parked_max.max(PARKED_MAX_LEAST);
        Ok(Self { shared, ring, handed: 0, parked_max, thread: Some(thread) })
    }

    /// Hands one claimed wake over; false when the ring is full, or the thread has ended.
    #[inline]
    pub(super) fn hand(&mut self, subscriber: u32, claimed: Claimed) -> bool {
        let entry = u64::from(subscriber) | if claimed == Claimed::InEpoll { IN_EPOLL } else { 0 };
        // Asked first: an entry that is refused would be a gap, which is nothing to this ring.
        let is_in = self.ring.has_room() && self.ring.push(entry);
        self.handed += u64::from(is_in);
        is_in
    }

    /// After the last one of a record.
    pub(super) fn ring(&self) {
        self.shared.bell.ring(&Futex);
    }

    /// Changes the way to a subscriber, once the wakes on the old one are made.
    pub(super) fn set(&self, subscriber: u32, door: Option<&Arc<Door<R>>>) {
        // Pairs with the addition in `Shared::run`.
        while self.shared.done.load(Ordering::Acquire) < self.handed
            && !self.thread.as_ref().is_none_or(is_finished)
        {
            thread::yield_now();
        }
        let mut doors = self.shared.doors.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::try_from(subscriber).ok().and_then(|at| doors.get_mut(at));
        if let Some(place) = place {
            *place = door.cloned();
        }
    }
}

impl<R: Region> Shared<R> {
    fn run(&self, mut ring: Taker<Arc<Heap>>, mode: HelperMode) {
        loop {
            while let Some(entry) = ring.take() {
                self.wake(entry);
                self.done.fetch_add(1, Ordering::Release);
            }
            // Pairs with the store in `drop`: what was handed over before is made.
            if self.is_over.load(Ordering::Acquire) {
                if !ring.has_more() {
                    return;
                }
            } else if mode == HelperMode::Spin {
                crate::relax();
            } else {
                let is_over = || self.is_over.load(Ordering::Acquire);
                self.bell.wait(&Futex, LONGEST, || ring.has_more() || is_over());
            }
        }
    }

    fn wake(&self, entry: u64) {
        let at = usize::try_from(entry & !IN_EPOLL).unwrap_or(usize::MAX);
        let claimed = if entry & IN_EPOLL == 0 { Claimed::OnWord } else { Claimed::InEpoll };
        let doors = self.doors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(door)) = doors.get(at) {
            door.wake_claimed(claimed, &Futex);
        }
    }
}

impl<R> Drop for WakeHelper<R> {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.bell.ring(&Futex);
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing more to wake.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_pays_when_many_sleep() {
        let parked_max = |call_ns, hand_ns| HandOver { call_ns, hand_ns }.parked_max();
        assert_eq!(parked_max(7_000, 7_000), Some(2), "a helper that sleeps: one wake instead of three");
        assert_eq!(parked_max(7_000, 100), Some(2));
        assert_eq!(parked_max(1_000, 10_000), Some(20));
        assert_eq!((parked_max(1, 10_000), parked_max(0, 100)), (None, None));
    }
}
