//! Records that somebody missed in shared memory.

use super::{Gap, Read, Record, Recording, StreamReader};
use crate::damage::Damage;

/// What a refill found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refill {
    /// Records given.
    pub records: u64,
    /// Records that the recording does not have either.
    pub missing: Vec<Gap>,
    /// Damage on the way.
    pub damages: Vec<Damage>,
}

/// Gives the records of a stream from `from` up to, not including, `to`, in their order, as far as they are recorded:
/// what a reader lost, which was told `Gap { from, to }`.
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
