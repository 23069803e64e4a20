//! A region at hand.

use super::Region;
use crate::atomics::AtomicU64;
use std::ptr::NonNull;

/// A region whose words were asked for once. Some regions look for theirs each time, and what is read or written with every
/// record is reached several times for each of them.
#[derive(Debug)]
pub(crate) struct Held<R> {
    first: NonNull<AtomicU64>,
    count: usize,
    /// Keeps the words there.
    _region: R,
}

impl<R: Region> Held<R> {
    pub(crate) fn new(region: R) -> Self {
        let words = region.words();
        Self { first: NonNull::from(words).cast(), count: words.len(), _region: region }
    }

    /// Without the words behind the first `count`.
    pub(crate) fn cut(self, count: usize) -> Self {
        Self { count: self.count.min(count), ..self }
    }
}

// SAFETY: the words are those of the region, or the first of them; it gives the same ones at the same place each time,
// also after it was moved into this value, and this value keeps it.
unsafe impl<R: Region> Region for Held<R> {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: address and count are those of a slice that the region gave, the count maybe smaller; by the contract of
        // `Region` its words stay there and mapped as long as the region lives, which is at least as long as `self`; they
        // are atomics, so that any number of references may be there.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

// SAFETY: the pointer is to words of the region, which is `Send` and `Sync` as `Region` asks, and which any thread may reach
// through it.
unsafe impl<R: Region> Send for Held<R> {}
// SAFETY: as above; a shared `Held` gives shared atomics and nothing else.
unsafe impl<R: Region> Sync for Held<R> {}

#[cfg(all(test, not(any(lowlat_loom, lowlat_shuttle))))]
mod tests {
    use super::*;
    use crate::{atomics::Ordering, region::Heap};

    #[test]
    fn its_words_are_the_regions_wherever_both_are_moved_to() {
        let heap = Heap::zeroed(1024);
        let first = std::ptr::from_ref(&heap.words()[0]);
        let held = Box::new(Held::new(heap));
        assert_eq!((held.words().len(), std::ptr::from_ref(&held.words()[0])), (128, first));
        let held = std::thread::spawn(move || {
            held.words()[3].store(7, Ordering::Relaxed);
            *held
        });
        let held = held.join().unwrap().cut(4);
        assert_eq!(
            held.words().iter().map(|word| word.load(Ordering::Relaxed)).collect::<Vec<_>>(),
            [0, 0, 0, 7]
        );
        assert_eq!(held.cut(200).words().len(), 4);
    }
}
