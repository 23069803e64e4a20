//! A subscriber's small piece of memory: its bell, and which streams have something for it.
//!
//! ```text
//! words
//!   0  bell (16 words, see crate::doorbell)
//!  16  ready: 16 words, one bit per stream; set by its publisher, taken by the subscriber
//! ```
//!
//! So a subscriber of a thousand streams reads two cache lines to learn which of them to read.
//!
//! ```text
//! publisher                               subscriber
//!   put the entry                           take the bit
//!   fence                                   fence
//!   is the bit set?                         look for entries
//!   no: set it
//! ```
//!
//! With the two fences at least one side sees what the other did: if the publisher found the bit set, the bit
//! is taken after the entry was put, and whoever takes it finds the entry. So a spinning subscriber may poll a
//! few streams for entries itself and leave their bits set ([`Inbox::take_ready_but`]): the publishers then
//! write no bits, and an entry costs a single cache line.

use crate::{
    atomics::{AtomicU64, Ordering, fence},
    doorbell::{self, BELL_WORDS, Bell, Park, Waited},
    region::{CachedWords, Region},
};
use std::time::Duration;

/// Maximum number of streams per subscriber.
pub const STREAMS_MAX: u32 = 1024;
/// Bytes of memory of an inbox.
pub const BYTES: u64 = 256;
const READY: usize = BELL_WORDS;
const READY_WORDS: usize = 16;
const _: () = assert!((READY + READY_WORDS) as u64 * 8 == BYTES && READY_WORDS * 64 == STREAMS_MAX as usize);

/// An inbox, as its subscriber and its publishers use it.
#[derive(Debug)]
pub struct Inbox<R> {
    memory: CachedWords<R>,
    /// Words with the bits of the streams that its subscriber reads.
    words: usize,
}

impl<R: Region> Inbox<R> {
    /// The inbox in zeroed memory, or in memory that the subscriber created; `None` if it is too small or
    /// misaligned.
    pub fn new(region: R) -> Option<Self> {
        let inbox = Self { memory: CachedWords::new(region), words: READY_WORDS };
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

    /// Subscriber: from here on it looks at streams below `count` only, and leaves the bits of others.
    pub fn expect_streams(&mut self, count: u32) {
        self.words = usize::try_from(count.div_ceil(64)).unwrap_or(READY_WORDS).min(READY_WORDS);
    }

    /// The number of words of 64 streams that the subscriber looks at.
    #[inline]
    pub fn words_expected(&self) -> usize {
        self.words
    }

    /// The words that the subscriber looks at.
    #[inline]
    fn expected(&self) -> &[AtomicU64] {
        self.ready().and_then(|words| words.get(..self.words)).unwrap_or_default()
    }

    /// The word with the bit of a stream.
    #[inline]
    fn word_of(&self, stream: u32) -> Option<&AtomicU64> {
        self.ready()?.get(usize::try_from(stream / 64).ok()?)
    }

    /// Publisher: notifies the subscriber about its stream number `stream`. Returns whether it slept and was
    /// woken.
    #[inline]
    pub fn notify(&self, stream: u32, park: &impl Park) -> bool {
        self.mark(stream);
        self.bell().is_some_and(|bell| bell.ring(park))
    }

    /// Publisher: the first half of [`Inbox::notify`], which running subscribers see.
    #[inline]
    pub fn mark(&self, stream: u32) {
        if let Some(word) = self.word_of(stream) {
            // Pairs with the swap in `take_ready`: whoever takes the bit sees what was put before.
            word.fetch_or(1 << (stream % 64), Ordering::Release);
        }
    }

    /// Publisher: like [`Inbox::mark`], after a sequentially consistent fence since the entry was put, which
    /// may serve several subscribers. Leaves a set bit alone. Returns whether it set the bit: then another such
    /// fence is needed before [`Inbox::claim`].
    #[inline]
    pub fn mark_behind_fence(&self, stream: u32) -> bool {
        let bit = 1 << (stream % 64);
        // Relaxed: the fences order it.
        let is_due = self.word_of(stream).filter(|word| word.load(Ordering::Relaxed) & bit == 0);
        if let Some(word) = is_due {
            // Pairs with the change in `take_ready_but`.
            word.fetch_or(bit, Ordering::Release);
        }
        is_due.is_some()
    }

    /// Publisher: the second half of [`Inbox::notify`], after one sequentially consistent fence that may serve
    /// several subscribers. Claims the wake of the subscriber if it sleeps.
    #[inline]
    pub fn claim(&self) -> bool {
        self.bell().is_some_and(Bell::claim)
    }

    /// Publisher, or a thread that acts for it: wakes a subscriber after a successful claim.
    pub fn wake_claimed(&self, park: &impl Park) {
        self.bell().into_iter().for_each(|bell| bell.wake_claimed(park));
    }

    /// Subscriber: calls `ready` with the number of each stream that has something. Clears its bit before the
    /// call, so that later entries set it again. Returns the number of streams.
    #[inline]
    pub fn take_ready(&self, ready: impl FnMut(u32)) -> u32 {
        self.take_ready_but(0, ready)
    }

    /// Like [`Inbox::take_ready`], without the streams among the first 64 that have a bit in `but`, whose
    /// entries the subscriber polls itself. It should still take those now and then: a publisher reports more
    /// than entries.
    #[inline]
    pub fn take_ready_but(&self, but: u64, mut ready: impl FnMut(u32)) -> u32 {
        let mut count = 0;
        for (number, word) in (0_u32..).zip(self.expected()) {
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

    /// Returns true if a stream has something.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.is_ready_but(0)
    }

    /// Returns true if a stream has something, other than those of the first 64 that have a bit in `but`.
    #[inline]
    pub fn is_ready_but(&self, but: u64) -> bool {
        let mut ready = self.expected().iter().map(|word| word.load(Ordering::Relaxed));
        ready.next().is_some_and(|bits| bits & !but != 0) || ready.any(|bits| bits != 0)
    }

    /// Subscriber: sleeps until a stream has something, or `longest` has elapsed.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub fn wait(&self, park: &impl Park, longest: Duration) -> Waited {
        self.bell().map_or(Waited::TimedOut, |bell| bell.wait(park, longest, || self.is_ready()))
    }

    /// Subscriber: publishes whether it spins or runs, for monitoring.
    pub fn set_spinning(&self, is_spinning: bool) {
        self.bell().into_iter().for_each(|bell| bell.set_spinning(is_spinning));
    }

    /// State of the subscriber, for monitoring: [`crate::doorbell::RUNNING`] and so on.
    pub fn state(&self) -> u32 {
        self.bell().map_or(doorbell::RUNNING, Bell::state)
    }

    /// Number of wakes by publishers, and of wakes that only the safety net caught.
    pub fn woken_and_missed(&self) -> (u64, u64) {
        self.bell().map_or((0, 0), |bell| (bell.woken(), bell.missed()))
    }
}

#[cfg(all(test, not(any(lowlat_loom, lowlat_shuttle))))]
mod tests {
    use super::*;
    use crate::region::Heap;

    impl<R: Region> Inbox<R> {
        /// The state that a subscriber stores before it sleeps.
        pub(crate) fn set_parked(&self) {
            self.bell().unwrap().set_parked();
        }
    }

    #[test]
    fn a_subscriber_of_few_streams_looks_at_few_words() {
        let mut inbox = Inbox::new(Heap::zeroed(BYTES)).unwrap();
        let taken = |inbox: &Inbox<Heap>| {
            let mut streams = Vec::new();
            inbox.take_ready(|stream| streams.push(stream));
            streams
        };
        inbox.expect_streams(65);
        for stream in [0, 63, 64, 127, 128, STREAMS_MAX - 1] {
            inbox.mark(stream);
        }
        assert!(inbox.is_ready());
        assert_eq!(taken(&inbox), [0, 63, 64, 127], "whole words");
        assert!(!inbox.is_ready());
        inbox.expect_streams(STREAMS_MAX);
        assert_eq!(taken(&inbox), [128, STREAMS_MAX - 1], "the others are kept");
    }
}
