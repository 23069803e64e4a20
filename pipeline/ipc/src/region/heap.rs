//! Memory of this process only: for tests, threads, and tools that check every access.

use super::Region;
use crate::atomics::AtomicU64;

/// Words on the heap. The first one starts a pair of cache lines, as in mapped memory: a bell requires that.
#[derive(Debug)]
pub struct Heap {
    words: Vec<AtomicU64>,
    first: usize,
}

const ALIGN_BYTES: usize = 128;

impl Heap {
    /// This many zero bytes, a multiple of 8.
    pub fn zeroed(bytes: u64) -> Self {
        let count = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
        // Words of loom and shuttle are larger, and those of loom expensive.
        let spare = if cfg!(any(lowlat_loom, lowlat_shuttle)) { 0 } else { ALIGN_BYTES / 8 - 1 };
        let mut words: Vec<_> = (0..count.saturating_add(spare)).map(|_| AtomicU64::new(0)).collect();
        let first = words.as_ptr().align_offset(ALIGN_BYTES).min(spare);
        words.truncate(first.saturating_add(count));
        Self { words, first }
    }
}

// SAFETY: the vector's length never changes, so its words stay at their address as long as the value lives,
// wherever it is moved.
unsafe impl Region for Heap {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        self.words.get(self.first..).unwrap_or_default()
    }
}

#[cfg(all(test, not(any(lowlat_loom, lowlat_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn it_has_all_its_words_and_is_aligned() {
        for bytes in [0, 8, 256, 8192] {
            let heap = Heap::zeroed(bytes);
            assert_eq!(heap.words().len() as u64, bytes / 8);
            assert_eq!(heap.words().as_ptr().align_offset(ALIGN_BYTES), 0);
        }
    }
}
