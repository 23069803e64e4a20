//! Little-endian numbers in bytes that may be anything.

/// The 64-bit number at `at`; 0 where there are no bytes, which callers rule out by the length.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at.saturating_add(8)).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// The 32-bit number at `at`, as [`u64_at`].
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at.saturating_add(4)).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

/// The 16-bit number at `at`, as [`u64_at`].
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at.saturating_add(2)).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
}

/// Puts bytes at `at`; what does not fit is not written.
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at.saturating_add(value.len())) {
        place.copy_from_slice(value);
    }
}

/// A count of bytes in memory as the 64 bits that it has in files.
pub fn wide(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// A count of a file as one of memory; more than memory can have where it does not fit, so that a bound catches it.
pub fn narrow(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Whether all bytes are 0. Compared by pages, which is fast also in a program that is not optimised.
pub fn is_zero(bytes: &[u8]) -> bool {
    static ZEROS: [u8; 4096] = [0; 4096];
    bytes.chunks(ZEROS.len()).all(|page| ZEROS.starts_with(page))
}
