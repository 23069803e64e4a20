//! Journals as Kungfu has them: frames one after the other, one writer, made visible by their length.
//!
//! Kinder than the real ones: frames are aligned and whole cache lines, a journal holds all of a run (no page is ever
//! opened on the way), and its memory is there before the run begins.

use super::super::trial::{clock::now_ns, memory::Part, message::Words};
use lowlat_ipc::region::Region;
use std::sync::atomic::{AtomicU64, Ordering};

const FRAME_WORDS: usize = 16;
const LENGTH: usize = 0;
const GENERATED: usize = 1;
const TRIGGER: usize = 2;
const PAYLOAD: usize = 8;
const FRAME_BYTES: u64 = (FRAME_WORDS as u64) * 8;

/// Bytes of a journal for this many frames, and one of length 0 that marks its end.
pub const fn bytes(frames: u64) -> u64 {
    (frames + 1) * FRAME_BYTES
}

/// A frame as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Index of the reader's journal that contains it.
    pub journal: usize,
    /// Time at which it was written, ns.
    pub generated: u64,
    /// Time at which its cause was written, ns.
    pub trigger: u64,
    pub payload: Words,
}

fn frame(part: &Part, number: usize) -> Option<&[AtomicU64]> {
    let start = number.checked_mul(FRAME_WORDS)?;
    part.words().get(start..start + FRAME_WORDS)
}

fn put(frame: &[AtomicU64], at: usize, value: u64, ordering: Ordering) {
    if let Some(word) = frame.get(at) {
        word.store(value, ordering);
    }
}

fn get(frame: &[AtomicU64], at: usize, ordering: Ordering) -> u64 {
    frame.get(at).map_or(0, |word| word.load(ordering))
}

#[derive(Debug)]
pub struct Writer {
    part: Part,
    next: usize,
}

impl Writer {
    /// Creates the only writer of a journal.
    pub fn new(part: Part) -> Self {
        Self { part, next: 0 }
    }

    /// Appends a frame with the time `generated`. Returns false if the journal is full.
    pub fn write(&mut self, generated: u64, trigger: u64, payload: &Words) -> bool {
        // The last frame stays empty: readers stop there.
        if frame(&self.part, self.next + 1).is_none() {
            return false;
        }
        let Some(frame) = frame(&self.part, self.next) else { return false };
        put(frame, GENERATED, generated, Ordering::Relaxed);
        put(frame, TRIGGER, trigger, Ordering::Relaxed);
        (PAYLOAD..).zip(payload).for_each(|(at, word)| put(frame, at, *word, Ordering::Relaxed));
        // Pairs with the load in `Reader::sort`: a reader that sees the length sees the frame.
        put(frame, LENGTH, FRAME_BYTES, Ordering::Release);
        self.next += 1;
        true
    }
}

/// Reads several journals in the order of their frames' times, as Kungfu's reader does: each check goes over all of
/// them.
#[derive(Debug)]
pub struct Reader {
    journals: Vec<(Part, usize)>,
    /// The journal with the oldest frame, and the time of the last check.
    current: Option<usize>,
    looked_ns: u64,
}

impl Reader {
    /// A reader of journals from their start.
    pub fn new(journals: Vec<Part>) -> Self {
        let journals = journals.into_iter().map(|part| (part, 0)).collect();
        Self { journals, current: None, looked_ns: 0 }
    }

    /// Returns true if a frame is available.
    pub fn has_data(&mut self) -> bool {
        self.sort();
        self.current.is_some()
    }

    /// Returns the oldest available frame.
    pub fn next(&mut self) -> Option<Frame> {
        self.sort();
        let journal = self.current?;
        let (part, next) = self.journals.get_mut(journal)?;
        let words = frame(part, *next)?;
        let mut payload = Words::default();
        (PAYLOAD..).zip(&mut payload).for_each(|(at, word)| *word = get(words, at, Ordering::Relaxed));
        let found = Frame {
            journal,
            generated: get(words, GENERATED, Ordering::Relaxed),
            trigger: get(words, TRIGGER, Ordering::Relaxed),
            payload,
        };
        *next += 1;
        Some(found)
    }

    fn sort(&mut self) {
        self.looked_ns = std::hint::black_box(now_ns());
        let mut oldest = u64::MAX;
        self.current = None;
        for (number, (part, next)) in self.journals.iter().enumerate() {
            let Some(words) = frame(part, *next) else { continue };
            // Pairs with the store in `Writer::write`.
            if get(words, LENGTH, Ordering::Acquire) == 0 {
                continue;
            }
            let generated = get(words, GENERATED, Ordering::Relaxed);
            if generated < oldest {
                (oldest, self.current) = (generated, Some(number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_ipc::region::Memfd;
    use std::sync::Arc;

    #[test]
    fn frames_come_in_the_order_of_their_times() {
        let memory = Arc::new(Memfd::create("lowlat-peers-test", 2 * bytes(2)).unwrap());
        let half = bytes(2);
        let parts = [Part::new(&memory, &(0..half)), Part::new(&memory, &(half..2 * half))];
        let [mut one, mut other] = parts.clone().map(Writer::new);
        let mut reader = Reader::new(parts.to_vec());
        assert!(!reader.has_data() && reader.next().is_none());
        assert!(one.write(20, 1, &[7; 8]) && one.write(40, 2, &[8; 8]) && other.write(30, 3, &[9; 8]));
        assert!(!one.write(50, 0, &[0; 8]), "full");
        assert!(reader.has_data());
        let read: Vec<_> = std::iter::from_fn(|| reader.next()).collect();
        let read: Vec<_> = read.iter().map(|f| (f.journal, f.generated, f.trigger, f.payload[7])).collect();
        assert_eq!(read, [(0, 20, 1, 7), (1, 30, 3, 9), (0, 40, 2, 8)]);
    }
}
