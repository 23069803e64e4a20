//! The latest position of each instrument, for subscribers that need the current state rather than every
//! change.
//!
//! ```text
//! words
//!   0  instruments: number of instruments
//!  16  newest: the newest position that was put, + 1    (publisher's line)
//!  17  conflated: number of positions replaced by a newer one
//!  18  outside: number of positions of instruments that the table lacks
//!  32  ready: one bit per instrument, up to a multiple of 16 words
//!   …  places: one word per instrument: position * 2 + 1, or + 0 once taken
//! ```
//!
//! The subscriber takes positions in order of publication. It reads `newest` first and leaves newer positions
//! for the next round: everything up to `newest` was already in its place, so nothing older can follow. One
//! exchange takes a position at the moment it is returned; if a newer position has replaced it, the newer one
//! is returned later and the older one counts as conflated. So each position is taken, conflated or still
//! pending.

use crate::{
    atomics::{AtomicU64, Ordering},
    region::{CachedWords, Region},
};

const INSTRUMENTS: usize = 0;
const NEWEST: usize = 16;
const CONFLATED: usize = 17;
const OUTSIDE: usize = 18;
const READY: usize = 32;
/// Bit of a place: not yet taken by the subscriber.
const FRESH: u64 = 1;

/// Number of words of the ready bits.
const fn ready_words(instruments: u32) -> u64 {
    (instruments as u64).div_ceil(64).next_multiple_of(16)
}

/// Bytes of memory of a table for this many instruments.
pub const fn bytes(instruments: u32) -> u64 {
    (READY as u64 + ready_words(instruments) + instruments as u64) * 8
}

/// The table, as both sides use it.
#[derive(Debug)]
struct Table<R> {
    memory: CachedWords<R>,
    instruments: u32,
}

impl<R: Region> Table<R> {
    fn new(region: R, instruments: u32) -> Option<Self> {
        let words = u64::try_from(region.words().len()).ok()?;
        (instruments > 0 && words >= bytes(instruments) / 8)
            .then(|| Self { memory: CachedWords::new(region), instruments })
    }

    fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.memory.words().get(at)
    }

    fn load(&self, at: usize, ordering: Ordering) -> u64 {
        self.word(at).map_or(0, |word| word.load(ordering))
    }

    fn place(&self, instrument: u32) -> Option<&AtomicU64> {
        let first = READY + usize::try_from(ready_words(self.instruments)).ok()?;
        if instrument < self.instruments {
            self.word(first + usize::try_from(instrument).ok()?)
        } else {
            None
        }
    }

    fn ready(&self) -> &[AtomicU64] {
        let count = usize::try_from(self.instruments.div_ceil(64)).unwrap_or(0);
        self.memory.words().get(READY..READY + count).unwrap_or_default()
    }

    fn set_ready(&self, instrument: u32) {
        let at = usize::try_from(instrument / 64).unwrap_or(usize::MAX);
        if let Some(word) = self.ready().get(at) {
            // Pairs with the swap in `LatestTaker::gather`: whoever takes the bit sees the place.
            word.fetch_or(1 << (instrument % 64), Ordering::Release);
        }
    }

    fn count(&self, at: usize) {
        if let Some(word) = self.word(at) {
            // Only one publisher writes it.
            word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }
}

/// Result of putting a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It was stored, and replaced no pending one.
    New,
    /// It replaced an older one that was not taken.
    Conflated,
    /// The table has no such instrument.
    Outside,
}

/// The publisher's side of a table.
#[derive(Debug)]
pub struct LatestPutter<R> {
    table: Table<R>,
}

/// The subscriber's side of a table.
#[derive(Debug)]
pub struct LatestTaker<R> {
    table: Table<R>,
    /// Gathered positions with their instruments, newest first.
    gathered: Vec<(u64, u32)>,
    /// The table's `newest` when last read.
    newest: u64,
}

/// Creates a table in zeroed memory and returns the publisher's side; `None` if the memory is too small.
pub fn create<R: Region>(region: R, instruments: u32) -> Option<LatestPutter<R>> {
    let table = Table::new(region, instruments)?;
    // Pairs with the load in `open`.
    table.word(INSTRUMENTS)?.store(u64::from(instruments), Ordering::Release);
    Some(LatestPutter { table })
}

/// Opens a table that the publisher created; `None` if its first word does not fit the memory. A restarted
/// subscriber gets what its predecessor has not taken.
pub fn open<R: Region>(region: R) -> Option<LatestTaker<R>> {
    // Pairs with the store in `create`.
    let instruments = region.words().get(INSTRUMENTS)?.load(Ordering::Acquire);
    let table = Table::new(region, u32::try_from(instruments).ok()?)?;
    // Restores bits that the predecessor cleared without taking the positions.
    (0..table.instruments).for_each(|instrument| table.set_ready(instrument));
    let gathered = Vec::with_capacity(usize::try_from(instruments).ok()?);
    Some(LatestTaker { table, gathered, newest: 0 })
}

impl<R: Region> LatestPutter<R> {
    /// Puts the position of a record, replacing the older one of its instrument. Positions must increase.
    #[inline]
    pub fn put(&mut self, instrument: u32, position: u64) -> Put {
        let Some(place) = self.table.place(instrument) else {
            self.table.count(OUTSIDE);
            return Put::Outside;
        };
        let before = place.swap(position << 1 | FRESH, Ordering::Relaxed);
        self.table.set_ready(instrument);
        if let Some(newest) = self.table.word(NEWEST) {
            // Pairs with the load in `LatestTaker::gather`: it sees the places and bits of everything up to
            // this position, and the record.
            newest.store(position.wrapping_add(1), Ordering::Release);
        }
        if before & FRESH == 0 {
            return Put::New;
        }
        self.table.count(CONFLATED);
        Put::Conflated
    }

    /// Number of positions replaced by a newer one.
    pub fn conflated(&self) -> u64 {
        self.table.load(CONFLATED, Ordering::Relaxed)
    }

    /// Number of positions of instruments that the table lacks.
    pub fn outside(&self) -> u64 {
        self.table.load(OUTSIDE, Ordering::Relaxed)
    }
}

impl<R: Region> LatestTaker<R> {
    /// Returns the next position, in order of publication.
    #[inline]
    pub fn take(&mut self) -> Option<u64> {
        // Twice: everything gathered may have been conflated since.
        for _ in 0..2 {
            while let Some((position, instrument)) = self.gathered.pop() {
                let Some(place) = self.table.place(instrument) else { continue };
                let fresh = position << 1 | FRESH;
                // Relaxed: nothing depends on this read; `gather` synchronizes with the publisher.
                if place.compare_exchange(fresh, position << 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
                {
                    return Some(position);
                }
            }
            self.gather();
        }
        None
    }

    /// Returns true if a position may be pending. Reads the publisher's line.
    pub fn has_more(&self) -> bool {
        !self.gathered.is_empty() || self.table.load(NEWEST, Ordering::Acquire) != self.newest
    }

    /// Number of positions replaced by a newer one.
    pub fn conflated(&self) -> u64 {
        self.table.load(CONFLATED, Ordering::Relaxed)
    }

    fn gather(&mut self) {
        // Pairs with the store in `LatestPutter::put`.
        let newest = self.table.load(NEWEST, Ordering::Acquire);
        if newest == self.newest {
            return;
        }
        self.newest = newest;
        for (number, word) in (0_u32..).zip(self.table.ready()) {
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            // Pairs with the change in `Table::set_ready`.
            let mut bits = word.swap(0, Ordering::Acquire);
            while bits != 0 {
                let instrument = number * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                let Some(place) = self.table.place(instrument) else { continue };
                let found = place.load(Ordering::Relaxed);
                if found & FRESH == 0 {
                    continue;
                }
                if found >> 1 < newest {
                    // Never longer than the table: each instrument has one bit.
                    self.gathered.push((found >> 1, instrument));
                } else {
                    self.table.set_ready(instrument);
                }
            }
        }
        self.gathered.sort_unstable_by(|one, other| other.cmp(one));
    }
}

#[cfg(all(test, not(lowlat_shuttle)))]
mod tests;
