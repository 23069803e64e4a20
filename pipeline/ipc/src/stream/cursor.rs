//! The place of a reader that follows a stream itself, in memory that its successor inherits.
//!
//! ```text
//! words
//!   0  position of the next read; all ones: the stream's end
//!   1  sequence expected there + 1, or 0 if it is unknown; stored before the position
//! ```

use super::{Reader, Segment};
use crate::{
    atomics::{AtomicU64, Ordering},
    region::{CachedWords, Region},
};

/// Bytes of memory of a cursor: a line of its own.
pub const BYTES: u64 = 64;
/// The position of a reader that has not started.
const END: u64 = u64::MAX;

/// A cursor, as its reader and the master use it.
#[derive(Debug)]
pub struct Cursor<R> {
    memory: CachedWords<R>,
}

impl<R: Region> Cursor<R> {
    /// A cursor in zeroed memory, for a reader that starts with the segment's oldest record or, `at_end`, with what is
    /// published from its start on. `None` if the memory is too small.
    pub fn create(region: R, first_sequence: u64, at_end: bool) -> Option<Self> {
        let cursor = Self::open(region)?;
        if at_end {
            cursor.word(0).store(END, Ordering::Release);
        } else {
            cursor.store(0, first_sequence);
        }
        Some(cursor)
    }

    /// The cursor of a predecessor; `None` if the memory is too small.
    pub fn open(region: R) -> Option<Self> {
        let cursor = Self { memory: CachedWords::new(region) };
        (cursor.memory.words().len() >= 2).then_some(cursor)
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.memory.words()[at]
    }

    /// Reader: stores the place of its next read.
    #[inline]
    pub fn store(&self, position: u64, sequence: u64) {
        // Pair with the loads in `place`: a successor that sees the position sees this sequence or a later one.
        self.word(1).store(sequence.wrapping_add(1), Ordering::Release);
        self.word(0).store(position, Ordering::Release);
    }

    /// Position of the next read, and the sequence expected there, if known; `None` before the start.
    pub fn place(&self) -> Option<(u64, Option<u64>)> {
        let position = self.word(0).load(Ordering::Acquire);
        let sequence = self.word(1).load(Ordering::Acquire).checked_sub(1);
        (position != END).then_some((position, sequence))
    }

    /// A reader of the segment that continues at this place.
    pub fn reader<S: Region>(&self, segment: Segment<S>) -> Reader<S> {
        match self.place() {
            None => Reader::from_now(segment),
            Some((position, sequence)) => Reader::resume(segment, position, sequence),
        }
    }
}

#[cfg(all(test, not(any(lowlat_loom, lowlat_shuttle))))]
mod tests {
    use super::*;
    use crate::{
        region::Heap,
        stream::{Owner, Read, Stamp, Writer},
    };

    /// Sequences until nothing is left; a gap as its first and next sequence.
    fn read_all(reader: &mut Reader<&Heap>, cursor: Option<&Cursor<Heap>>) -> Vec<(u64, Option<u64>)> {
        let (mut all, mut payload) = (Vec::new(), Vec::new());
        loop {
            match reader.next(&mut payload) {
                Read::Record(record) => {
                    all.push((record.sequence, None));
                    if let Some(cursor) = cursor {
                        cursor.store(reader.position(), record.sequence + 1);
                    }
                }
                Read::Gap { from, to } => all.push((from, Some(to))),
                Read::Nothing => return all,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_successor_continues_where_the_cursor_is() {
        let heap = Heap::zeroed(Segment::<Heap>::bytes(4096));
        let made = Segment::create(&heap, 4096, 1, 1, 5, Owner::default()).unwrap();
        let mut writer = Writer::new(made);
        let mut publish = |count: u64| {
            for _ in 0..count {
                writer.publish(&Stamp::default(), &[7; 64]).unwrap();
            }
        };
        let open = || Segment::open(&heap).unwrap();
        let cursor = || Cursor::create(Heap::zeroed(BYTES), 5, false).unwrap();
        let late = Cursor::create(Heap::zeroed(BYTES), 5, true).unwrap();
        publish(3);
        let whole = cursor();
        assert_eq!(read_all(&mut whole.reader(open()), Some(&whole)), [(5, None), (6, None), (7, None)]);
        let mut follower = late.reader(open());
        assert_eq!(read_all(&mut follower, Some(&late)), []);
        publish(2);
        assert_eq!(read_all(&mut follower, Some(&late)), [(8, None), (9, None)]);
        assert_eq!(read_all(&mut whole.reader(open()), None), [(8, None), (9, None)], "the successor's");
        // It died between the two stores: the record is read again, and no gap is made up.
        let torn = cursor();
        torn.store(whole.place().unwrap().0, 9);
        assert_eq!(read_all(&mut torn.reader(open()), None), [(8, None), (9, None)]);
        // What was overwritten meanwhile is a gap.
        publish(100);
        let read = read_all(&mut whole.reader(open()), None);
        let [(8, Some(next)), .., (109, None)] = read[..] else { panic!("{read:?}") };
        assert!(next > 70, "{next}");
    }
}
