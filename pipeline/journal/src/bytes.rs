//! Little-endian numbers in untrusted bytes.

/// The 64-bit number at `at`; 0 if out of bounds, which callers exclude by checking the length.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at.saturating_add(8)).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The 32-bit number at `at`, like [`u64_at`].
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at.saturating_add(4)).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The 16-bit number at `at`, like [`u64_at`].
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at.saturating_add(2)).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
}

/// Writes bytes at `at`; excess bytes are dropped.
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(value.len())) {
        place.copy_from_slice(value);
    }
}

/// Writes 64-bit numbers, one after the other, from `at` on.
#[inline]
pub fn put_words(bytes: &mut [u8], at: usize, words: &[u64]) {
    for (at, word) in (at..).step_by(8).zip(words) {
        put(bytes, at, &word.to_le_bytes());
    }
}

/// Converts a size in memory to the 64 bits used in files.
pub fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Converts a size in a file to one in memory; saturates, so that a limit catches it.
pub fn narrow(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Returns true if all bytes are 0. Compares many at once, which is fast even without optimization.
pub fn is_zero(bytes: &[u8]) -> bool {
    static ZEROS: [u8; 512] = [0; 512];
    bytes.chunks(ZEROS.len()).all(|some| ZEROS.starts_with(some))
}
