//! A subscriber's own small piece of memory: its bell, and which streams have something for it.
//!
//! ```text
//! words
//!   0  bell (16 words, see crate::doorbell)
//!  16  ready: 16 words, one bit a stream; set by its publisher, taken by the subscriber
//! ```
//!
//! So a subscriber of a thousand streams looks at two cache lines to learn which of them to read.
//!
//! ```text
//! publisher                               subscriber
//!   put the entry where it looks            take the bit
//!   fence                                   fence
//!   is the bit set?                         look for entries
//!   no: set it
//! ```
//!
//! With the two fences at least one side sees what the other did: a bit that the publisher found set is taken after the
//! entry was put there, and whoever takes it finds the entry. So a subscriber that spins may look for the entries of a few
//! streams itself and leave their bits set ([`Inbox::take_ready_but`]): its publishers have nothing to write then, and
//! an entry comes with its own line and no other.

use crate::{
    atomics::{AtomicU64, Ordering, fence},
    doorbell::{
        self, BELL_WORDS, Bell, Claimed, EventFd, Park, ParkSeveral, SEVERAL_MAX, Waited, wait_several,
    },
    region::{Held, Region},
};
use std::time::Duration;

/// Streams that one subscriber reads at most.
pub const STREAMS_MAX: u32 = 1024;
/// Bytes of memory that an inbox takes.
pub const BYTES: u64 = 256;
const READY: usize = BELL_WORDS;
const READY_WORDS: usize = 16;
const _: () = assert!((READY + READY_WORDS) as u64 * 8 == BYTES && READY_WORDS * 64 == STREAMS_MAX as usize);

/// An inbox, as its subscriber and its publishers see it.
#[derive(Debug)]
pub struct Inbox<R> {
    memory: Held<R>,
}

impl<R: Region> Inbox<R> {
    /// The inbox in zeroed memory, or in memory that the subscriber made; none when that is too small, or not aligned.
    pub fn new(region: R) -> Option<Self> {
        let inbox = Self { memory: Held::new(region) };
        inbox.bell()?;
        inbox.ready().map(|_| ())?;
        Some(inbox)
    }

    fn bell(&self) -> Option<&Bell> {
        Bell::in_region(&self.memory, 0)
    }

    fn ready(&self) -> Option<&[AtomicU64]> {
        self.memory.words().get(READY..READY + READY_WORDS)
    }

    /// Publisher of stream number `stream` of this subscriber: something is there for it. Gives back whether it slept
    /// and was woken.
    #[inline]
    pub fn notify(&self, stream: u32, park: &impl Park) -> bool {
        self.mark(stream);
        self.bell().is_some_and(|bell| bell.ring(park))
    }

    /// Publisher: the first half of [`Inbox::notify`], which those that run see.
    #[inline]
    pub fn mark(&self, stream: u32) {
        let word = usize::try_from(stream / 64).unwrap_or(usize::MAX);
        if let Some(word) = self.ready().and_then(|ready| ready.get(word)) {
            // Pairs with the swap in `take_ready`: who takes the bit sees what was put there for it.
            word.fetch_or(1 << (stream % 64), Ordering::Release);
        }
    }

    /// Publisher: [`Inbox::mark`] for one that made a sequentially consistent fence since it put something there, which may
    /// serve several. A bit that is set is left alone. Gives back whether it was not: then another such fence is due
    /// before [`Inbox::claim`].
    #[inline]
    pub fn mark_behind_fence(&self, stream: u32) -> bool {
        let word = usize::try_from(stream / 64).unwrap_or(usize::MAX);
        let bit = 1 << (stream % 64);
        let word = self.ready().and_then(|ready| ready.get(word));
        // Relaxed: the fences order it.
        let is_due = word.filter(|word| word.load(Ordering::Relaxed) & bit == 0);
        if let Some(word) = is_due {
            // Pairs with the change in `take_ready_but`.
            word.fetch_or(bit, Ordering::Release);
        }
        is_due.is_some()
    }

    /// Publisher: the second half of [`Inbox::notify`], after one sequentially consistent fence that serves several: takes
    /// it on itself to wake the subscriber, if that sleeps. `has_event`: whether it can wake one that sleeps in an epoll loop.
    #[inline]
    pub fn claim(&self, has_event: bool) -> Option<Claimed> {
        self.bell().and_then(|bell| bell.claim(has_event))
    }

    /// Publisher, or a thread that acts for it: wakes a subscriber that it has claimed.
    pub fn wake_claimed(&self, claimed: Claimed, park: &impl Park, event: Option<&EventFd>) {
        match (claimed, event) {
            (Claimed::OnWord, _) => self.bell().into_iter().for_each(|bell| bell.wake_claimed(park)),
            (Claimed::InEpoll, Some(event)) => event.ring(),
            (Claimed::InEpoll, None) => debug_assert!(false, "claimed without a way to wake it"),
        }
    }

    /// Subscriber: calls `ready` with the number of each stream that has something, and clears its bit before, so that
    /// what comes during the call sets it again. Gives back how many there were.
    #[inline]
    pub fn take_ready(&self, ready: impl FnMut(u32)) -> u32 {
        self.take_ready_but(0, ready)
    }

    /// [`Inbox::take_ready`] without those of the first 64 streams that have a bit in `but`: the subscriber looks for their
    /// entries by itself. It takes them now and then all the same, since an entry is not all that a publisher has to tell.
    #[inline]
    pub fn take_ready_but(&self, but: u64, mut ready: impl FnMut(u32)) -> u32 {
        let mut count = 0;
        for (number, word) in (0_u32..).zip(self.ready().unwrap_or_default()) {
            let left = if number == 0 { but } else { 0 };
            if word.load(Ordering::Relaxed) & !left == 0 {
                continue;
            }
            // Pairs with the changes in `mark` and `mark_behind_fence`.
            let mut bits = word.fetch_and(left, Ordering::Acquire) & !left;
            // Pairs with the fence before `mark_behind_fence`: its publisher may have found the bit set.
            fence(Ordering::SeqCst);
            while bits != 0 {
                ready(number * 64 + bits.trailing_zeros());
                bits &= bits - 1;
                count += 1;
            }
        }
        count
    }

    /// Whether a stream has something.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.is_ready_but(0)
    }

    /// Whether a stream has something other than those of the first 64 that have a bit in `but`.
    #[inline]
    pub fn is_ready_but(&self, but: u64) -> bool {
        let mut ready = self.ready().unwrap_or_default().iter().map(|word| word.load(Ordering::Relaxed));
        ready.next().is_some_and(|bits| bits & !but != 0) || ready.any(|bits| bits != 0)
    }

    /// Subscriber: sleeps until a stream has something, or `longest` is over.
    pub fn wait(&self, park: &impl Park, longest: Duration) -> Waited {
        self.bell().map_or(Waited::TimedOut, |bell| bell.wait(park, longest, || self.is_ready()))
    }

    /// Subscriber: sleeps until one of several inboxes of this thread has something, or `longest` is over. The first
    /// [`SEVERAL_MAX`] are waited for.
    pub fn wait_several(inboxes: &[&Self], park: &impl ParkSeveral, longest: Duration) -> Waited {
        let Some(first) = inboxes.first().and_then(|inbox| inbox.bell()) else { return Waited::TimedOut };
        let mut bells = [first; SEVERAL_MAX];
        let all = bells.iter_mut().zip(inboxes.iter().filter_map(|inbox| inbox.bell()));
        let count = all.map(|(place, bell)| *place = bell).count();
        let is_ready = || inboxes.iter().any(|inbox| inbox.is_ready());
        wait_several(bells.get(..count).unwrap_or_default(), park, longest, is_ready)
    }

    /// Subscriber, about to sleep in an epoll loop that has its event descriptor: false when something is there, so that
    /// it must not.
    pub fn arm(&self) -> bool {
        self.bell().is_some_and(|bell| bell.arm(|| self.is_ready()))
    }

    /// Subscriber, whose epoll loop goes on for whatever reason: gives back whether a publisher woke it, and takes back
    /// what publishers wrote. One that has claimed it and writes only later wakes it once for nothing.
    pub fn disarm(&self, event: &EventFd) -> bool {
        let is_woken = self.bell().is_some_and(Bell::disarm);
        // Also where nobody claimed it this time: who claimed it before may have written since, and what is left there
        // would end each epoll_wait at once. No wake is lost with it: publishers write for a claim alone, and claim only
        // between `arm` and the swap in `Bell::disarm`. So whatever is taken here was written for a claim that is over, and
        // the subscriber looks for entries before it sleeps again.
        event.drain();
        is_woken
    }

    /// Subscriber: says that it looks by itself, for those who watch it; or that it runs again.
    pub fn set_spinning(&self, is_spinning: bool) {
        self.bell().into_iter().for_each(|bell| bell.set_spinning(is_spinning));
    }

    /// What the subscriber does at this moment, for those who watch it: [`crate::doorbell::RUNNING`] and so on.
    pub fn state(&self) -> u32 {
        self.bell().map_or(doorbell::RUNNING, Bell::state)
    }

    /// How often a publisher woke the subscriber, and how often the safety net had to.
    pub fn woken_and_missed(&self) -> (u64, u64) {
        self.bell().map_or((0, 0), |bell| (bell.woken(), bell.missed()))
    }
}

#[cfg(all(test, not(lowlat_shuttle)))]
mod tests {
    use super::*;
    use crate::region::Heap;
    use rustix::{
        event::{PollFd, PollFlags, poll},
        thread::futex::Timespec,
    };

    fn is_readable(event: &EventFd) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(event, PollFlags::IN)], Some(&at_once)).unwrap() > 0
    }

    #[test]
    fn a_bell_that_is_late_ends_one_sleep_in_an_epoll_loop_and_no_more() {
        let (inbox, event) = (Inbox::new(Heap::zeroed(BYTES)).unwrap(), EventFd::new().unwrap());
        // Something else ends the sleep between a publisher's claim and what it writes.
        assert!(inbox.arm());
        assert_eq!(inbox.claim(true), Some(Claimed::InEpoll));
        assert!(inbox.disarm(&event));
        event.ring();
        assert!(inbox.arm());
        assert!(is_readable(&event));
        assert!(!inbox.disarm(&event), "nobody claimed it since");
        assert!(!is_readable(&event));
        // The same where it did not sleep, since something was there.
        inbox.mark(3);
        assert!(!inbox.arm());
        inbox.take_ready(|_| ());
        event.ring();
        assert!(inbox.arm());
        assert!(!inbox.disarm(&event));
        assert!(!is_readable(&event));
    }
}
