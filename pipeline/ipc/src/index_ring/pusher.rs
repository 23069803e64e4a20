//! The publisher's side.

use super::{
    ADDING, EVICTED, EVICTED_FROM, GAP_PLACES, GAPS, GAPS_TAKEN, HEAD, REFUSED, Ring, RingGap, TAIL, gap,
    place, word,
};
use crate::{atomics::Ordering, prefetch, region::Region};

/// The publisher's side of a ring.
#[derive(Debug)]
pub struct Pusher<R> {
    ring: Ring<R>,
    tail: u64,
    /// Number of entries taken, when last read.
    head: u64,
    /// Number of gaps started so far.
    gaps: u64,
    /// The gap that no entry follows yet.
    open: Option<RingGap>,
    /// The next entry's word marks that a gap precedes it.
    is_behind_gap: bool,
}

impl<R: Region> Pusher<R> {
    pub(super) fn new(ring: Ring<R>) -> Self {
        Self { ring, tail: 0, head: 0, gaps: 0, open: None, is_behind_gap: false }
    }

    /// Resumes the side of a publisher that died. A gap that it was extending is extended by the entry in
    /// `adding`; a gap that was started but not counted stays unreported.
    pub(super) fn resume(ring: Ring<R>) -> Option<Self> {
        // Pair with the stores in `push`, `Taker::release` and `refuse`.
        let [tail, head, gaps] = [TAIL, HEAD, GAPS].map(|at| ring.load(at, Ordering::Acquire));
        // An entry that was pushed but not counted may have been taken already.
        let tail = tail.wrapping_add(u64::from(ring.there(tail).is_some()));
        let fits = tail.wrapping_sub(head) <= ring.capacity();
        let mut pusher = Self { ring, tail, head, gaps, open: None, is_behind_gap: false };
        if let Some(at) = pusher.last_gap() {
            let word = pusher.ring.word(at + gap::STATE)?;
            let found = word.load(Ordering::Acquire);
            if found & gap::MASK == gap::CHANGING {
                // Only this ring's publisher leaves that state. Whether it had stored the entry is unknown, so
                // the entry is stored again. The state's store pairs with the load in `Taker::take_gap`.
                let entry = pusher.ring.load(ADDING, Ordering::Relaxed);
                pusher.ring.store(at + gap::LAST, entry, Ordering::Relaxed);
                word.store(state((found >> 2).wrapping_add(1)), Ordering::Release);
            }
            let [found, first, last] = [gap::STATE, gap::FIRST, gap::LAST]
                .map(|word| pusher.ring.load(at + word, Ordering::Acquire));
            // `lengthen` detects a gap that was taken.
            pusher.open = Some(RingGap { count: found >> 2, first, last });
            pusher.is_behind_gap = true;
        }
        fits.then_some(pusher)
    }

    /// The words of the last gap, if no entry follows it.
    fn last_gap(&self) -> Option<usize> {
        let at = place(self.gaps.checked_sub(1)?);
        (self.ring.load(at + gap::AT, Ordering::Relaxed) == self.tail).then_some(at)
    }

    /// The last entry, even if it found no room or was taken; `None` before the first.
    pub fn last(&self) -> Option<u64> {
        if let Some(at) = self.last_gap() {
            return Some(self.ring.load(at + gap::LAST, Ordering::Relaxed));
        }
        let number = self.tail.checked_sub(1)?;
        Some(self.ring.load(self.ring.entry(number), Ordering::Relaxed) >> word::SHIFT)
    }

    /// Pushes an entry, of [`super::ENTRY_MAX`] at most. Returns false if there is no room, which is counted
    /// and reported to the subscriber as part of a gap.
    #[inline]
    pub fn push(&mut self, entry: u64) -> bool {
        if !self.has_room() {
            self.refuse(entry);
            return false;
        }
        let flag = if self.is_behind_gap { word::BEHIND_GAP } else { 0 };
        let word = entry << word::SHIFT | flag | self.ring.lap(self.tail);
        // Pairs with the load in `Ring::there`: the entry's record is visible, and each gap before it.
        self.ring.store(self.ring.entry(self.tail), word, Ordering::Release);
        self.is_behind_gap = false;
        // A dead publisher may have left any number.
        self.tail = self.tail.wrapping_add(1);
        // Pairs with the load in `resume`.
        self.ring.store(TAIL, self.tail, Ordering::Release);
        true
    }

    /// Returns true if the next entry finds room.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        if self.tail.wrapping_sub(self.head) >= self.ring.capacity() {
            self.look_up_head();
            // A subscriber that writes nonsense counts as full.
            if self.tail.wrapping_sub(self.head) >= self.ring.capacity() {
                return false;
            }
        }
        self.open.is_none() || self.close()
    }

    /// Returns true if the subscriber has more than this many entries left. Its line is read only if it had when last
    /// read.
    #[inline]
    pub fn is_behind(&mut self, count: u64) -> bool {
        self.tail.wrapping_sub(self.head) > count && self.behind() > count
    }

    /// Number of entries that the subscriber is behind; the whole ring if it writes nonsense.
    pub fn behind(&mut self) -> u64 {
        self.look_up_head();
        self.tail.wrapping_sub(self.head).min(self.ring.capacity())
    }

    /// Returns true if the subscriber has released none of a whole ring of entries.
    #[cfg(all(test, lowlat_shuttle))]
    pub(crate) fn is_full(&mut self) -> bool {
        self.behind() == self.ring.capacity()
    }

    /// The oldest entry that the subscriber has not released; `None` if it has released all.
    pub fn oldest(&mut self) -> Option<u64> {
        let behind = self.behind();
        // The entry is this side's own store, unless the subscriber overwrote it, which harms only itself.
        (behind > 0)
            .then(|| self.ring.entry(self.tail.wrapping_sub(behind)))
            .map(|at| self.ring.load(at, Ordering::Relaxed) >> word::SHIFT)
    }

    /// Number of entries that found the ring full.
    pub fn refused(&self) -> u64 {
        self.ring.load(REFUSED, Ordering::Relaxed)
    }

    /// Evicts the subscriber: it gets nothing from the entry `first` on. It finds this after its pending
    /// entries.
    pub fn evict(&mut self, first: u64) {
        self.ring.store(EVICTED_FROM, first, Ordering::Relaxed);
        // Pairs with the load in `Taker::evicted`.
        self.ring.store(EVICTED, 1, Ordering::Release);
    }

    pub fn is_evicted(&self) -> bool {
        self.ring.load(EVICTED, Ordering::Relaxed) != 0
    }

    /// Prefetches the line of the next entry. It changes nothing.
    #[inline]
    pub fn warm(&self) {
        prefetch::line(self.ring.word(self.ring.entry(self.tail)));
    }

    fn look_up_head(&mut self) {
        // Pairs with the store in `Taker::release`: the entry's old content was read.
        self.head = self.ring.load(HEAD, Ordering::Acquire);
    }

    #[cold]
    fn refuse(&mut self, entry: u64) {
        let refused = self.ring.load(REFUSED, Ordering::Relaxed);
        self.ring.store(REFUSED, refused.wrapping_add(1), Ordering::Relaxed);
        if let Some(open) = self.open
            && let Some(longer) = self.lengthen(open, entry)
        {
            self.open = Some(longer);
            return;
        }
        // The place is free: the previous gap was closed only if it was, or was just taken, and earlier ones
        // were counted.
        let at = place(self.gaps);
        self.ring.store(at + gap::AT, self.tail, Ordering::Relaxed);
        self.ring.store(at + gap::FIRST, entry, Ordering::Relaxed);
        self.ring.store(at + gap::LAST, entry, Ordering::Relaxed);
        // Pairs with the load in `Taker::take_gap`.
        self.ring.store(at + gap::STATE, state(1), Ordering::Release);
        self.gaps = self.gaps.wrapping_add(1);
        // Pairs with the load in `Taker::look_up_gaps`.
        self.ring.store(GAPS, self.gaps, Ordering::Release);
        self.open = Some(RingGap { count: 1, first: entry, last: entry });
        self.is_behind_gap = true;
    }

    /// Extends the open gap; `None` if the subscriber has taken it.
    fn lengthen(&self, open: RingGap, entry: u64) -> Option<RingGap> {
        let at = place(self.gaps.wrapping_sub(1));
        let word = self.ring.word(at + gap::STATE)?;
        let longer = RingGap { count: open.count + 1, last: entry, ..open };
        self.ring.store(ADDING, entry, Ordering::Relaxed);
        // Only one side wins for one state. Acquire pairs with the subscriber's exchange: it has read the
        // words. Release pairs with the load in `resume`: whoever sees the change sees the entry.
        let changing = open.count << 2 | gap::CHANGING;
        word.compare_exchange(state(open.count), changing, Ordering::AcqRel, Ordering::Acquire).ok()?;
        self.ring.store(at + gap::LAST, entry, Ordering::Relaxed);
        // Pairs with the load in `Taker::take_gap`.
        word.store(state(longer.count), Ordering::Release);
        Some(longer)
    }

    /// Closes the open gap, so that an entry can follow it; false while there is no place for another one.
    #[cold]
    fn close(&mut self) -> bool {
        // Pairs with the store in `Taker::count_gap`. A place is free once its gap is counted, not once it is
        // taken: the successor of a taker that died in between reads that place once more.
        let counted = self.ring.load(GAPS_TAKEN, Ordering::Acquire);
        // Pairs with the exchange in `Taker::take_gap`: the subscriber has read the words.
        let last = self.ring.load(place(self.gaps.wrapping_sub(1)) + gap::STATE, Ordering::Acquire);
        let is_closed = self.gaps.wrapping_sub(counted) < GAP_PLACES || last & gap::MASK != gap::THERE;
        if is_closed {
            self.open = None;
        }
        is_closed
    }
}

fn state(count: u64) -> u64 {
    count << 2 | gap::THERE
}

const _: () = assert!(GAP_PLACES >= 2, "an entry between two gaps");
