//! Positions from one publisher to one subscriber, and an exact account of those that found no room.
//!
//! ```text
//! words of the ring
//!   0  capacity in entries, a power of two
//!  16  tail: how many entries were pushed       (publisher's line; for who goes on after it)
//!  17  gaps: how many gaps were begun
//!  18  evicted: 0, or 1 once the publisher has given the subscriber up
//!  19  the first entry that an evicted subscriber was not given
//!  32  head: how many were taken                (subscriber's line)
//!  33  gaps taken: how many gaps were told
//!  48  refused: how many found the ring full    (publisher's)
//!  49  adding: the entry that the open gap is made longer by, for who finishes the work of a publisher that died
//!  64  16 gaps of 4 words; gap number N is in place N modulo 16
//!        state: how many entries it lacks * 4 + 0 taken, 1 there, 2 being made longer by one
//!        at: how many entries were pushed before it
//!        first, last: the entries it begins and ends with
//! 128  entries: what was pushed * 4 + 2 if a gap stands before it + lap
//!        lap: 1 in the first round of the ring, 0 in the second, 1 in the third
//! ```
//!
//! An entry says itself that it is there: by the lap, it differs from what stood in its place a round ago, and from the
//! zeros before the first. So a subscriber that spins looks at one line, and what it waits for comes with the same line.
//!
//! A *gap* is a run of entries that found no room, and stands between two entries of the ring. While no entry is pushed
//! behind it, it is open: the publisher makes it longer, and a subscriber that has taken every entry before it may
//! take it as it is, so that a loss is told even if nothing more comes. One compare-and-exchange of the state decides
//! between the two; an entry that is lost after a gap was taken begins a new one. The ring takes entries again only while
//! there is a place for the next gap, so that every one is told, in its order, however slow the subscriber is.

#[cfg(all(test, lowlat_loom))]
mod loom_tests;
mod pusher;
mod taker;
#[cfg(all(test, not(any(lowlat_loom, lowlat_shuttle))))]
mod tests;

pub use pusher::Pusher;
pub use taker::{Taken, Taker};

use crate::{
    atomics::{AtomicU64, Ordering},
    region::{Held, Region},
};

const CAPACITY: usize = 0;
const TAIL: usize = 16;
const GAPS: usize = 17;
const EVICTED: usize = 18;
const EVICTED_FROM: usize = 19;
const HEAD: usize = 32;
const GAPS_TAKEN: usize = 33;
const REFUSED: usize = 48;
const ADDING: usize = 49;
const GAP: usize = 64;
/// Places for gaps. Loom keeps books of every word, so it gets the fewest with which an entry can follow a gap.
const GAP_PLACES: u64 = if cfg!(lowlat_loom) { 2 } else { 16 };
const GAP_WORDS: usize = 4;
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const ENTRIES: usize = GAP + GAP_PLACES as usize * GAP_WORDS;

/// The largest entry: the lower bits of an entry's word are the ring's.
pub const ENTRY_MAX: u64 = u64::MAX >> 2;

/// Parts of an entry's word.
mod word {
    /// How far up the entry stands.
    pub const SHIFT: u32 = 2;
    /// A gap stands before it.
    pub const BEHIND_GAP: u64 = 2;
    /// Set in every other lap, from the first one on.
    pub const LAP: u64 = 1;
}

/// Words of a gap.
mod gap {
    pub const STATE: usize = 0;
    pub const AT: usize = 1;
    pub const FIRST: usize = 2;
    pub const LAST: usize = 3;

    /// The lower bits of a state. Its upper bits count, so no state of one gap comes twice.
    pub const MASK: u64 = 3;
    pub const TAKEN: u64 = 0;
    pub const THERE: u64 = 1;
    pub const CHANGING: u64 = 2;
}

/// Entries that found no room, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// How many.
    pub count: u64,
    /// The first of them.
    pub first: u64,
    /// The last of them.
    pub last: u64,
}

/// Bytes of memory that a ring of so many entries takes.
pub const fn bytes(entries: u64) -> u64 {
    (ENTRIES as u64 + entries) * 8
}

/// The ring as both sides see it.
#[derive(Debug)]
struct Ring<R> {
    memory: Held<R>,
    mask: u64,
}

impl<R: Region> Ring<R> {
    fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.memory.words().get(at)
    }

    fn load(&self, at: usize, ordering: Ordering) -> u64 {
        self.word(at).map_or(0, |word| word.load(ordering))
    }

    fn store(&self, at: usize, value: u64, ordering: Ordering) {
        if let Some(word) = self.word(at) {
            word.store(value, ordering);
        }
    }

    fn entry(&self, number: u64) -> usize {
        ENTRIES + usize::try_from(number & self.mask).unwrap_or(0)
    }

    /// The lap's bit in the word of an entry of that number.
    fn lap(&self, number: u64) -> u64 {
        if number & self.capacity() == 0 { word::LAP } else { 0 }
    }

    /// The word of the entry of that number; none while it is not there.
    #[inline]
    fn there(&self, number: u64) -> Option<u64> {
        // Pairs with the store in `Pusher::push`: the record that the entry stands for is seen, and each gap before it.
        let word = self.load(self.entry(number), Ordering::Acquire);
        (word & word::LAP == self.lap(number)).then_some(word)
    }

    fn capacity(&self) -> u64 {
        self.mask + 1
    }
}

/// Where the words of a gap begin.
fn place(number: u64) -> usize {
    GAP + usize::try_from(number % GAP_PLACES).unwrap_or(0) * GAP_WORDS
}

/// Makes a ring of zeroed memory and gives the publisher's side; none when `entries` is no power of two or the memory
/// too small.
pub fn create<R: Region>(region: R, entries: u64) -> Option<Pusher<R>> {
    let is_right = entries.is_power_of_two() && has_room(&region, entries);
    let ring = Ring { memory: Held::new(region), mask: entries.wrapping_sub(1) };
    is_right.then(|| {
        // Pairs with the load in `open`.
        ring.store(CAPACITY, entries, Ordering::Release);
        Pusher::new(ring)
    })
}

/// Opens a ring that the publisher made; none when its first word does not fit the memory. A subscriber that starts
/// again goes on where it was.
pub fn open<R: Region>(region: R) -> Option<Taker<R>> {
    // Pairs with the store in `create`.
    let entries = region.words().get(CAPACITY).map_or(0, |word| word.load(Ordering::Acquire));
    let is_right = entries.is_power_of_two() && has_room(&region, entries);
    let ring = Ring { memory: Held::new(region), mask: entries.wrapping_sub(1) };
    is_right.then(|| Taker::new(ring))
}

/// The publisher's side of a ring that was made before, where the one before it stopped: for who finishes the work of a
/// publisher that died. None when the ring's words do not fit each other.
pub fn resume<R: Region>(region: R) -> Option<Pusher<R>> {
    let Taker { ring, .. } = open(region)?;
    Pusher::resume(ring)
}

fn has_room(region: &impl Region, entries: u64) -> bool {
    usize::try_from(entries).is_ok_and(|entries| region.words().len().saturating_sub(ENTRIES) >= entries)
}

/// The gap that a subscriber took and did not count, when it has ended in between: its words are still those that it read.
#[cfg(all(test, lowlat_shuttle))]
pub(crate) fn taken_and_not_counted(region: &impl Region) -> Option<Gap> {
    let load = |at: usize| region.words().get(at).map_or(0, |word| word.load(Ordering::Acquire));
    let at = place(load(GAPS_TAKEN));
    let is_it = load(GAPS) > load(GAPS_TAKEN) && load(at + gap::STATE) == gap::TAKEN;
    let [first, last] = [gap::FIRST, gap::LAST].map(|word| load(at + word));
    is_it.then(|| Gap { count: last - first + 1, first, last })
}
