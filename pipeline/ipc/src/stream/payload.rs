//! Copies payloads out of a ring.

use super::line::{self, PlainLine};
use crate::atomics::{AtomicU64, Ordering};

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
fn copy_lines(bytes: &mut [u8], mut words: &[AtomicU64]) {
    // A whole line at once: most payloads have one or two.
    let (lines, rest) = bytes.as_chunks_mut::<{ size_of::<PlainLine>() }>();
    for to in lines {
        let Some((from, behind)) = words.split_first_chunk() else { return };
        line::load(from, to);
        words = behind;
    }
    if !rest.is_empty() {
        copy_words(rest, words);
    }
}

/// The same for less than a line.
#[inline(never)]
fn copy_words(bytes: &mut [u8], words: &[AtomicU64]) {
    for (bytes, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
    }
}
