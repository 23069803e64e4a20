//! A thread on another core that makes the wakes if one record wakes many subscribers.
//!
//! A wake is a system call of several microseconds, during which the publisher publishes nothing. The publisher
//! still claims the wakes ([`crate::doorbell::Bell::claim`]), so that none is lost, and hands the calls to the
//! thread through a ring. That costs a core if the thread spins, and one wake if it sleeps. It is off by
//! default.

use crate::{
    atomics::{AtomicU64, Ordering},
    doorbell::{Bell, Futex},
    inbox::Inbox,
    index_ring::{self, Pusher, Taker},
    interest::SUBSCRIBERS_MAX,
    region::{Heap, Region},
    threads::{AtomicBool, Mutex, is_finished, thread},
};
use std::{
    sync::{Arc, PoisonError},
    time::Duration,
};

/// Fewer wakes than this are never handed over.
const PARKED_MAX_LEAST: u32 = 2;
/// Longest sleep of a helper, which is normally woken.
const LONGEST: Duration = Duration::from_secs(1);
/// Waiting mode of the helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperMode {
    /// Spins, which takes a whole core.
    Spin,
    /// Sleeps, and must be woken first.
    Park,
}

/// The publisher's handle of the thread. Dropping it ends the thread.
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
    /// Number of wakes that the helper has made.
    done: AtomicU64,
    /// Changed when a subscriber connects, and locked by the helper during each wake; the publisher never locks
    /// it while publishing.
    inboxes: Mutex<Vec<Option<Arc<Inbox<R>>>>>,
}

impl<R: Region> WakeHelper<R> {
    /// Starts the thread. It makes the wakes of records that wake more than `parked_max` subscribers. It runs
    /// `prepare` first, for example to pin itself.
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
        let (ring, taker) = rings.ok_or_else(|| std::io::Error::other("a ring of the required size"))?;
        let shared = Arc::new(Shared {
            bell: Bell::default(),
            is_over: AtomicBool::new(false),
            done: AtomicU64::new(0),
            inboxes: Mutex::new((0..SUBSCRIBERS_MAX).map(|_| None).collect()),
        });
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name("lowlat-wakes".to_owned()).spawn(move || {
            prepare();
            its.run(taker, mode);
        })?;
        let parked_max = parked_max.max(PARKED_MAX_LEAST);
        Ok(Self { shared, ring, handed: 0, parked_max, thread: Some(thread) })
    }

    /// Hands over one claimed wake; returns false if the ring is full or the thread has ended.
    #[inline]
    pub(super) fn hand(&mut self, subscriber: u32) -> bool {
        // Checked first: a refused entry would become a gap, which has no meaning in this ring.
        let is_in = self.ring.has_room() && self.ring.push(u64::from(subscriber));
        self.handed += u64::from(is_in);
        is_in
    }

    /// Wakes the helper, after the last wake of a record was handed over.
    pub(super) fn ring(&self) {
        self.shared.bell.ring(&Futex);
    }

    /// Replaces a subscriber's inbox, after the pending wakes of the old one are made.
    pub(super) fn set(&self, subscriber: u32, inbox: Option<&Arc<Inbox<R>>>) {
        // Pairs with the addition in `Shared::run`.
        while self.shared.done.load(Ordering::Acquire) < self.handed
            && !self.thread.as_ref().is_none_or(is_finished)
        {
            thread::yield_now();
        }
        let mut inboxes = self.shared.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        let place = usize::try_from(subscriber).ok().and_then(|at| inboxes.get_mut(at));
        if let Some(place) = place {
            *place = inbox.cloned();
        }
    }
}

impl<R: Region> Shared<R> {
    fn run(&self, mut ring: Taker<Arc<Heap>>, mode: HelperMode) {
        loop {
            while let Some(subscriber) = ring.take() {
                self.wake(subscriber);
                self.done.fetch_add(1, Ordering::Release);
            }
            // Pairs with the store in `drop`: everything handed over before it is done.
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

    fn wake(&self, subscriber: u64) {
        let at = usize::try_from(subscriber).unwrap_or(usize::MAX);
        let inboxes = self.inboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(inbox)) = inboxes.get(at) {
            inbox.wake_claimed(&Futex);
        }
    }
}

impl<R> Drop for WakeHelper<R> {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.bell.ring(&Futex);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked makes no more wakes.
            let _ = thread.join();
        }
    }
}
