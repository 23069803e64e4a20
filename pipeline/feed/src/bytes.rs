//! Numbers in bytes. What is beyond the end is 0: callers check lengths first.

pub fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or([0; N])
}

/// Writes bytes at a place; nothing if they do not fit.
pub fn put(into: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(into) = at.checked_add(bytes.len()).and_then(|end| into.get_mut(at..end)) {
        into.copy_from_slice(bytes);
    }
}
