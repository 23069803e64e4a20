//! The subscriber's side.

use super::{
    EVICTED, EVICTED_FROM, GAP_PLACES, GAPS, GAPS_TAKEN, Gap, HEAD, REFUSED, Ring, gap, place, word,
};
use crate::{atomics::Ordering, region::Region};

/// What a subscriber takes out of its ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// An entry.
    Entry(u64),
    /// Entries that are lost to it, at their place among the others.
    Gap(Gap),
    /// The publisher has given it up for being too far behind, and gives it nothing from the entry `first` on. Told again
    /// each time: a subscriber that has caught up asks to be connected anew.
    Evicted {
        /// The first entry that it was not given.
        first: u64,
    },
}

/// The subscriber's side.
#[derive(Debug)]
pub struct Taker<R> {
    pub(super) ring: Ring<R>,
    head: u64,
    gaps_taken: u64,
    /// Gaps that the publisher had begun when they were last looked up.
    gaps: u64,
}

/// What a look at the next gap gives.
enum Look {
    Gap(Gap),
    /// There is none before the next entry.
    Nothing,
    /// The publisher is just changing it.
    Changing,
}

impl<R: Region> Taker<R> {
    pub(super) fn new(ring: Ring<R>) -> Self {
        // What the subscriber itself wrote, maybe as the process before this one.
        let head = ring.load(HEAD, Ordering::Relaxed);
        let gaps_taken = ring.load(GAPS_TAKEN, Ordering::Relaxed);
        Self { ring, head, gaps_taken, gaps: gaps_taken }
    }

    /// How many entries found the ring full: what this subscriber lost, told or not yet.
    pub fn refused(&self) -> u64 {
        self.ring.load(REFUSED, Ordering::Relaxed)
    }

    /// The next entry. Gaps are passed over, and an eviction is not told: see [`Taker::next`].
    #[inline]
    pub fn take(&mut self) -> Option<u64> {
        // As many gaps as there are places may stand before an entry; one that is begun during this call comes later.
        for _ in 0..=GAP_PLACES {
            match self.next()? {
                Taken::Entry(entry) => return Some(entry),
                Taken::Gap(_) => {}
                Taken::Evicted { .. } => return None,
            }
        }
        None
    }

    /// What comes next; its room is the publisher's again.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that has ended stays so, and this one goes on"
    )]
    pub fn next(&mut self) -> Option<Taken> {
        let taken = self.hold();
        if matches!(taken, Some(Taken::Entry(_))) {
            self.release();
        }
        taken
    }

    /// What comes next, while its room stays taken until [`Taker::release`]: a subscriber that may lose nothing keeps the
    /// publisher from writing over what it still reads. One that ends before it releases is given the same again.
    #[inline]
    pub fn hold(&mut self) -> Option<Taken> {
        let Some(entry) = self.ring.there(self.head) else { return self.without_entry() };
        if entry & word::BEHIND_GAP != 0
            && let Some(gap) = self.gap_before_entry()
        {
            return Some(Taken::Gap(gap));
        }
        Some(self.hold_entry(entry))
    }

    #[inline]
    fn hold_entry(&mut self, entry: u64) -> Taken {
        self.head = self.head.wrapping_add(1);
        Taken::Entry(entry >> word::SHIFT)
    }

    /// Gives the room of all that was taken back to the publisher.
    #[inline]
    pub fn release(&mut self) {
        // Pairs with the load in `Pusher::look_up_head`.
        self.ring.store(HEAD, self.head, Ordering::Release);
    }

    /// Whether an entry is there to be taken: one look at the line that it comes with, for who spins. Gaps behind which
    /// nothing came, and an eviction, it does not see; for those, the publisher marks the inbox.
    #[inline]
    pub fn has_entry(&self) -> bool {
        self.ring.there(self.head).is_some()
    }

    /// Whether an entry or a gap waits. Looks at the publisher's line.
    pub fn has_more(&mut self) -> bool {
        self.look_up_gaps();
        self.has_entry() || self.gaps != self.gaps_taken
    }

    fn look_up_gaps(&mut self) {
        // Pairs with the store in `Pusher::refuse`.
        let gaps = self.ring.load(GAPS, Ordering::Acquire);
        // A publisher that writes nonsense has begun none.
        if gaps.wrapping_sub(self.gaps_taken) <= GAP_PLACES {
            self.gaps = gaps;
        }
    }

    /// The next gap that stands before the entry that is next and is there.
    #[cold]
    fn gap_before_entry(&mut self) -> Option<Gap> {
        // After the entry, so that each gap before it is known.
        self.look_up_gaps();
        match self.take_gap() {
            Look::Gap(gap) => Some(gap),
            // One that is being changed has no entry behind it yet: it stands behind this one.
            Look::Nothing | Look::Changing => None,
        }
    }

    /// What comes where no entry is: a gap that nothing was pushed behind, or the end.
    #[cold]
    fn without_entry(&mut self) -> Option<Taken> {
        self.look_up_gaps();
        match self.take_gap() {
            Look::Gap(gap) => Some(Taken::Gap(gap)),
            // It is the last thing there: the publisher rings when it is done.
            Look::Changing => None,
            Look::Nothing => self.evicted(),
        }
    }

    /// The next gap, if it stands before the next entry.
    #[cold]
    fn take_gap(&mut self) -> Look {
        while self.gaps_taken != self.gaps {
            let at = place(self.gaps_taken);
            let Some(word) = self.ring.word(at + gap::STATE) else { return Look::Nothing };
            // Pairs with the stores in `Pusher::refuse` and `Pusher::lengthen`.
            let state = word.load(Ordering::Acquire);
            match state & gap::MASK {
                gap::THERE => {}
                gap::CHANGING => return Look::Changing,
                // Told by a process before this one, which ended right after, or nonsense.
                _ => {
                    self.count_gap();
                    continue;
                }
            }
            if self.ring.load(at + gap::AT, Ordering::Relaxed) != self.head {
                return Look::Nothing;
            }
            let found = Gap {
                count: state >> 2,
                first: self.ring.load(at + gap::FIRST, Ordering::Relaxed),
                last: self.ring.load(at + gap::LAST, Ordering::Relaxed),
            };
            // Release pairs with the loads in `Pusher::lengthen` and `Pusher::close`: the words have been read.
            let is_taken =
                word.compare_exchange(state, gap::TAKEN, Ordering::Release, Ordering::Relaxed).is_ok();
            if !is_taken {
                return Look::Changing;
            }
            self.count_gap();
            return Look::Gap(found);
        }
        Look::Nothing
    }

    fn count_gap(&mut self) {
        self.gaps_taken = self.gaps_taken.wrapping_add(1);
        // Pairs with the load in `Pusher::close`: the place is the publisher's again. Also for a process that comes after
        // this one.
        self.ring.store(GAPS_TAKEN, self.gaps_taken, Ordering::Release);
    }

    /// Whether the publisher has given the subscriber up. Changes nothing, so that a third process may ask.
    pub fn is_evicted(&self) -> bool {
        // Pairs with the store in `Pusher::evict`.
        self.ring.load(EVICTED, Ordering::Acquire) != 0
    }

    fn evicted(&mut self) -> Option<Taken> {
        // Pairs with the store in `Pusher::evict`, which comes after every entry.
        if self.ring.load(EVICTED, Ordering::Acquire) == 0 {
            return None;
        }
        if self.has_more() {
            // Pushed in between: the caller looks again, as it does after everything that it takes.
            return self.hold_once_more();
        }
        Some(Taken::Evicted { first: self.ring.load(EVICTED_FROM, Ordering::Relaxed) })
    }

    /// One more look after the last entry was pushed; bounded, whatever the words say.
    #[cold]
    fn hold_once_more(&mut self) -> Option<Taken> {
        match self.take_gap() {
            Look::Gap(gap) => return Some(Taken::Gap(gap)),
            Look::Changing => return None,
            Look::Nothing => {}
        }
        let entry = self.ring.there(self.head)?;
        Some(self.hold_entry(entry))
    }
}
