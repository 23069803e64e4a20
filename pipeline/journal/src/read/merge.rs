//! Several streams as one, always in the same order.

use super::{JournalRead, Record, Recording, StreamReader};
use crate::layout::STREAMS_MAX;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Number of a source that only reports damage; no stream has it.
const NO_STREAM: u32 = u32::MAX;
const _: () = assert!(NO_STREAM as usize >= STREAMS_MAX);

/// One stream with its next record.
struct Source<'r> {
    reader: StreamReader<'r>,
    next: Option<Record>,
    payload: Vec<u8>,
}

/// Reads several streams in the order of (generation time, stream, sequence). The order depends only on the
/// records, not on when or in which blocks they were written. Records of one stream stay in order even if their
/// times decrease.
pub struct Merge<'r> {
    sources: Vec<Source<'r>>,
    heap: BinaryHeap<Reverse<(u64, u32, u64, usize)>>,
    /// The source whose next record must be read: the top of the heap, until it has one.
    refill: Option<usize>,
    started: usize,
}

impl<'r> Merge<'r> {
    /// A merge of these streams of a recording from their start. Missing or damaged parts other than records
    /// are reported even without streams.
    pub fn new(recording: &'r Recording, streams: &[u32]) -> Self {
        let streams = if streams.is_empty() { &[NO_STREAM] } else { streams };
        let sources = streams.iter().enumerate().map(|(place, stream)| {
            let reader = StreamReader::new(recording, *stream);
            let reader = if place == 0 { reader } else { reader.without_file_damages() };
            Source { reader, next: None, payload: Vec::new() }
        });
        Self { sources: sources.collect(), heap: BinaryHeap::new(), refill: None, started: 0 }
    }

    /// A merge of all streams.
    pub fn of_all(recording: &'r Recording) -> Self {
        let streams: Vec<_> = (0_u32..).take(recording.streams().len()).collect();
        Self::new(recording, &streams)
    }

    /// Seeks to the first records generated at or after this time.
    pub fn seek_time(&mut self, generated: u64) {
        for source in &mut self.sources {
            source.reader.seek_time(generated);
            source.next = None;
        }
        self.heap.clear();
        (self.refill, self.started) = (None, 0);
    }

    /// The next record, with its payload in `payload`, or what is in its place. A gap is returned before the
    /// record after it is read.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> JournalRead {
        while let Some(at) = self.refill.or_else(|| self.unstarted()) {
            if let Some(told) = self.fill(at) {
                return told;
            }
        }
        let Some(Reverse((.., at))) = self.heap.peek().copied() else { return JournalRead::Ended };
        self.refill = Some(at);
        let Some(source) = self.sources.get_mut(at) else { return JournalRead::Ended };
        let Some(record) = source.next.take() else { return JournalRead::Ended };
        // The buffers are swapped, so nothing is copied.
        std::mem::swap(payload, &mut source.payload);
        JournalRead::Record(record)
    }

    fn unstarted(&self) -> Option<usize> {
        (self.started < self.sources.len()).then_some(self.started)
    }

    /// Reads the next record of a source; returns other items on the way.
    fn fill(&mut self, at: usize) -> Option<JournalRead> {
        let source = self.sources.get_mut(at)?;
        let read = source.reader.next(&mut source.payload);
        let is_top = self.refill.is_some();
        match &read {
            JournalRead::Record(record) => {
                let key = Reverse((record.record.stamp.generated, record.stream, record.record.sequence, at));
                source.next = Some(*record);
                if !is_top {
                    self.heap.push(key);
                } else if let Some(mut top) = self.heap.peek_mut() {
                    *top = key;
                }
            }
            JournalRead::Ended | JournalRead::Nothing if is_top => drop(self.heap.pop()),
            JournalRead::Ended | JournalRead::Nothing => {}
            JournalRead::Gap(_) | JournalRead::Damaged(_) => return Some(read),
        }
        // What is not read again is read for the first time.
        if self.refill.take().is_none() {
            self.started += 1;
        }
        None
    }
}
