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

#[cfg(not(lowlat_loom))]
mod event;
mod park;
#[cfg(lowlat_shuttle)]
mod park_shuttle;
mod several;
#[cfg(all(test, not(lowlat_shuttle)))]
mod tests;

#[cfg(not(lowlat_loom))]
pub use event::EventFd;
pub use park::{Futex, Park, ParkSeveral};
pub use several::{SEVERAL_MAX, wait_several};

use crate::atomics::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// The subscriber runs, or looks by itself.
pub const RUNNING: u32 = 0;
/// The subscriber sleeps, or is about to.
pub const PARKED: u32 = 1;

/// The subscriber looks by itself, and will sleep if it finds nothing for long.
pub const SPINNING: u32 = 2;
/// The subscriber sleeps in an epoll loop of its own, or is about to, and is woken through its event descriptor.
pub const IN_EPOLL: u32 = 3;

/// Where a subscriber slept when a publisher took it on itself to wake it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed {
    /// On the state's own word.
    OnWord,
    /// In an epoll loop.
    InEpoll,
}

/// How long a publisher may be between its record and its bell before the wake counts as missed.
const GRACE: Duration = Duration::from_millis(1);

/// A subscriber's bell, in memory that its publishers share.
///
/// ```text
/// offset 0  state (32 bits): 0 running, 1 parked, 2 spinning, 3 in epoll; also the word that is slept on
///        8  woken: how often a publisher woke it
///       16  missed: how often the safety net found what no bell had rung for
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
pub const BELL_WORDS: usize = 16;
// In shuttle words are larger, and a bell is fewer of them.
const _: () = assert!(size_of::<Bell>() <= BELL_WORDS * size_of::<AtomicU64>());

#[cfg(not(lowlat_loom))]
impl Bell {
    /// The bell in zeroed memory from word `at` on; none when that is not on a line of its own, or outside.
    pub fn in_region<R: crate::region::Region + ?Sized>(region: &R, at: usize) -> Option<&Self> {
        let words = region.words().get(at..)?.get(..BELL_WORDS)?;
        #[cfg_attr(not(lowlat_shuttle), expect(clippy::cast_ptr_alignment, reason = "looked at below"))]
        let bell = words.as_ptr().cast::<Self>();
        // SAFETY: the words are `BELL_WORDS` of a live region, so they stay mapped as long as the reference; their
        // alignment is checked here. Any bytes are a valid bell, which is atomics alone. This process reaches these words
        // as a bell only, so none of its accesses has another size; what other processes do is as in `Memfd`: any value may
        // appear, and each is checked. In shuttle a bell is four words of the region, one after the other.
        bell.is_aligned().then(|| unsafe { &*bell })
    }
}

impl Bell {
    /// Publisher: wakes the subscriber if it sleeps, after the record was put where it looks. Gives back whether it did:
    /// a wake is a system call, and the publisher pays it.
    pub fn ring(&self, park: &impl Park) -> bool {
        // Pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        let is_parked = self.claim(false).is_some();
        if is_parked {
            park.wake(&self.state);
        }
        is_parked
    }

    /// Publisher: takes it on itself to wake the subscriber, if that sleeps and nobody else has. It has put the record where
    /// the subscriber looks, and made a sequentially consistent fence since, which may serve several. The subscriber must then be woken,
    /// by whatever thread: with [`Bell::wake_claimed`] where it sleeps on the word. `has_event`: whether the publisher can
    /// wake one that sleeps in an epoll loop.
    #[inline]
    pub fn claim(&self, has_event: bool) -> Option<Claimed> {
        let seen = self.state.load(Ordering::Relaxed);
        let claimed = match seen {
            PARKED => Claimed::OnWord,
            IN_EPOLL if has_event => Claimed::InEpoll,
            _ => return None,
        };
        // The exchange makes one of several publishers the one that wakes. Where it fails another one has, or the
        // subscriber's time was over; what that does next it does after the publisher's fence, and looks first.
        self.state.compare_exchange(seen, RUNNING, Ordering::AcqRel, Ordering::Relaxed).ok()?;
        self.woken.fetch_add(1, Ordering::Relaxed);
        Some(claimed)
    }

    /// Publisher, or a thread that acts for it: wakes a subscriber that was claimed on its word.
    pub fn wake_claimed(&self, park: &impl Park) {
        park.wake(&self.state);
    }

    /// Subscriber: says that it looks by itself, for those who watch it; or that it runs again.
    pub fn set_spinning(&self, is_spinning: bool) {
        self.state.store(if is_spinning { SPINNING } else { RUNNING }, Ordering::Relaxed);
    }

    /// What the subscriber does at this moment, for those who watch it: [`RUNNING`] and so on.
    pub fn state(&self) -> u32 {
        self.state.load(Ordering::Relaxed)
    }

    /// Subscriber: about to sleep in an epoll loop that has its event descriptor. False when something is there, so that
    /// it must not.
    pub fn arm(&self, is_ready: impl FnOnce() -> bool) -> bool {
        self.state.store(IN_EPOLL, Ordering::Relaxed);
        // Pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        let is_ready = is_ready();
        if is_ready {
            self.state.store(RUNNING, Ordering::Relaxed);
        }
        !is_ready
    }

    /// Subscriber: its epoll loop goes on, for whatever reason. True when a publisher has claimed it: its event descriptor
    /// is readable, or will be.
    pub fn disarm(&self) -> bool {
        // Pairs with the exchange in `claim`.
        self.state.swap(RUNNING, Ordering::AcqRel) == RUNNING
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
