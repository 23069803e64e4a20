//! Copies payloads out of a ring.

use crate::{
    atomics::{AtomicU64, Ordering},
    layout::record,
};

/// Buffer into which payloads are copied.
pub(super) trait PayloadBuffer {
    fn copy(&mut self, words: &[AtomicU64], length: usize);
}

impl PayloadBuffer for Vec<u8> {
    #[inline]
    fn copy(&mut self, words: &[AtomicU64], length: usize) {
        let padded = (length + 7) & !7;
        // Usually as long as the previous one.
        if self.len() != padded {
            make_as_long(self, padded);
        }
        copy_whole(self, words);
        if length != padded {
            self.truncate(length);
        }
    }
}

#[cold]
#[inline(never)]
fn make_as_long(payload: &mut Vec<u8>, bytes: usize) {
    payload.resize(bytes, 0);
}

/// Memory of the caller, which cannot grow.
pub(super) struct Fixed<'b> {
    buffer: &'b mut [u8],
    length: usize,
}

impl<'b> Fixed<'b> {
    pub(super) fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, length: 0 }
    }

    /// Number of payload bytes copied.
    pub(super) fn length(&self) -> usize {
        self.length
    }
}

impl PayloadBuffer for Fixed<'_> {
    #[inline]
    fn copy(&mut self, words: &[AtomicU64], length: usize) {
        self.length = length.min(self.buffer.len());
        let rest = copy_whole(self.buffer.get_mut(..self.length).unwrap_or_default(), words);
        if let Some(word) = words.get(self.length / 8).filter(|_| !rest.is_empty()) {
            rest.iter_mut().zip(word.load(Ordering::Relaxed).to_ne_bytes()).for_each(|(to, from)| *to = from);
        }
    }
}

/// Copies all whole words of `bytes`, and returns the remainder.
#[inline]
fn copy_whole<'b>(mut bytes: &'b mut [u8], mut words: &[AtomicU64]) -> &'b mut [u8] {
    // A whole line at once: most payloads have one or two.
    while let Some((line, behind)) = words.split_first_chunk::<{ record::WORDS }>()
        && bytes.len() >= size_of_val(line)
    {
        let (to, rest) = bytes.split_at_mut(size_of_val(line));
        for (bytes, word) in to.as_chunks_mut::<8>().0.iter_mut().zip(line) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        (bytes, words) = (rest, behind);
    }
    if bytes.is_empty() { bytes } else { copy_words(bytes, words) }
}

/// The same for less than a line.
#[inline(never)]
fn copy_words<'b>(bytes: &'b mut [u8], words: &[AtomicU64]) -> &'b mut [u8] {
    let (chunks, rest) = bytes.as_chunks_mut::<8>();
    for (bytes, word) in chunks.iter_mut().zip(words) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
    rest
}
