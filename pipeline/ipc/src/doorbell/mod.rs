//! A bell that wakes a sleeping subscriber and costs a running one nothing.
//!
//! ```text
//! subscriber                              publisher
//!   state = PARKED                          put the record
//!   fence                                   fence
//!   check again: is there a record?         is state PARKED?
//!   no: sleep while state is PARKED         yes: state = RUNNING, wake
//! ```
//!
//! With the two fences at least one side sees what the other did: either the subscriber finds the record, or
//! the publisher finds it parked. So no subscriber sleeps on a pending record, and none is woken without need,
//! whatever the publisher's own mode. As a safety net each sleep is bounded; a counter shows how often that was
//! needed, and must stay 0.

mod park;
#[cfg(lowlat_shuttle)]
mod park_shuttle;
#[cfg(all(test, not(lowlat_shuttle)))]
mod tests;

pub use park::{Futex, Park};

use crate::atomics::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// The subscriber runs, or polls.
pub const RUNNING: u32 = 0;
/// The subscriber sleeps, or is about to.
pub const PARKED: u32 = 1;

/// The subscriber spins, and will sleep if it finds nothing for long.
pub const SPINNING: u32 = 2;
/// Longest time between a publisher's record and its ring before the wake counts as missed. A publisher can be preempted
/// between the two for some time slices of others.
const GRACE: Duration = Duration::from_millis(100);

/// A subscriber's bell, in memory that its publishers share.
///
/// ```text
/// offset 0  state (32 bits): 0 running, 1 parked, 2 spinning; also the futex word
///        8  woken: number of wakes by publishers
///       16  missed: number of times that the safety net found a record without a ring
/// ```
#[derive(Debug)]
#[cfg_attr(not(lowlat_shuttle), repr(C, align(128)))]
#[cfg_attr(lowlat_shuttle, repr(C))]
pub struct Bell {
    state: AtomicU32,
    unused: AtomicU32,
    woken: AtomicU64,
    missed: AtomicU64,
}

impl Default for Bell {
    fn default() -> Self {
        Self {
            state: AtomicU32::new(RUNNING),
            unused: AtomicU32::new(0),
            woken: AtomicU64::new(0),
            missed: AtomicU64::new(0),
        }
    }
}

/// Reason why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Something was ready before it slept.
    Ready,
    /// A publisher woke the subscriber.
    Woken,
    /// It timed out, and nothing was ready.
    TimedOut,
}

/// Words of a region that a bell takes.
pub const BELL_WORDS: usize = 16;
// In shuttle words are larger, and a bell takes fewer of them.
const _: () = assert!(size_of::<Bell>() <= BELL_WORDS * size_of::<AtomicU64>());

#[cfg(not(lowlat_loom))]
impl Bell {
    /// The bell in zeroed memory from word `at` on; `None` if that is misaligned or outside.
    pub fn in_region<R: crate::region::Region + ?Sized>(region: &R, at: usize) -> Option<&Self> {
        let words = region.words().get(at..)?.get(..BELL_WORDS)?;
        #[cfg_attr(not(lowlat_shuttle), expect(clippy::cast_ptr_alignment, reason = "checked below"))]
        let bell = words.as_ptr().cast::<Self>();
        // SAFETY: the words are `BELL_WORDS` of a live region, so they stay mapped as long as the reference;
        // their alignment is checked here. Any bytes are a valid bell, which consists of atomics only. This
        // process accesses these words only as a bell, so none of its accesses has another size; other
        // processes are covered as in `Memfd`: any value may appear, and each is checked. In shuttle a bell is
        // four consecutive words of the region.
        bell.is_aligned().then(|| unsafe { &*bell })
    }
}

impl Bell {
    /// Publisher: wakes the subscriber if it sleeps, after the record was put. Returns whether it did: a wake
    /// is a system call, paid by the publisher.
    pub fn ring(&self, park: &impl Park) -> bool {
        // Pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        let is_parked = self.claim();
        if is_parked {
            park.wake(&self.state);
        }
        is_parked
    }

    /// Publisher: claims the wake of the subscriber if it sleeps and no other publisher has claimed it. The
    /// caller has put the record and then made a sequentially consistent fence, which may serve several
    /// subscribers. After a claim some thread must wake the subscriber with [`Bell::wake_claimed`].
    #[inline]
    pub fn claim(&self) -> bool {
        // The exchange selects one of several publishers. If it fails, another publisher won or the sleep timed out; in
        // that case the subscriber checks for records after the publisher's fence.
        let is_claimed = self.state.load(Ordering::Relaxed) == PARKED
            && self.state.compare_exchange(PARKED, RUNNING, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_claimed {
            self.woken.fetch_add(1, Ordering::Relaxed);
        }
        is_claimed
    }

    /// Publisher, or a thread that acts for it: wakes a subscriber after a claim.
    pub fn wake_claimed(&self, park: &impl Park) {
        park.wake(&self.state);
    }

    /// Subscriber: publishes whether it spins or runs, for monitoring.
    pub fn set_spinning(&self, is_spinning: bool) {
        self.state.store(if is_spinning { SPINNING } else { RUNNING }, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn set_parked(&self) {
        self.state.store(PARKED, Ordering::Relaxed);
    }

    /// State of the subscriber, for monitoring: [`RUNNING`] and so on.
    pub fn state(&self) -> u32 {
        self.state.load(Ordering::Relaxed)
    }

    /// Subscriber: sleeps until a publisher rings or `longest` has elapsed, unless `is_ready` returns true.
    pub fn wait(&self, park: &impl Park, longest: Duration, mut is_ready: impl FnMut() -> bool) -> Waited {
        self.state.store(PARKED, Ordering::Relaxed);
        // Pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        if is_ready() {
            self.state.store(RUNNING, Ordering::Relaxed);
            return Waited::Ready;
        }
        self.sleep(park, longest);
        let is_ready = self.state.load(Ordering::Relaxed) == PARKED && is_ready();
        if is_ready {
            // It timed out while a publisher was between its record and its ring, or had died there.
            self.sleep(park, GRACE);
        }
        // Pairs with the exchange in `claim`.
        if self.state.swap(RUNNING, Ordering::AcqRel) == RUNNING {
            return Waited::Woken;
        }
        if is_ready {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return Waited::Ready;
        }
        Waited::TimedOut
    }

    /// Sleeps until a publisher changes the state or `longest` has elapsed. A sleep can also end early: by a
    /// signal, or by the late wake of an earlier ring.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn sleep(&self, park: &impl Park, longest: Duration) {
        let start = Instant::now();
        let mut rest = longest;
        // `wait` evaluates the state; here only changes matter.
        while !rest.is_zero() {
            park.sleep(&self.state, PARKED, rest);
            // Almost always: no time passes between the wake and the record.
            if self.state.load(Ordering::Relaxed) != PARKED {
                return;
            }
            rest = longest.saturating_sub(start.elapsed());
        }
    }

    /// Number of wakes by publishers.
    pub fn woken(&self) -> u64 {
        self.woken.load(Ordering::Relaxed)
    }

    /// Number of times that the safety net found a record without a ring. Must be 0, unless a publisher was
    /// ended or stopped between its record and its ring.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}
