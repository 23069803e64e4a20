//! Payloads of a trial's records: 64 bytes, as those of the pipeline.

pub const PAYLOAD_BYTES: usize = 64;
/// A payload as 64-bit words.
pub type Words = [u64; PAYLOAD_BYTES / 8];

/// Converts words to a payload.
#[inline]
pub fn encode(words: &Words) -> [u8; PAYLOAD_BYTES] {
    let mut bytes = [0; PAYLOAD_BYTES];
    bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
    bytes
}

/// Converts a payload to words; missing ones are 0.
#[inline]
pub fn decode(payload: &[u8]) -> Words {
    let mut words = Words::default();
    for (to, from) in words.iter_mut().zip(payload.chunks_exact(8)) {
        *to = from.try_into().map(u64::from_le_bytes).unwrap_or_default();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let words = [1, 2, 3, u64::MAX, 5, 6, 7, 8];
        assert_eq!(decode(&encode(&words)), words);
        assert_eq!(decode(&[1, 0, 0, 0, 0, 0, 0, 0, 9]), [1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
