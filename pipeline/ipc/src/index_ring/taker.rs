//! The subscriber's side.

use super::{EVICTED, EVICTED_FROM, GAP_PLACES, GAPS, GAPS_TAKEN, HEAD, Ring, RingGap, gap, place, word};
use crate::{atomics::Ordering, region::Region};

/// Item that a subscriber takes from its ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Entry(u64),
    /// Lost entries, at their place among the others.
    Gap(RingGap),
    /// The publisher has evicted the subscriber for being too far behind; it gets nothing from the entry
    /// `first` on. Returned on every further call: a subscriber that has caught up asks to be reconnected.
    Evicted {
        /// The first entry that it did not get.
        first: u64,
    },
}

/// The subscriber's side of a ring.
#[derive(Debug)]
pub struct Taker<R> {
    pub(super) ring: Ring<R>,
    head: u64,
    gaps_taken: u64,
    /// Number of started gaps when last read.
    gaps: u64,
}

/// Result of checking the next gap.
enum GapLook {
    Gap(RingGap),
    /// No gap before the next entry.
    Nothing,
    /// The publisher is changing it.
    Changing,
}

impl<R: Region> Taker<R> {
    pub(super) fn new(ring: Ring<R>) -> Self {
        // Written by the subscriber itself, possibly by its predecessor.
        let head = ring.load(HEAD, Ordering::Relaxed);
        let gaps_taken = ring.load(GAPS_TAKEN, Ordering::Relaxed);
        Self { ring, head, gaps_taken, gaps: gaps_taken }
    }

    /// Number of entries that are not taken yet, in a ring whose subscriber is elsewhere.
    pub fn waiting(&self) -> u64 {
        // Relaxed: a count for people.
        self.ring.load(super::TAIL, Ordering::Relaxed).wrapping_sub(self.head)
    }

    /// Returns the next entry. Skips gaps and ignores an eviction: see [`Taker::next`].
    #[inline]
    pub fn take(&mut self) -> Option<u64> {
        // At most as many gaps as places precede an entry; a gap started during this call comes later.
        for _ in 0..=GAP_PLACES {
            match self.next()? {
                Taken::Entry(entry) => return Some(entry),
                Taken::Gap(_) => {}
                Taken::Evicted { .. } => return None,
            }
        }
        None
    }

    /// Returns the next item and releases its room to the publisher.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that has ended stays ended, while this one continues"
    )]
    pub fn next(&mut self) -> Option<Taken> {
        let taken = self.hold();
        if matches!(taken, Some(Taken::Entry(_))) {
            self.release();
        }
        taken
    }

    /// Returns the next item without releasing its room until [`Taker::release`], so that the publisher does
    /// not overwrite what is still being read. After a restart without a release the same item is returned
    /// again.
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

    /// Releases the room of everything taken.
    #[inline]
    pub fn release(&mut self) {
        // Pairs with the load in `Pusher::look_up_head`.
        self.ring.store(HEAD, self.head, Ordering::Release);
    }

    /// Returns true if an entry can be taken: one read of its own line, for spinning. It does not see trailing gaps or
    /// an eviction; for those the publisher marks the inbox.
    #[inline]
    pub fn has_entry(&self) -> bool {
        self.ring.there(self.head).is_some()
    }

    /// Returns true if an entry or a gap is pending. Reads the publisher's line.
    pub fn has_more(&mut self) -> bool {
        self.look_up_gaps();
        self.has_entry() || self.gaps != self.gaps_taken
    }

    fn look_up_gaps(&mut self) {
        // Pairs with the store in `Pusher::refuse`.
        let gaps = self.ring.load(GAPS, Ordering::Acquire);
        // A publisher that writes nonsense has started no gaps.
        if gaps.wrapping_sub(self.gaps_taken) <= GAP_PLACES {
            self.gaps = gaps;
        }
    }

    /// The next gap, if it precedes the next available entry.
    #[cold]
    fn gap_before_entry(&mut self) -> Option<RingGap> {
        // After the entry, so that every gap before it is visible.
        self.look_up_gaps();
        match self.take_gap() {
            GapLook::Gap(gap) => Some(gap),
            // A gap being changed has no entry after it yet: it follows this entry.
            GapLook::Nothing | GapLook::Changing => None,
        }
    }

    /// Returns a trailing gap or an eviction, if there is one, when no entry is available.
    #[cold]
    fn without_entry(&mut self) -> Option<Taken> {
        self.look_up_gaps();
        match self.take_gap() {
            GapLook::Gap(gap) => Some(Taken::Gap(gap)),
            // It is the last item: the publisher rings when the change is complete.
            GapLook::Changing => None,
            GapLook::Nothing => self.evicted(),
        }
    }

    /// The next gap, if it precedes the next entry.
    #[cold]
    fn take_gap(&mut self) -> GapLook {
        while self.gaps_taken != self.gaps {
            let at = place(self.gaps_taken);
            let Some(word) = self.ring.word(at + gap::STATE) else { return GapLook::Nothing };
            // Pairs with the stores in `Pusher::refuse` and `Pusher::lengthen`.
            let state = word.load(Ordering::Acquire);
            match state & gap::MASK {
                gap::THERE => {}
                gap::CHANGING => return GapLook::Changing,
                // Reported to a predecessor that ended right after, or nonsense.
                _ => {
                    self.count_gap();
                    continue;
                }
            }
            if self.ring.load(at + gap::AT, Ordering::Relaxed) != self.head {
                return GapLook::Nothing;
            }
            let found = RingGap {
                count: state >> 2,
                first: self.ring.load(at + gap::FIRST, Ordering::Relaxed),
                last: self.ring.load(at + gap::LAST, Ordering::Relaxed),
            };
            // Release pairs with the loads in `Pusher::lengthen` and `Pusher::close`: the words have been read.
            let is_taken =
                word.compare_exchange(state, gap::TAKEN, Ordering::Release, Ordering::Relaxed).is_ok();
            if !is_taken {
                return GapLook::Changing;
            }
            self.count_gap();
            return GapLook::Gap(found);
        }
        GapLook::Nothing
    }

    fn count_gap(&mut self) {
        self.gaps_taken = self.gaps_taken.wrapping_add(1);
        // Pairs with the load in `Pusher::close`: the place is the publisher's again. Also read by a successor
        // of this process.
        self.ring.store(GAPS_TAKEN, self.gaps_taken, Ordering::Release);
    }

    /// Returns true if the publisher has evicted the subscriber. Changes nothing, so that a third process may check.
    pub fn is_evicted(&self) -> bool {
        // Pairs with the store in `Pusher::evict`.
        self.ring.load(EVICTED, Ordering::Acquire) != 0
    }

    fn evicted(&mut self) -> Option<Taken> {
        // Every entry precedes the eviction.
        if !self.is_evicted() {
            return None;
        }
        if !self.has_more() {
            return Some(Taken::Evicted { first: self.ring.load(EVICTED_FROM, Ordering::Relaxed) });
        }
        // Pushed in between: one more check after the last entry was pushed; bounded, whatever the words contain.
        match self.take_gap() {
            GapLook::Gap(gap) => Some(Taken::Gap(gap)),
            GapLook::Changing => None,
            GapLook::Nothing => self.ring.there(self.head).map(|entry| self.hold_entry(entry)),
        }
    }
}
