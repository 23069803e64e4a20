//! Several streams as one, always in the same order.

use super::{Read, Record, Recording, StreamReader};
use crate::layout::STREAMS_MAX;
use std::{cmp::Reverse, collections::BinaryHeap};

/// The number of a stream that no recording has: a source of damages alone.
const NO_STREAM: u32 = u32::MAX;
const _: () = assert!(NO_STREAM as usize >= STREAMS_MAX);

/// One stream with its next record.
struct Source<'r> {
    reader: StreamReader<'r>,
    next: Option<Record>,
    payload: Vec<u8>,
    is_started: bool,
}

/// Reads several streams by (generated time, stream, sequence). The order depends on the records alone, not on when or
/// in which blocks they were written. A stream's own order is kept, also when its times go back.
pub struct Merge<'r> {
    sources: Vec<Source<'r>>,
    heap: BinaryHeap<Reverse<(u64, u32, u64, usize)>>,
    /// The source whose next record is to be found.
    refill: Option<usize>,
    started: usize,
}

impl<'r> Merge<'r> {
    /// A merge of these streams of a recording from their beginning. What is missing or damaged outside of records is
    /// told also when there is no stream.
    pub fn new(recording: &'r Recording, streams: &[u32]) -> Self {
        let streams = if streams.is_empty() { &[NO_STREAM] } else { streams };
        let sources = streams.iter().enumerate().map(|(place, stream)| {
            let reader = StreamReader::new(recording, *stream);
            let reader = if place == 0 { reader } else { reader.without_file_damages() };
            Source { reader, next: None, payload: Vec::new(), is_started: false }
        });
        Self { sources: sources.collect(), heap: BinaryHeap::new(), refill: None, started: 0 }
    }

    /// A merge of all streams.
    pub fn of_all(recording: &'r Recording) -> Self {
        let streams: Vec<_> = (0_u32..).take(recording.streams().len()).collect();
        Self::new(recording, &streams)
    }

    /// Goes to the first records that were generated at this time or later.
    pub fn seek_time(&mut self, generated: u64) {
        for source in &mut self.sources {
            source.reader.seek_time(generated);
            (source.next, source.is_started) = (None, false);
        }
        self.heap.clear();
        (self.refill, self.started) = (None, 0);
    }

    /// The next record, its payload in `payload`; or what stands in its place. A gap is told before the record behind
    /// it is looked for.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Read {
        while let Some(at) = self.refill.or_else(|| self.unstarted()) {
            if let Some(told) = self.fill(at) {
                return told;
            }
        }
        let Some(Reverse((.., at))) = self.heap.pop() else { return Read::Ended };
        self.refill = Some(at);
        let Some(source) = self.sources.get_mut(at) else { return Read::Ended };
        let Some(record) = source.next.take() else { return Read::Ended };
        // The buffers change places, so that nothing is copied.
        std::mem::swap(payload, &mut source.payload);
        Read::Record(record)
    }

    fn unstarted(&self) -> Option<usize> {
        (self.started < self.sources.len()).then_some(self.started)
    }

    /// Finds the next record of a source; what else it tells on the way is given back.
    fn fill(&mut self, at: usize) -> Option<Read> {
        let source = self.sources.get_mut(at)?;
        let read = source.reader.next(&mut source.payload);
        if let Read::Record(record) = &read {
            let key = (record.record.stamp.generated, record.stream, record.record.sequence, at);
            source.next = Some(*record);
            self.heap.push(Reverse(key));
        }
        let is_filled = matches!(read, Read::Record(_) | Read::Ended | Read::Nothing);
        if is_filled {
            self.refill = None;
            if !source.is_started {
                source.is_started = true;
                self.started += 1;
            }
        }
        if is_filled { None } else { Some(read) }
    }
}
