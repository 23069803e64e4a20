//! A bell that a sleeping subscriber is woken by, and a running one never hears.
//!
//! ```text
//! subscriber                              publisher
//!   state = PARKED                          put the record where the subscriber looks
//!   fence                                   fence
//!   look once more: is there something?     is state PARKED?
//!   no: sleep while state is PARKED         yes: state = RUNNING, wake
//! ```
//!
//! With the two fences at least one side sees what the other did: either the subscriber finds the record, or the
//! publisher finds it parked. So nobody sleeps over a record, and nobody is woken without need, whatever mode the
//! publisher itself runs in. A bounded sleep stands behind that as a safety net, with a counter of the times it was
//! needed, which must stay 0.

mod park;
#[cfg(test)]
mod tests;

pub use park::{Futex, Park};

use crate::atomics::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// The subscriber runs, or looks by itself.
pub const RUNNING: u32 = 0;
/// The subscriber sleeps, or is about to.
pub const PARKED: u32 = 1;

/// How long a publisher may be between its record and its bell before the wake counts as missed.
const GRACE: Duration = Duration::from_millis(1);

/// A subscriber's bell, in memory that its publishers share.
///
/// ```text
/// offset 0  state (32 bits): 0 running, 1 parked; also the word that is slept on
///        8  woken: how often a publisher woke it
///       16  missed: how often the safety net found what no bell had rung for
/// ```
#[derive(Debug)]
#[repr(C, align(128))]
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

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// Something was there before it slept.
    Ready,
    /// A publisher woke it.
    Woken,
    /// The time was over, and nothing was there.
    TimedOut,
}

/// Words of a region that a bell takes.
pub const BELL_WORDS: usize = size_of::<Bell>() / size_of::<u64>();

#[cfg(not(lowlat_loom))]
impl Bell {
    /// The bell in zeroed memory from word `at` on; none when that is not on a line of its own, or outside.
    pub fn in_region<R: crate::region::Region + ?Sized>(region: &R, at: usize) -> Option<&Self> {
        let words = region.words().get(at..)?.get(..BELL_WORDS)?;
        #[expect(clippy::cast_ptr_alignment, reason = "looked at below")]
        let bell = words.as_ptr().cast::<Self>();
        // SAFETY: the words are `BELL_WORDS` of a live region, so the memory is there as long as the reference; its
        // alignment is checked here; any bytes are a valid bell, which is atomics alone; and no word of it is reached
        // otherwise than as a bell, so that no access is of another size.
        bell.is_aligned().then(|| unsafe { &*bell })
    }
}

impl Bell {
    /// Publisher: wakes the subscriber if it sleeps, after the record was put where it looks. Gives back whether it did:
    /// a wake is a system call, and the publisher pays it.
    pub fn ring(&self, park: &impl Park) -> bool {
        // Pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        self.ring_after_fence(park)
    }

    /// [`Bell::ring`] by a publisher that rings several: it has put the record where all of them look, and made one
    /// sequentially consistent fence since.
    #[inline]
    pub fn ring_after_fence(&self, park: &impl Park) -> bool {
        // The swap makes one of several publishers the one that wakes.
        let is_parked = self.state.load(Ordering::Relaxed) == PARKED
            && self.state.swap(RUNNING, Ordering::AcqRel) == PARKED;
        if is_parked {
            self.woken.fetch_add(1, Ordering::Relaxed);
            park.wake(&self.state);
        }
        is_parked
    }

    /// Subscriber: sleeps until a publisher rings or `longest` is over, unless `is_ready` says that there is something.
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
            // The time was over just when a publisher was between its record and its bell, or it died there.
            self.sleep(park, GRACE);
        }
        // Pairs with the swap in `ring`.
        if self.state.swap(RUNNING, Ordering::AcqRel) == RUNNING {
            return Waited::Woken;
        }
        if is_ready {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return Waited::Ready;
        }
        Waited::TimedOut
    }

    /// Sleeps until a publisher changes the state or `longest` is over. A sleep can end without either: by a signal, or
    /// by the late wake of a bell that was already heard.
    fn sleep(&self, park: &impl Park, longest: Duration) {
        let start = Instant::now();
        let mut rest = longest;
        // The state's content is looked at by `wait`; here only whether it changed.
        while !rest.is_zero() && self.state.load(Ordering::Relaxed) == PARKED {
            park.sleep(&self.state, PARKED, rest);
            rest = longest.saturating_sub(start.elapsed());
        }
    }

    /// How often a publisher woke the subscriber.
    pub fn woken(&self) -> u64 {
        self.woken.load(Ordering::Relaxed)
    }

    /// How often the safety net found something that no bell had been rung for. Must be 0, unless a publisher was ended
    /// or stopped between its record and its bell.
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}
