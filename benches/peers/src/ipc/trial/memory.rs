//! One piece of shared memory for a whole trial, cut into parts: parent and children cut it in the same way.

use lowlat_ipc::region::{Memfd, Region};
use std::{
    ops::Range,
    sync::{Arc, atomic::AtomicU64},
};

/// Parts start at pages, as separate pieces of memory would.
const PART_BYTES: u64 = 4096;

/// Cuts memory into consecutive parts.
#[derive(Debug, Default)]
pub struct Cutter {
    next: u64,
}

impl Cutter {
    /// Cuts the next part, of this size.
    pub fn cut(&mut self, bytes: u64) -> Range<u64> {
        let start = self.next;
        self.next = (start + bytes).next_multiple_of(PART_BYTES);
        start..start + bytes
    }

    /// Number of bytes cut so far.
    pub fn bytes(&self) -> u64 {
        self.next
    }
}

/// A part of a trial's memory.
#[derive(Debug, Clone)]
pub struct Part {
    memory: Arc<Memfd>,
    words: Range<usize>,
}

// SAFETY: the words are a fixed range of a memfd's, which gives the same words each time and stays mapped as long as
// this value holds it.
unsafe impl Region for Part {
    fn words(&self) -> &[AtomicU64] {
        self.memory.words().get(self.words.clone()).unwrap_or_default()
    }
}

impl Part {
    /// The part of `memory` that was cut as `bytes`.
    pub fn new(memory: &Arc<Memfd>, bytes: &Range<u64>) -> Self {
        let word = |byte: u64| usize::try_from(byte / 8).unwrap_or(usize::MAX);
        Self { memory: Arc::clone(memory), words: word(bytes.start)..word(bytes.end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn parts_do_not_overlap() {
        let mut cutter = Cutter::default();
        let (one, other) = (cutter.cut(8), cutter.cut(5000));
        assert_eq!((one.clone(), other.clone(), cutter.bytes()), (0..8, 4096..9096, 12_288));
        let memory = Arc::new(Memfd::create("lowlat-peers-test", cutter.bytes()).unwrap());
        let (one, other) = (Part::new(&memory, &one), Part::new(&memory, &other));
        assert_eq!((one.words().len(), other.words().len()), (1, 625));
        other.words()[0].store(3, Ordering::Relaxed);
        assert_eq!(memory.words()[512].load(Ordering::Relaxed), 3);
    }
}
