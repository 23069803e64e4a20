//! Copies payloads out of a ring.

use crate::{
    atomics::{AtomicU64, Ordering},
    layout::record,
};

/// Copies a payload of this many bytes from the words.
#[inline]
pub(super) fn copy(payload: &mut Vec<u8>, words: &[AtomicU64], length: usize) {
    let padded = (length + 7) & !7;
    // Usually as long as the previous one.
    if payload.len() != padded {
        make_as_long(payload, padded);
    }
    copy_lines(payload, words);
    if length != padded {
        payload.truncate(length);
    }
}

#[cold]
#[inline(never)]
fn make_as_long(payload: &mut Vec<u8>, bytes: usize) {
    payload.resize(bytes, 0);
}

#[inline]
fn copy_lines(mut bytes: &mut [u8], mut words: &[AtomicU64]) {
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
    if !bytes.is_empty() {
        copy_words(bytes, words);
    }
}

/// The same for less than a line.
#[inline(never)]
fn copy_words(bytes: &mut [u8], words: &[AtomicU64]) {
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
}
