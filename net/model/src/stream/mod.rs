//! One-way streams of messages at rising rates: messages, records, and which rate to try next.

mod record;
mod summary;
mod sweep;

pub use record::{
    Distribution, LatencyKind, Received, StreamMeasurement, StreamOptions, StreamRecord, StreamRound,
};
pub use summary::RateSummary;
pub use sweep::{Break, RATE_MAX_PER_S, Verdict, next_rate, verdict};

/// Bytes of the header, and so of the shortest message.
pub const HEADER_BYTES: usize = 24;
/// The receiver sends this message back.
pub const FLAG_ECHO: u32 = 1;
/// No message of this round follows.
pub const FLAG_END: u32 = 2;

/// Header of a message; numbers are big-endian on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Place of the message in its round, from 0.
    pub sequence: u64,
    /// Time at which it was due, in ticks of the sender's counter.
    pub due_ticks: u64,
    /// Number of the round, so that late messages of an earlier one are not counted.
    pub round: u32,
    /// Any of [`FLAG_ECHO`] and [`FLAG_END`].
    pub flags: u32,
}

impl Header {
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.due_ticks.to_be_bytes());
        bytes[16..20].copy_from_slice(&self.round.to_be_bytes());
        bytes[20..].copy_from_slice(&self.flags.to_be_bytes());
        bytes
    }

    /// Reads the header of a message; `None` if it is too short.
    pub fn of(message: &[u8]) -> Option<Self> {
        let (sequence, rest) = message.split_first_chunk()?;
        let (due, rest) = rest.split_first_chunk()?;
        let (round, rest) = rest.split_first_chunk()?;
        Some(Self {
            sequence: u64::from_be_bytes(*sequence),
            due_ticks: u64::from_be_bytes(*due),
            round: u32::from_be_bytes(*round),
            flags: u32::from_be_bytes(*rest.first_chunk()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_and_a_short_one_refused() {
        let header = Header { sequence: 1 << 40, due_ticks: 7, round: 3, flags: FLAG_ECHO | FLAG_END };
        let bytes = header.to_bytes();
        assert_eq!(Header::of(&bytes), Some(header));
        assert_eq!(Header::of(&[&bytes[..], &[0; 9]].concat()), Some(header));
        assert_eq!(Header::of(&bytes[..HEADER_BYTES - 1]), None);
    }
}
