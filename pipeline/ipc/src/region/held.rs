//! A region with cached words.

use super::Region;
use crate::atomics::AtomicU64;
use std::ptr::NonNull;

/// A region whose words were requested once. Some regions compute theirs on each call, and the hot path
/// accesses them several times per record.
#[derive(Debug)]
pub(crate) struct CachedWords<R> {
    first: NonNull<AtomicU64>,
    count: usize,
    /// Owns the words, and keeps them mapped.
    _region: R,
}

impl<R: Region> CachedWords<R> {
    pub(crate) fn new(region: R) -> Self {
        let words = region.words();
        Self { first: NonNull::from(words).cast(), count: words.len(), _region: region }
    }

    /// Without the words after the first `count`.
    pub(crate) fn cut(self, count: usize) -> Self {
        Self { count: self.count.min(count), ..self }
    }
}

// SAFETY: the words are those of the region, or its first ones; it returns the same words at the same address
// each time, also after it was moved into this value, and this value keeps it alive.
unsafe impl<R: Region> Region for CachedWords<R> {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: address and count are those of a slice that the region returned, with the count possibly
        // reduced; by the contract of `Region` its words stay there and mapped as long as the region lives,
        // which is at least as long as `self`; they are atomics, so any number of references may exist.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

// SAFETY: the pointer is to words of the region, which is `Send` and `Sync` as `Region` requires, and which any
// thread may access through it.
unsafe impl<R: Region> Send for CachedWords<R> {}
// SAFETY: as above; a shared `CachedWords` gives shared atomics and nothing else.
unsafe impl<R: Region> Sync for CachedWords<R> {}

#[cfg(all(test, not(any(lowlat_loom, lowlat_shuttle))))]
mod tests {
    use super::*;
    use crate::{atomics::Ordering, region::Heap};

    #[test]
    fn its_words_stay_those_of_the_region_when_both_are_moved() {
        let heap = Heap::zeroed(1024);
        let first = std::ptr::from_ref(&heap.words()[0]);
        let held = Box::new(CachedWords::new(heap));
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
