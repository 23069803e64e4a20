//! Interest of subscribers in instruments.
//!
//! ```text
//! words
//!   0  instruments: number of rows
//!  16  row of instrument 0: 16 words, one bit per subscriber
//!  32  row of instrument 1
//!   …
//!      the last row: subscribers that want everything
//! ```
//!
//! A publisher reads one row of two cache lines, whatever the number of subscribers. Rows change while
//! publishers run: a subscriber gets the records published after its bit is seen.

use crate::{
    atomics::{AtomicU64, Ordering},
    region::{CachedWords, Region},
};

/// Maximum number of subscribers per table.
pub const SUBSCRIBERS_MAX: u32 = 1024;
const ROW_WORDS: usize = 16;
const _: () = assert!(ROW_WORDS * 64 == SUBSCRIBERS_MAX as usize);

/// Bytes of memory of a table for this many instruments.
pub const fn bytes(instruments: u32) -> u64 {
    (instruments as u64 + 2) * (ROW_WORDS as u64) * 8
}

/// A set of subscribers: one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Subscribers([u64; ROW_WORDS]);

impl Subscribers {
    const ALL: Self = Self([u64::MAX; ROW_WORDS]);

    /// Adds or removes a subscriber; returns false if no subscriber can have that number.
    pub fn set(&mut self, subscriber: u32, is_in: bool) -> bool {
        let word = usize::try_from(subscriber / 64).ok().and_then(|at| self.0.get_mut(at));
        let bit = 1 << (subscriber % 64);
        word.map(|word| if is_in { *word |= bit } else { *word &= !bit }).is_some()
    }

    /// Adds the subscribers of another set.
    #[inline]
    pub(crate) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// Iterates over the subscribers, lowest first.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        (0_u32..).zip(&self.0).flat_map(|(number, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let lowest = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(number * 64 + lowest)
            })
        })
    }

    /// The first subscriber that `is_it`, among those of the first `words` words, lowest first. On most hosts one word
    /// covers all subscribers, and a publisher iterates several times per record.
    #[inline]
    pub(crate) fn find_below(&self, words: usize, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        for (number, bits) in (0_u32..).zip(self.0.iter().take(words)) {
            let mut bits = *bits;
            while bits != 0 {
                let subscriber = number * 64 + bits.trailing_zeros();
                if is_it(subscriber) {
                    return Some(subscriber);
                }
                bits &= bits - 1;
            }
        }
        None
    }

    /// Calls `found` with each of them.
    #[inline]
    pub(crate) fn each_below(&self, words: usize, mut found: impl FnMut(u32)) {
        self.find_below(words, |subscriber| {
            found(subscriber);
            false
        });
    }

    /// Number of leading words that cover all subscribers.
    #[cfg(not(lowlat_loom))]
    pub(crate) fn words(&self) -> usize {
        self.0.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1)
    }
}

/// The table, in memory that the master writes and publishers read.
#[derive(Debug)]
pub struct Interest<R> {
    memory: CachedWords<R>,
    instruments: u32,
}

impl<R: Region> Interest<R> {
    /// Creates a table in zeroed memory; `None` if that is too small.
    pub fn create(region: R, instruments: u32) -> Option<Self> {
        let table = Self { memory: CachedWords::new(region), instruments };
        table.row(instruments)?;
        // Pairs with the load in `open`.
        table.memory.words().first()?.store(u64::from(instruments), Ordering::Release);
        Some(table)
    }

    /// Opens a table that another process created; `None` if its first word does not fit the memory.
    pub fn open(region: R) -> Option<Self> {
        // Pairs with the store in `create`.
        let instruments = u32::try_from(region.words().first()?.load(Ordering::Acquire)).ok()?;
        let table = Self { memory: CachedWords::new(region), instruments };
        table.row(instruments)?;
        Some(table)
    }

    pub fn instruments(&self) -> u32 {
        self.instruments
    }

    /// Adds or removes a subscriber's interest in an instrument, or in all of them with `None`. Returns false
    /// if the subscriber or instrument does not exist.
    pub fn set(&self, subscriber: u32, instrument: Option<u32>, is_wanted: bool) -> bool {
        let row = match instrument {
            Some(instrument) if instrument >= self.instruments => return false,
            Some(instrument) => instrument,
            None => self.instruments,
        };
        let word = usize::try_from(subscriber / 64).unwrap_or(usize::MAX);
        let Some(word) = self.row(row).and_then(|row| row.get(word)) else { return false };
        let bit = 1 << (subscriber % 64);
        // Only the master changes rows. One that stays as it is also stays in the caches of publishers.
        if (word.load(Ordering::Relaxed) & bit != 0) == is_wanted {
            return true;
        }
        // Pairs with the loads in `wanting_of`: whoever sees the bit sees what the subscriber prepared before.
        if is_wanted {
            word.fetch_or(bit, Ordering::Release)
        } else {
            word.fetch_and(!bit, Ordering::Release)
        };
        true
    }

    /// Removes a subscriber from every row.
    pub fn forget(&self, subscriber: u32) {
        for instrument in 0..self.instruments {
            self.set(subscriber, Some(instrument), false);
        }
        self.set(subscriber, None, false);
    }

    /// The subscribers of `among` that want the instrument now. `words`: number of words they take
    /// (`Subscribers::words`).
    #[inline]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub(crate) fn wanting_of(&self, instrument: u32, among: &Subscribers, words: usize) -> Subscribers {
        let mut found = Subscribers::default();
        let Some(everything) = self.row(self.instruments) else { return found };
        // Only subscribers that want everything get instruments beyond the table.
        let own =
            if instrument < self.instruments { self.row(instrument) } else { None }.unwrap_or(everything);
        for (at, found) in found.0.iter_mut().enumerate().take(words) {
            // Both pair with the change in `set`.
            let wanted = everything[at].load(Ordering::Acquire) | own[at].load(Ordering::Acquire);
            *found = wanted & among.0[at];
        }
        found
    }

    /// Calls `wanted` with each subscriber that wants the instrument, lowest first.
    #[inline]
    pub fn each(&self, instrument: u32, wanted: impl FnMut(u32)) {
        self.wanting_of(instrument, &Subscribers::ALL, ROW_WORDS).iter().for_each(wanted);
    }

    fn row(&self, row: u32) -> Option<&[AtomicU64; ROW_WORDS]> {
        let start = (usize::try_from(row).ok()?.checked_add(1)?).checked_mul(ROW_WORDS)?;
        self.memory.words().get(start..)?.first_chunk()
    }
}

#[cfg(all(test, not(any(lowlat_loom, lowlat_shuttle))))]
mod tests {
    use super::*;
    use crate::region::Heap;
    use std::collections::BTreeSet;

    fn wanted<R: Region>(table: &Interest<R>, instrument: u32) -> Vec<u32> {
        let mut found = Vec::new();
        table.each(instrument, |subscriber| found.push(subscriber));
        found
    }

    #[test]
    fn rows_are_sets_of_subscribers() {
        let table = Interest::create(Heap::zeroed(bytes(3)), 3).unwrap();
        for subscriber in [0, 63, 64, SUBSCRIBERS_MAX - 1] {
            assert!(table.set(subscriber, Some(2), true));
        }
        assert!(table.set(5, None, true), "one that wants everything");
        assert_eq!(wanted(&table, 2), [0, 5, 63, 64, 1023]);
        assert_eq!(wanted(&table, 0), [5]);
        assert_eq!(wanted(&table, 99), [5], "an instrument beyond the table");
        table.set(64, Some(2), false);
        table.forget(5);
        assert_eq!(wanted(&table, 2), [0, 63, 1023]);
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let table = Interest::create(Heap::zeroed(bytes(3)), 3).unwrap();
        assert!(!table.set(SUBSCRIBERS_MAX, Some(0), true) && !table.set(0, Some(3), true));
        assert!(Interest::create(Heap::zeroed(bytes(2)), 3).is_none());
        let small = Heap::zeroed(bytes(3));
        small.words()[0].store(u64::MAX, Ordering::Relaxed);
        assert!(Interest::open(small).is_none());
        assert!(Interest::open(Heap::zeroed(0)).is_none());
    }

    proptest::proptest! {
        #![proptest_config(crate::testing::cases(256))]

        #[test]
        fn it_is_a_table_of_sets(steps in proptest::collection::vec((0_u32..1024, 0_u32..4, proptest::bool::ANY), 0..100)) {
            let table = Interest::create(Heap::zeroed(bytes(4)), 4).unwrap();
            let mut model = vec![BTreeSet::new(); 4];
            for (subscriber, instrument, is_wanted) in steps {
                table.set(subscriber, Some(instrument), is_wanted);
                let row = &mut model[usize::try_from(instrument).unwrap()];
                if is_wanted { row.insert(subscriber) } else { row.remove(&subscriber) };
            }
            for (instrument, row) in (0..).zip(&model) {
                proptest::prop_assert_eq!(wanted(&table, instrument), row.iter().copied().collect::<Vec<_>>());
            }
        }
    }
}
