//! Positions from one publisher to one subscriber, and an exact account of those that found no room.
//!
//! ```text
//! words of the ring
//!   0  capacity in entries, a power of two
//!  16  tail: number of entries pushed          (publisher's line; for its successor)
//!  17  gaps: number of gaps started
//!  18  evicted: 0, or 1 once the publisher has evicted the subscriber
//!  19  the first entry that an evicted subscriber did not get
//!  32  head: number of entries taken           (subscriber's line)
//!  33  gaps taken: number of gaps reported
//!  48  refused: number of entries that found the ring full    (publisher's)
//!  49  adding: the entry that extends the open gap, for the successor of a publisher that died
//!  64  16 gaps of 4 words; gap number N is in place N modulo 16
//!        state: number of missing entries * 4 + 0 taken, 1 present, 2 being extended by one
//!        at: number of entries pushed before it
//!        first, last: its first and last entry
//! 128  entries: value * 4 + 2 if a gap precedes it + lap
//!        lap: 1 in the first round of the ring, 0 in the second, 1 in the third
//! ```
//!
//! An entry itself shows that it is present: the lap bit differs from what its place contained one round ago,
//! and from the initial zeros. So a spinning subscriber polls one line, which also contains what it waits for.
//!
//! A *gap* is a run of entries that found no room, between two entries of the ring. Until an entry is pushed
//! after it, it is open: the publisher extends it, and a subscriber that has taken every entry before it may
//! take it as it is, so that a loss is reported even if nothing follows. One compare-and-exchange of the state
//! decides between the two; an entry lost after a gap was taken starts a new one. The ring accepts entries
//! again only while there is a place for the next gap, so every gap is reported, in order, however slow the
//! subscriber is.

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
    region::{CachedWords, Region},
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
/// Places for gaps. Loom tracks every word, so it gets the fewest with which an entry can follow a gap.
const GAP_PLACES: u64 = if cfg!(lowlat_loom) { 2 } else { 16 };
const GAP_WORDS: usize = 4;
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const ENTRIES: usize = GAP + GAP_PLACES as usize * GAP_WORDS;

/// The largest entry: the lower bits of an entry's word are used by the ring.
pub const ENTRY_MAX: u64 = u64::MAX >> 2;

/// Parts of an entry's word.
mod word {
    /// Number of bits below the entry.
    pub const SHIFT: u32 = 2;
    /// Set if a gap precedes the entry.
    pub const BEHIND_GAP: u64 = 2;
    /// Set in every other lap, starting with the first.
    pub const LAP: u64 = 1;
}

/// Word numbers of a gap, and its states.
mod gap {
    pub const STATE: usize = 0;
    pub const AT: usize = 1;
    pub const FIRST: usize = 2;
    pub const LAST: usize = 3;

    /// Lower bits of a state. Its upper bits count, so no state of a gap recurs.
    pub const MASK: u64 = 3;
    pub const TAKEN: u64 = 0;
    pub const THERE: u64 = 1;
    pub const CHANGING: u64 = 2;
}

/// Consecutive entries that found no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingGap {
    pub count: u64,
    /// The first entry without room.
    pub first: u64,
    /// The last entry without room.
    pub last: u64,
}

/// Bytes of memory of a ring with this many entries.
pub const fn bytes(entries: u64) -> u64 {
    (ENTRIES as u64 + entries) * 8
}

/// The ring, as both sides use it.
#[derive(Debug)]
struct Ring<R> {
    memory: CachedWords<R>,
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

    /// The lap bit of the entry with that number.
    fn lap(&self, number: u64) -> u64 {
        if number & self.capacity() == 0 { word::LAP } else { 0 }
    }

    /// The word of the entry with that number; `None` if it is not present.
    #[inline]
    fn there(&self, number: u64) -> Option<u64> {
        // Pairs with the store in `Pusher::push`: the entry's record is visible, and each gap before it.
        let word = self.load(self.entry(number), Ordering::Acquire);
        (word & word::LAP == self.lap(number)).then_some(word)
    }

    fn capacity(&self) -> u64 {
        self.mask + 1
    }
}

/// Index of the first word of a gap.
fn place(number: u64) -> usize {
    GAP + usize::try_from(number % GAP_PLACES).unwrap_or(0) * GAP_WORDS
}

/// Creates a ring in zeroed memory and returns the publisher's side; `None` if `entries` is not a power of two
/// or the memory is too small.
pub fn create<R: Region>(region: R, entries: u64) -> Option<Pusher<R>> {
    let ring = ring(region, entries)?;
    // Pairs with the load in `open`.
    ring.store(CAPACITY, entries, Ordering::Release);
    Some(Pusher::new(ring))
}

/// Opens a ring that the publisher created; `None` if its first word does not fit the memory. A restarted
/// subscriber resumes where it was.
pub fn open<R: Region>(region: R) -> Option<Taker<R>> {
    // Pairs with the store in `create`.
    let entries = region.words().get(CAPACITY).map_or(0, |word| word.load(Ordering::Acquire));
    ring(region, entries).map(Taker::new)
}

/// Resumes the publisher's side of an existing ring, for the successor of a publisher that died. `None` if the
/// ring's words are inconsistent.
pub fn resume<R: Region>(region: R) -> Option<Pusher<R>> {
    let Taker { ring, .. } = open(region)?;
    Pusher::resume(ring)
}

/// A ring of this many entries; `None` if there can be none, or the memory is too small.
fn ring<R: Region>(region: R, entries: u64) -> Option<Ring<R>> {
    let room = region.words().len().saturating_sub(ENTRIES);
    let fits = entries.is_power_of_two() && usize::try_from(entries).is_ok_and(|entries| entries <= room);
    fits.then(|| Ring { memory: CachedWords::new(region), mask: entries - 1 })
}

/// A gap that a subscriber took but did not count before it died; its words are still intact.
#[cfg(all(test, lowlat_shuttle))]
pub(crate) fn taken_and_not_counted(region: &impl Region) -> Option<RingGap> {
    let load = |at: usize| region.words().get(at).map_or(0, |word| word.load(Ordering::Acquire));
    let at = place(load(GAPS_TAKEN));
    let is_it = load(GAPS) > load(GAPS_TAKEN) && load(at + gap::STATE) == gap::TAKEN;
    let [first, last] = [gap::FIRST, gap::LAST].map(|word| load(at + word));
    is_it.then(|| RingGap { count: last - first + 1, first, last })
}
