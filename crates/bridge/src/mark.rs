//! What readers of a bridged stream are told, in the stream: a record of a kind of its own, right before the record that
//! it is about. Programs that do not know the kind pass over it.
//!
//! A mark stands before the first record of each instrument that comes after something was to be told. So a reader of one
//! instrument gets it where it matters, a reader of all gets it once for each instrument, with the same number, and a
//! stream of many instruments gets one more record at most for each.
//!
//! ```text
//! payload: 64 bytes, little-endian
//!      0     2  version of this layout
//!      2     2  why: 1 start, 2 new run, 3 new sender, 4 gap, 5 new writer
//!      4     4  number of the mark, from 1
//!      8     8  run of the origin
//!     16     8  epoch of the sender
//!     24     8  sequence that the record behind it has at its origin
//!     32     8  records lost with this
//!     40     8  records lost since this receiver began
//!     48     8  numbers that no record has, since this receiver began
//!     56     8  0
//! ```
//!
//! Up to the next mark, the record that has number N here has number N + sequence - M at its origin, where M is the number
//! here of the record behind the mark; each mark of another instrument in between takes one number here and none there.

use crate::{
    accounts::{Told, Why},
    frame::Head,
};
use lowlat_ipc::{layout::KIND_RESERVED_MIN, stream::Stamp};
use thiserror::Error;

/// Kind of a mark in `stamp.kind`.
pub const KIND: u16 = 0xfe01;
/// Version of its payload, there and in `stamp.schema`.
pub const VERSION: u16 = 1;
/// Bytes of its payload.
pub const BYTES: usize = 64;

const _: () = assert!(KIND < KIND_RESERVED_MIN && BYTES == 8 * WORDS);

const WORDS: usize = 8;

/// Why a payload is no mark.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MarkError {
    /// Of another size.
    #[error("a mark of {found} bytes, expected {BYTES}; use one lowlat-bridge on both hosts")]
    Size {
        /// Bytes found.
        found: usize,
    },
    /// Of another version, or damaged.
    #[error("mark: {field} {found}, expected {expected}; use the lowlat-bridge of the receiver")]
    Value {
        /// Which field.
        field: &'static str,
        /// What it holds.
        found: u16,
        /// What it may hold.
        expected: &'static str,
    },
}

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Why it was made.
    pub why: Why,
    /// Its number; marks of several instruments that tell the same have the same.
    pub number: u32,
    /// When the origin's run began, ns of its wall clock.
    pub run: u64,
    /// How many senders that run has had.
    pub epoch: u64,
    /// Sequence that the record behind it has at its origin.
    pub sequence: u64,
    /// Records lost with this.
    pub lost: u64,
    /// Records lost since this receiver began, those before its first record included.
    pub lost_total: u64,
    /// Numbers that no record has, since this receiver began.
    pub void_total: u64,
}

impl Mark {
    /// As the payload of a record.
    pub fn encode(&self) -> [u8; BYTES] {
        let first = u64::from(VERSION) | u64::from(code(self.why)) << 16 | u64::from(self.number) << 32;
        let Self { run, epoch, sequence, lost, lost_total, void_total, .. } = *self;
        let mut bytes = [0; BYTES];
        let words: [u64; WORDS] = [first, run, epoch, sequence, lost, lost_total, void_total, 0];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Out of the payload of a record of [`KIND`].
    pub fn decode(payload: &[u8]) -> Result<Self, MarkError> {
        let bytes: &[u8; BYTES] = payload.try_into().map_err(|_| MarkError::Size { found: payload.len() })?;
        let (words, _) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or_default();
        let first = next();
        let [version, why, low, high] = parts(first);
        if version != VERSION {
            return Err(MarkError::Value { field: "version", found: version, expected: "1" });
        }
        let why = why_of(why).ok_or(MarkError::Value { field: "why", found: why, expected: "1 to 5" })?;
        Ok(Self {
            why,
            number: u32::from(low) | u32::from(high) << 16,
            run: next(),
            epoch: next(),
            sequence: next(),
            lost: next(),
            lost_total: next(),
            void_total: next(),
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "quarters are meant")]
fn parts(word: u64) -> [u16; 4] {
    [word as u16, (word >> 16) as u16, (word >> 32) as u16, (word >> 48) as u16]
}

fn code(why: Why) -> u16 {
    match why {
        Why::Start => 1,
        Why::NewRun => 2,
        Why::NewSender => 3,
        Why::Gap => 4,
        Why::NewWriter => 5,
    }
}

fn why_of(code: u16) -> Option<Why> {
    let all = [Why::Start, Why::NewRun, Why::NewSender, Why::Gap, Why::NewWriter];
    all.into_iter().find(|why| self::code(*why) == code)
}

/// The marks of one stream: which one is in force, and who has been told.
#[derive(Debug)]
pub struct Marks {
    told: Option<Told>,
    number: u32,
    /// By instrument the number of the mark that was told; the last one is of all that the stream does not have.
    by_instrument: Vec<u32>,
}

impl Marks {
    /// Of a stream whose instruments are below `keys`.
    pub fn new(keys: u32) -> Self {
        let keys = usize::try_from(keys).unwrap_or(0);
        Self { told: None, number: 0, by_instrument: vec![0; keys.saturating_add(1)] }
    }

    /// Something is to be told from the next record on.
    pub fn set(&mut self, told: Told) {
        self.told = Some(told);
        self.number = self.number.wrapping_add(1).max(1);
    }

    /// The mark that stands before this record; none when its instrument has been told.
    #[inline]
    pub fn before(
        &mut self,
        instrument: u32,
        head: &Head,
        (lost_total, void_total): (u64, u64),
    ) -> Option<Mark> {
        let last = self.by_instrument.len().saturating_sub(1);
        let at = usize::try_from(instrument).unwrap_or(last).min(last);
        let number = self.by_instrument.get_mut(at)?;
        if std::mem::replace(number, self.number) == self.number {
            return None;
        }
        let Told { why, lost, .. } = self.told?;
        let Head { run, epoch, sequence, .. } = *head;
        Some(Mark { why, number: self.number, run, epoch, sequence, lost, lost_total, void_total })
    }
}

/// What stands beside a mark's payload.
pub fn stamp(instrument: u32, source: u32, now_ns: u64) -> Stamp {
    Stamp { kind: KIND, schema: VERSION, instrument, source, generated: now_ns, trigger: now_ns, cause: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(lost: u64) -> Told {
        Told { why: Why::Gap, lost, void: 0 }
    }

    #[test]
    fn the_layout_is_as_it_is_told() {
        let mark = Mark {
            why: Why::NewSender,
            number: 2,
            run: 3,
            epoch: 4,
            sequence: 5,
            lost: 6,
            lost_total: 7,
            void_total: 8,
        };
        let bytes = mark.encode();
        assert_eq!(bytes[..8], [1, 0, 3, 0, 2, 0, 0, 0]);
        assert_eq!([8, 16, 24, 32, 40, 48, 56].map(|at| bytes[at]), [3, 4, 5, 6, 7, 8, 0]);
        assert_eq!(Mark::decode(&bytes), Ok(mark));
        assert_eq!(Mark::decode(&bytes[1..]), Err(MarkError::Size { found: 63 }));
        let mut other = bytes;
        other[2] = 9;
        assert!(Mark::decode(&other).unwrap_err().to_string().contains("why 9"));
        other[0] = 7;
        assert!(Mark::decode(&other).unwrap_err().to_string().contains("version 7"));
    }

    #[test]
    fn each_instrument_is_told_once_for_each_mark() {
        let mut marks = Marks::new(2);
        let head = Head { sequence: 9, ..Head::default() };
        let before = |marks: &mut Marks, instrument| {
            marks.before(instrument, &head, (5, 0)).map(|mark| (mark.number, mark.lost, mark.sequence))
        };
        assert_eq!(before(&mut marks, 0), None, "there is nothing to tell");
        marks.set(told(5));
        assert_eq!(
            [0, 1, 0, 1].map(|at| before(&mut marks, at)),
            [Some((1, 5, 9)), Some((1, 5, 9)), None, None]
        );
        marks.set(told(6));
        marks.set(told(7));
        assert_eq!([1, 1, 0].map(|at| before(&mut marks, at)), [Some((3, 7, 9)), None, Some((3, 7, 9))]);
        // Instruments that the stream does not have are as one.
        assert_eq!([2, 2, u32::MAX].map(|at| before(&mut marks, at)), [Some((3, 7, 9)), None, None]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let is_mark = bytes.len() == BYTES && bytes[..2] == [1, 0] && (1..=5).contains(&bytes[2]) && bytes[3] == 0;
            prop_assert_eq!(Mark::decode(&bytes).is_ok(), is_mark);
        }
    }
}
