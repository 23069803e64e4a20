//! Manifest: the streams of a recording, as the body of a block ([`super`]).

use super::{NAME_BYTES_MAX, STREAMS_MAX};
use crate::bytes::{is_zero, u16_at, u32_at, u64_at};
use serde::Serialize;

/// Largest size of a manifest, in bytes.
pub const BYTES_MAX: usize = 8 + STREAMS_MAX * (24 + (2 * NAME_BYTES_MAX).next_multiple_of(8));

/// Next sequence of a stream without known records.
pub const UNKNOWN: u64 = u64::MAX;

/// One stream of a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StreamEntry {
    /// Name shown to users.
    pub name: String,
    /// Name of the schema of its payloads, such as "lowlat-trade"; empty if unknown.
    pub schema: String,
    /// Its id in shared memory.
    pub id: u32,
    /// The next sequence; [`UNKNOWN`] before the first record of a stream that was joined late.
    pub next_sequence: u64,
    /// Latest generation time so far; 0 before the first record.
    pub generated_max: u64,
}

impl StreamEntry {
    /// The next sequence, if known.
    pub fn next(&self) -> Option<u64> {
        Some(self.next_sequence).filter(|next| *next != UNKNOWN)
    }
}

/// The body of a manifest.
pub fn encode(streams: &[StreamEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&u32::try_from(streams.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    for stream in streams {
        bytes.extend_from_slice(&stream.id.to_le_bytes());
        for text in [&stream.name, &stream.schema] {
            bytes.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
        }
        bytes.extend_from_slice(&stream.next_sequence.to_le_bytes());
        bytes.extend_from_slice(&stream.generated_max.to_le_bytes());
        bytes.extend_from_slice(stream.name.as_bytes());
        bytes.extend_from_slice(stream.schema.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
    }
    bytes
}

/// The streams of a manifest; `None` if the bytes are not a manifest.
pub fn decode(bytes: &[u8]) -> Option<Vec<StreamEntry>> {
    let (head, mut rest) = bytes.split_at_checked(8)?;
    let count = u32_at(head, 0) as usize;
    if count > STREAMS_MAX || u32_at(head, 4) != 0 {
        return None;
    }
    let mut streams = Vec::new();
    for _ in 0..count {
        let (head, texts) = rest.split_at_checked(24)?;
        let (name, schema) = (usize::from(u16_at(head, 4)), usize::from(u16_at(head, 6)));
        if name > NAME_BYTES_MAX || schema > NAME_BYTES_MAX {
            return None;
        }
        let (texts, next) = texts.split_at_checked((name + schema).next_multiple_of(8))?;
        let text =
            |range| texts.get(range).and_then(|text| std::str::from_utf8(text).ok()).map(str::to_owned);
        if !is_zero(texts.get(name + schema..)?) {
            return None;
        }
        streams.push(StreamEntry {
            name: text(0..name)?,
            schema: text(name..name + schema)?,
            id: u32_at(head, 0),
            next_sequence: u64_at(head, 8),
            generated_max: u64_at(head, 16),
        });
        rest = next;
    }
    rest.is_empty().then_some(streams)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(streams in proptest::collection::vec(
            (".{0,30}", "[a-z-]{0,9}", any::<u32>(), any::<[u64; 2]>()), 0..9)
        ) {
            let streams: Vec<_> = streams.into_iter().map(|(name, schema, id, words)| StreamEntry {
                name, schema, id, next_sequence: words[0], generated_max: words[1],
            }).collect();
            prop_assert_eq!(decode(&encode(&streams)), Some(streams));
        }

        #[test]
        fn hostile_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            decode(&bytes);
        }
    }
}
