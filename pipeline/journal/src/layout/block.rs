//! The head of a block.

use super::{BLOCK_HEAD_BYTES, BLOCK_MAGIC, BODY_BYTES_MAX, RECORD_HEAD_BYTES, STREAMS_MAX, block_bytes};
use crate::bytes::{is_zero, put, put_words, u32_at, u64_at};
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockKind {
    /// Consecutive records of one stream.
    #[default]
    Records = 1,
    /// A gap, without a body: the records of its range are missing.
    Gap = 2,
    /// The streams of the recording.
    Manifest = 3,
    /// The end of the file, without a body, as intended by its writer.
    End = 4,
}

/// Reason why records are missing from a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GapReason {
    /// They were overwritten in shared memory before they were recorded.
    Overwritten = 1,
    /// The bytes in shared memory were not a record.
    DamagedInMemory = 2,
    /// Their writer died, and its successor's segment starts after them.
    BetweenSegments = 3,
    /// They were published while no recorder ran, and overwritten before one resumed.
    NotRecording = 4,
    /// Longer than a recording allows ([`super::PAYLOAD_BYTES_MAX`]).
    TooLong = 5,
    /// Recorded, and deleted with the oldest files ([`super::start`]). No block has it.
    Deleted = 6,
}

impl GapReason {
    const ALL: [Self; 5] =
        [Self::Overwritten, Self::DamagedInMemory, Self::BetweenSegments, Self::NotRecording, Self::TooLong];

    /// The reason as detail of a block.
    pub fn code(self) -> u64 {
        self as u64
    }

    /// The reason of a block's detail.
    pub fn of(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }

    /// Text of the reason, for reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::Overwritten => "overwritten before they were recorded",
            Self::DamagedInMemory => "damaged in shared memory",
            Self::BetweenSegments => "lost with their writer",
            Self::NotRecording => "published while no recorder ran",
            Self::TooLong => "longer than a recording allows",
            Self::Deleted => "deleted with the oldest files",
        }
    }
}

impl BlockKind {
    fn of(code: u32) -> Option<Self> {
        [Self::Records, Self::Gap, Self::Manifest, Self::End].into_iter().find(|kind| *kind as u32 == code)
    }
}

/// Detail of an end that is followed by another file.
pub const END_GOES_ON: u64 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct BlockHead {
    /// The recording that it belongs to.
    pub recording: u64,
    pub file: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// Its number, from 1, counted over all files.
    pub number: u64,
    pub kind: BlockKind,
    /// Number of the stream in the recording; 0 for manifests and ends.
    pub stream: u32,
    /// Epoch of the stream's segment.
    pub epoch: u64,
    /// Sequence of the first record, or of the first missing one.
    pub first_sequence: u64,
    /// Sequence of the last one.
    pub last_sequence: u64,
    /// Earliest generation time; for a gap that of the record before it.
    pub generated_min: u64,
    /// Latest generation time; for a gap the same as the earliest.
    pub generated_max: u64,
    pub records: u32,
    /// Bytes of the body, without the padding of the block.
    pub body_bytes: u32,
    /// Reason of a gap; for an end, whether the recording continues in another file.
    pub detail: u64,
    /// CRC-32C of the body; for records the check of the last one.
    pub body_crc: u32,
}

const CHECK: usize = BLOCK_HEAD_BYTES - 4;

impl BlockHead {
    /// Bytes of the block in its file.
    pub fn bytes(&self) -> u64 {
        block_bytes(self.body_bytes)
    }

    /// Reason why records are missing, if it is a gap.
    pub fn gap_reason(&self) -> Option<GapReason> {
        if self.kind == BlockKind::Gap { GapReason::of(self.detail) } else { None }
    }

    /// Returns true if it is the end of a file that is followed by another.
    pub fn goes_on(&self) -> bool {
        self.kind == BlockKind::End && self.detail == END_GOES_ON
    }

    pub fn encode(&self) -> [u8; BLOCK_HEAD_BYTES] {
        let mut bytes = [0; BLOCK_HEAD_BYTES];
        put(&mut bytes, 0, &BLOCK_MAGIC);
        put_words(&mut bytes, 8, &[self.recording, self.file, self.offset, self.number]);
        put(&mut bytes, 40, &(self.kind as u32).to_le_bytes());
        put(&mut bytes, 44, &self.stream.to_le_bytes());
        put_words(&mut bytes, 48, &[self.epoch, self.first_sequence, self.last_sequence]);
        put_words(&mut bytes, 72, &[self.generated_min, self.generated_max]);
        put(&mut bytes, 88, &self.records.to_le_bytes());
        put(&mut bytes, 92, &self.body_bytes.to_le_bytes());
        put(&mut bytes, 96, &self.detail.to_le_bytes());
        put(&mut bytes, 120, &self.body_crc.to_le_bytes());
        let check = crc32c::crc32c(bytes.get(..CHECK).unwrap_or_default());
        put(&mut bytes, CHECK, &check.to_le_bytes());
        bytes
    }

    /// Returns true if bytes start like a block: a quick check before [`BlockHead::decode`].
    pub fn is_begun(bytes: &[u8]) -> bool {
        bytes.starts_with(&BLOCK_MAGIC)
    }

    /// Parses bytes; `None` if they are not a head, or one that no writer produces.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..BLOCK_HEAD_BYTES)?;
        if !Self::is_begun(bytes) || u32_at(bytes, CHECK) != crc32c::crc32c(bytes.get(..CHECK)?) {
            return None;
        }
        let head = Self {
            recording: u64_at(bytes, 8),
            file: u64_at(bytes, 16),
            offset: u64_at(bytes, 24),
            number: u64_at(bytes, 32),
            kind: BlockKind::of(u32_at(bytes, 40))?,
            stream: u32_at(bytes, 44),
            epoch: u64_at(bytes, 48),
            first_sequence: u64_at(bytes, 56),
            last_sequence: u64_at(bytes, 64),
            generated_min: u64_at(bytes, 72),
            generated_max: u64_at(bytes, 80),
            records: u32_at(bytes, 88),
            body_bytes: u32_at(bytes, 92),
            detail: u64_at(bytes, 96),
            body_crc: u32_at(bytes, 120),
        };
        (is_zero(bytes.get(104..120)?) && head.is_possible()).then_some(head)
    }

    /// Checks plausibility: a checksum only proves that bytes are unchanged, not who wrote them.
    fn is_possible(&self) -> bool {
        let body_bytes = self.body_bytes as usize;
        let sequences = self.last_sequence.checked_sub(self.first_sequence);
        let is_of_kind = match self.kind {
            BlockKind::Records => {
                self.records > 0
                    && sequences == Some(u64::from(self.records) - 1)
                    && self.records as usize <= body_bytes / RECORD_HEAD_BYTES
                    && self.generated_min <= self.generated_max
            }
            BlockKind::Gap => self.records == 0 && body_bytes == 0 && sequences.is_some(),
            BlockKind::Manifest => self.records == 0,
            BlockKind::End => self.records == 0 && body_bytes == 0,
        };
        // Less than the maximum, so that its successor is a number too.
        is_of_kind
            && body_bytes <= BODY_BYTES_MAX
            && (1..u64::MAX).contains(&self.number)
            && self.last_sequence < u64::MAX
            && (self.stream as usize) < STREAMS_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: BlockHead = BlockHead {
        recording: 1,
        file: 2,
        offset: 4096,
        number: 4,
        kind: BlockKind::Records,
        stream: 5,
        epoch: 6,
        first_sequence: 7,
        last_sequence: 8,
        generated_min: 9,
        generated_max: 10,
        records: 2,
        body_bytes: 128,
        detail: 0,
        body_crc: 14,
    };

    #[test]
    fn every_flipped_bit_is_detected() {
        let bytes = HEAD.encode();
        assert_eq!(BlockHead::decode(&bytes), Some(HEAD));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BlockHead::decode(&flipped), None, "bit {bit}");
        }
    }

    #[test]
    fn implausible_heads_are_refused() {
        for wrong in [
            BlockHead { records: 3, ..HEAD },
            BlockHead { last_sequence: 6, ..HEAD },
            BlockHead { body_bytes: 127, ..HEAD },
            BlockHead { body_bytes: u32::MAX, ..HEAD },
            BlockHead { number: 0, ..HEAD },
            BlockHead { kind: BlockKind::Gap, ..HEAD },
            BlockHead { first_sequence: u64::MAX - 1, last_sequence: u64::MAX, ..HEAD },
        ] {
            assert_eq!(BlockHead::decode(&wrong.encode()), None, "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_no_head(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(BlockHead::decode(&bytes), None);
        }
    }
}
