//! Order numbers that are never used twice.
//!
//! The last number of each strategy stands in an area that master keeps, and is moved on before the order is written.
//! Who dies in between leaves a number unused, never one used twice, and who comes after it, in whatever process, goes on
//! behind it.

use lowlat_ipc::{interest::SUBSCRIBERS_MAX, region::Region};
use std::sync::atomic::Ordering;

/// The name of the area.
pub const AREA: &str = "numbers";
/// Words between the numbers of two strategies: a cache line, so that they do not slow each other down.
const STRIDE: usize = 8;
/// Bytes of the area.
pub const BYTES: u64 = SUBSCRIBERS_MAX as u64 * STRIDE as u64 * 8;
/// Bits of a number that count; the rest is the process's epoch where there is no area.
const COUNT_BITS: u32 = 40;

/// Gives out the numbers of one strategy.
#[derive(Debug)]
pub struct Numbers<R> {
    area: Option<(R, usize)>,
    last: u64,
}

impl<R: Region> Numbers<R> {
    /// Numbers of a strategy that go on behind those in the area; none when the area is too small for that strategy.
    pub fn in_area(region: R, strategy: u32) -> Option<Self> {
        let at =
            usize::try_from(strategy).ok().filter(|_| strategy < SUBSCRIBERS_MAX)?.checked_mul(STRIDE)?;
        // Pairs with the store in `next` of the process that had this strategy before.
        let last = region.words().get(at)?.load(Ordering::Acquire);
        Some(Self { area: Some((region, at)), last })
    }

    /// Numbers without an area: those of the strategy's process number `epoch` are above those of the one before. Of use
    /// as long as a strategy always is in the process of the same name.
    pub fn of_epoch(epoch: u64) -> Self {
        Self { area: None, last: epoch << COUNT_BITS }
    }

    /// The last number given out; 0 before the first in an area.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Looks at the line that the next number is written to.
    #[inline]
    pub fn warm(&self) {
        if let Some((region, at)) = &self.area {
            std::hint::black_box(region.words().get(*at).map(|word| word.load(Ordering::Relaxed)));
        }
    }

    /// The next number.
    #[inline]
    pub fn take(&mut self) -> u64 {
        self.last += 1;
        if let Some((region, at)) = &self.area
            && let Some(word) = region.words().get(*at)
        {
            // Pairs with the load in `in_area`. One process has a strategy at a time.
            word.store(self.last, Ordering::Release);
        }
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_ipc::region::Heap;
    use std::{collections::BTreeSet, sync::Arc};

    #[test]
    fn numbers_go_on_over_restarts_and_from_process_to_process() {
        let area = Arc::new(Heap::zeroed(BYTES));
        let mut used = BTreeSet::new();
        for _ in 0..5 {
            let mut numbers = Numbers::in_area(Arc::clone(&area), 1023).unwrap();
            (0..10).for_each(|_| assert!(used.insert(numbers.take())));
        }
        assert_eq!(used.into_iter().collect::<Vec<_>>(), (1..=50).collect::<Vec<_>>());
        assert_eq!(Numbers::in_area(Arc::clone(&area), 0).unwrap().take(), 1, "each has its own");
        assert!(Numbers::in_area(Arc::clone(&area), 1024).is_none());
        assert!(Numbers::in_area(Heap::zeroed(8), 1).is_none());
    }

    #[test]
    fn epochs_do_not_overlap() {
        let mut before = Numbers::<Heap>::of_epoch(1);
        (0..1000).for_each(|_| _ = before.take());
        assert!(Numbers::<Heap>::of_epoch(2).take() > before.last());
    }
}
