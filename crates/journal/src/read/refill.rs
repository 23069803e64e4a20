//! Recovers records that a reader missed in shared memory.

use super::{Gap, Read, Record, Recording, StreamReader};
use crate::damage::Damage;

/// Result of a refill.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refill {
    /// Records returned.
    pub records: u64,
    /// Records that are missing from the recording too.
    pub missing: Vec<Gap>,
    /// Damage encountered.
    pub damages: Vec<Damage>,
}

/// Returns the recorded records of a stream from `from` up to, but not including, `to`, in order: those that a
/// reader lost according to `Gap { from, to }`.
pub fn refill(
    recording: &Recording,
    stream: u32,
    from: u64,
    to: u64,
    mut take: impl FnMut(&Record, &[u8]),
) -> Refill {
    let mut reader = StreamReader::new(recording, stream);
    reader.seek_sequence(from);
    let (mut found, mut payload, mut next) = (Refill::default(), Vec::new(), from);
    while next < to {
        match reader.next(&mut payload) {
            Read::Record(record) if record.record.sequence < to => {
                take(&record, &payload);
                found.records += 1;
                next = record.record.sequence + 1;
            }
            Read::Gap(gap) => {
                found.missing.push(Gap { to: gap.to.min(to), ..gap });
                next = gap.to;
            }
            Read::Damaged(damage) => found.damages.push(*damage),
            Read::Record(_) | Read::Nothing | Read::Ended => break,
        }
    }
    if next < to {
        found.missing.push(Gap { stream, from: next, to, reason: None });
    }
    found
}
