//! Marks: notices for readers of a bridged stream, as records of a special kind right before the record that
//! they are about. Programs ignore unknown kinds.
//!
//! After a notice, a mark precedes the next record of each instrument. So a reader of one instrument gets it
//! where it matters, a reader of all gets it once per instrument, with the same number, and a stream gets at
//! most one extra record per instrument.
//!
//! ```text
//! payload: 64 bytes, little-endian
//!      0     2  version of this layout
//!      2     2  why: 1 start, 2 new run, 3 new sender, 4 gap, 5 new writer
//!      4     4  number of the mark, from 1
//!      8     8  run of the origin
//!     16     8  epoch of the sender
//!     24     8  sequence of the next record at its origin
//!     32     8  records lost with this mark
//!     40     8  records lost since this receiver started
//!     48     8  numbers without a record since this receiver started
//!     56     8  0
//! ```
//!
//! Until the next mark, the record with number N here has number N + sequence - M at its origin, where M is the
//! number here of the record after the mark; each further mark of another instrument takes one number here and
//! none there.

use crate::{
    accounts::{Notice, Why},
    frame::FrameHead,
};
use lowlat_ipc::{layout::KIND_RESERVED_MIN, stream::Stamp};
use lowlat_node::Refusal;

/// Kind of a mark in `stamp.kind`.
pub const KIND: u16 = 0xfe01;
/// Version of its payload, there and in `stamp.schema`.
pub const VERSION: u16 = 1;
/// Size of its payload, in bytes.
pub const BYTES: usize = 64;

const _: () = assert!(KIND < KIND_RESERVED_MIN && BYTES == 8 * WORDS);

const WORDS: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub why: Why,
    /// Its number; marks of several instruments with the same notice share it.
    pub number: u32,
    /// Start of the origin's run, ns of its wall clock.
    pub run: u64,
    /// Number of senders of that run.
    pub epoch: u64,
    /// Sequence of the next record at its origin.
    pub sequence: u64,
    /// Records lost with this mark.
    pub lost: u64,
    /// Records lost since this receiver started, including those before its first record.
    pub lost_total: u64,
    /// Numbers without a record since this receiver started.
    pub void_total: u64,
}

impl Mark {
    /// Encodes it as the payload of a record.
    pub fn encode(&self) -> [u8; BYTES] {
        let first = u64::from(VERSION) | (self.why as u64) << 16 | u64::from(self.number) << 32;
        let Self { run, epoch, sequence, lost, lost_total, void_total, .. } = *self;
        let mut bytes = [0; BYTES];
        let words: [u64; WORDS] = [first, run, epoch, sequence, lost, lost_total, void_total, 0];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes the payload of a record of [`KIND`].
    pub fn decode(payload: &[u8]) -> Result<Self, Refusal> {
        let bytes: &[u8; BYTES] = payload.try_into().map_err(|_| {
            let found = payload.len();
            Refusal::new(format!(
                "invalid mark of {found} bytes, expected {BYTES}\nhint: use one version of lowlat-bridge on both hosts"
            ))
        })?;
        let wrong = |field, found, expected| {
            Refusal::new(format!(
                "invalid mark: {field} {found}, expected {expected}\nhint: use the receiver's version of lowlat-bridge"
            ))
        };
        let (words, _) = bytes.as_chunks::<8>();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next().unwrap_or_default();
        let first = next();
        let [version, why, low, high] = parts(first);
        if version != VERSION {
            return Err(wrong("version", version, "1"));
        }
        let why = why_of(why).ok_or_else(|| wrong("why", why, "1 to 5"))?;
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

fn why_of(code: u16) -> Option<Why> {
    let all = [Why::Start, Why::NewRun, Why::NewSender, Why::Gap, Why::NewWriter];
    all.into_iter().find(|why| *why as u16 == code)
}

/// Marks of one stream: the current one, and which instruments have got it.
#[derive(Debug)]
pub struct StreamMarks {
    told: Option<Notice>,
    number: u32,
    /// By instrument, the number of its last mark; the last entry covers all instruments that the stream does
    /// not have.
    by_instrument: Vec<u32>,
}

impl StreamMarks {
    /// For a stream with instruments below `keys`.
    pub fn new(keys: u32) -> Self {
        let keys = usize::try_from(keys).unwrap_or(0);
        Self { told: None, number: 0, by_instrument: vec![0; keys.saturating_add(1)] }
    }

    /// Sets a notice that applies from the next record on.
    pub fn set(&mut self, told: Notice) {
        self.told = Some(told);
        self.number = self.number.wrapping_add(1).max(1);
    }

    /// The mark before this record; `None` if its instrument already got it.
    #[inline]
    pub fn before(
        &mut self,
        instrument: u32,
        head: &FrameHead,
        (lost_total, void_total): (u64, u64),
    ) -> Option<Mark> {
        let last = self.by_instrument.len().saturating_sub(1);
        let at = usize::try_from(instrument).unwrap_or(last).min(last);
        let number = self.by_instrument.get_mut(at)?;
        if std::mem::replace(number, self.number) == self.number {
            return None;
        }
        let Notice { why, lost, .. } = self.told?;
        let FrameHead { run, epoch, sequence, .. } = *head;
        Some(Mark { why, number: self.number, run, epoch, sequence, lost, lost_total, void_total })
    }
}

/// Header fields of a mark.
pub fn stamp(instrument: u32, source: u32, now_ns: u64) -> Stamp {
    Stamp { kind: KIND, schema: VERSION, instrument, source, generated: now_ns, trigger: now_ns, cause: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn told(lost: u64) -> Notice {
        Notice { why: Why::Gap, lost, void: 0 }
    }

    #[test]
    fn the_layout_is_as_documented() {
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
        let error = Mark::decode(&bytes[1..]).unwrap_err().to_string();
        assert!(error.starts_with("invalid mark of 63 bytes, expected 64"), "{error}");
        let mut other = bytes;
        other[2] = 9;
        assert!(Mark::decode(&other).unwrap_err().to_string().contains("why 9"));
        other[0] = 7;
        assert!(Mark::decode(&other).unwrap_err().to_string().contains("version 7"));
    }

    #[test]
    fn each_instrument_gets_each_mark_once() {
        let mut marks = StreamMarks::new(2);
        let head = FrameHead { sequence: 9, ..FrameHead::default() };
        let before = |marks: &mut StreamMarks, instrument| {
            marks.before(instrument, &head, (5, 0)).map(|mark| (mark.number, mark.lost, mark.sequence))
        };
        assert_eq!(before(&mut marks, 0), None, "no notice");
        marks.set(told(5));
        assert_eq!(
            [0, 1, 0, 1].map(|at| before(&mut marks, at)),
            [Some((1, 5, 9)), Some((1, 5, 9)), None, None]
        );
        marks.set(told(6));
        marks.set(told(7));
        assert_eq!([1, 1, 0].map(|at| before(&mut marks, at)), [Some((3, 7, 9)), None, Some((3, 7, 9))]);
        // Instruments that the stream does not have count as one.
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
