//! Memory of this process alone: for tests, for threads, and for tools that look into every access.

use super::Region;
use crate::atomics::AtomicU64;

/// Words on the heap.
#[derive(Debug)]
pub struct Heap {
    words: Vec<AtomicU64>,
}

impl Heap {
    /// So many bytes of zeros, a multiple of 8.
    pub fn zeroed(bytes: u64) -> Self {
        let count = usize::try_from(bytes / 8).unwrap_or(usize::MAX);
        Self { words: (0..count).map(|_| AtomicU64::new(0)).collect() }
    }
}

// SAFETY: the vector is never changed in length, so its words stay where they are as long as the value lives.
unsafe impl Region for Heap {
    fn words(&self) -> &[AtomicU64] {
        &self.words
    }
}
