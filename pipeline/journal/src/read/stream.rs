//! One stream of a recording, in order.

use super::{
    Block, Gap, JournalRead, Record, Recording, file::DataFile, index::FileIndex, inspect::Inspector,
    recording::streams_of,
};
use crate::{
    bytes::narrow,
    damage::{DamagedPlace, Problem},
    layout::{BlockHead, BlockKind, GapReason, manifest::StreamEntry},
};
use std::{collections::VecDeque, sync::Arc};

/// Reads one stream of a recording.
pub struct StreamReader<'r> {
    recording: &'r Recording,
    stream: u32,
    /// Index of the present file in the recording.
    at: usize,
    open: Option<(DataFile, Arc<FileIndex>)>,
    /// The stream's next block in the file.
    nth: usize,
    block: Block,
    /// Finds missing or damaged parts other than records; `None` if another reader does.
    inspector: Option<Inspector<'r>>,
    /// Damage found but not yet returned.
    found: VecDeque<DamagedPlace>,
    expected: Option<u64>,
    /// Deleted records to report first.
    deleted: Option<Gap>,
    /// Records of an earlier time are skipped: the start of the block that a seek found.
    from_time: u64,
}

impl<'r> StreamReader<'r> {
    /// A reader that starts with the first record of a stream.
    pub fn new(recording: &'r Recording, stream: u32) -> Self {
        Self {
            recording,
            stream,
            at: 0,
            open: None,
            nth: 0,
            block: Block::default(),
            inspector: Some(Inspector::new(recording)),
            found: VecDeque::new(),
            expected: None,
            deleted: recording.deleted(stream),
            from_time: 0,
        }
    }

    /// The same, without reporting damage outside its own blocks: one of several readers does.
    #[must_use]
    pub fn without_file_damages(self) -> Self {
        Self { inspector: None, ..self }
    }

    /// Seeks to the first record generated at or after this time. A gap right before it is returned first: the
    /// missing records may be of this time too.
    pub fn seek_time(&mut self, generated: u64) {
        let from = self.recording.find_file(self.stream, |entry| entry.generated_max < generated);
        self.go_to(from);
        self.from_time = generated;
        let stream = self.stream;
        while let Some((_, index)) = self.opened() {
            let nth = index.find_time(stream, generated);
            if nth < index.blocks_of(stream) {
                self.nth = nth;
                break;
            }
            self.go_to(self.at + 1);
        }
        self.expected = None;
        let nth = self.nth;
        let found = self.opened().and_then(|(_, index)| index.block_of(stream, nth));
        let is_between = found.is_none_or(|head| head.generated_min >= generated);
        if is_between {
            self.step_back_over_gaps();
        }
        let nth = self.nth;
        let here = self.opened().and_then(|(_, index)| Some(index.block_of(stream, nth)?.first_sequence));
        let here = here.or_else(|| self.last_known());
        let deleted = self.recording.deleted(stream);
        self.deleted = deleted.filter(|deleted| is_between && here == Some(deleted.to));
        self.inspect_from(from);
    }

    fn step_back_over_gaps(&mut self) {
        while let Some((at, nth, head)) = self.before() {
            if head.kind != BlockKind::Gap {
                self.expected = Some(head.last_sequence + 1);
                break;
            }
            if at != self.at {
                self.go_to(at);
            }
            self.nth = nth;
        }
    }

    /// The stream's block before the present one: index of its file, its place there, and its head.
    fn before(&self) -> Option<(usize, usize, BlockHead)> {
        let at = if self.nth > 0 { self.at } else { self.at.checked_sub(1)? };
        let (_, index) = self.recording.open_indexed(at).ok()?;
        let end = if self.nth > 0 { self.nth } else { index.blocks_of(self.stream) };
        let nth = end.checked_sub(1)?;
        Some((at, nth, *index.block_of(self.stream, nth)?))
    }

    fn go_to(&mut self, at: usize) {
        (self.at, self.nth) = (at, 0);
        self.open = None;
        self.block.clear();
    }

    /// Inspects the files from one on, up to the present one.
    fn inspect_from(&mut self, from: usize) {
        self.found.clear();
        self.inspector = self.inspector.take().map(|_| Inspector::from(self.recording, from));
        for _ in from..self.at + usize::from(self.open.is_some()) {
            self.inspect();
        }
    }

    /// Inspects the next file, or the end after the last one; returns false if that was done.
    fn inspect(&mut self) -> bool {
        let found = self.inspector.as_mut().and_then(Inspector::next_file);
        let is_next = found.is_some();
        self.found.extend(found.unwrap_or_default());
        is_next
    }

    /// The present file, if it can be opened.
    fn opened(&mut self) -> Option<&(DataFile, Arc<FileIndex>)> {
        while self.open.is_none() && self.at < self.recording.files().len() {
            self.open = self.recording.open_indexed(self.at).ok();
            self.at += usize::from(self.open.is_none());
        }
        self.open.as_ref()
    }

    /// The first sequence of a stream, from the first list with its name, if that precedes its records.
    fn find_beginning(&mut self) {
        let Some((data, index)) = &self.open else { return };
        if self.expected.is_some() || self.from_time > 0 {
            return;
        }
        let first = index.block_of(self.stream, 0).map_or(u64::MAX, |head| head.offset);
        let manifests = index.scan.blocks.iter().filter(|head| head.kind == BlockKind::Manifest);
        self.expected = manifests
            .take_while(|head| head.offset < first)
            .filter_map(|head| streams_of(data, head))
            .find_map(|streams| streams.get(narrow(self.stream.into()))?.next());
    }

    /// One past the last recorded sequence, as far as lists of streams show.
    fn last_known(&self) -> Option<u64> {
        self.recording.streams().get(narrow(self.stream.into())).and_then(StreamEntry::next)
    }

    /// The last recorded records, if they are missing.
    fn lost_at_the_end(&mut self) -> JournalRead {
        match (self.expected, self.last_known()) {
            (Some(from), Some(to)) if from < to => {
                self.expected = Some(to);
                JournalRead::Gap(Gap { stream: self.stream, from, to, reason: None })
            }
            _ => JournalRead::Ended,
        }
    }

    /// The next record, with its payload in `payload`, or what is in its place.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> JournalRead {
        if let Some(deleted) = self.deleted.take() {
            return JournalRead::Gap(deleted);
        }
        loop {
            if let Some(read) = self.next_of_block(payload) {
                return read;
            }
            if self.open.is_none() {
                // Report what is missing before the next file, and damage of one that cannot be opened.
                if let Some(damage) = self.found.pop_front() {
                    return damage.into();
                }
                if self.at >= self.recording.files().len() {
                    if self.inspect() {
                        continue;
                    }
                    return self.lost_at_the_end();
                }
                self.inspect();
                match self.recording.open_indexed(self.at) {
                    Ok(open) => {
                        self.open = Some(open);
                        self.find_beginning();
                    }
                    // The inspector reports why.
                    Err(_) => self.go_to(self.at + 1),
                }
                continue;
            }
            if let Some(read) = self.next_block() {
                return read;
            }
        }
    }

    /// Loads the next block. Returns an item to report before it, or in its place.
    fn next_block(&mut self) -> Option<JournalRead> {
        let (data, index) = self.open.as_ref()?;
        let next = index.block_of(self.stream, self.nth).copied();
        let is_due = |damage: &DamagedPlace| {
            damage.file != data.path || next.is_none_or(|head| damage.offset <= head.offset)
        };
        if self.found.front().is_some_and(is_due) {
            return self.found.pop_front().map(JournalRead::from);
        }
        let Some(head) = next else {
            self.go_to(self.at + 1);
            return None;
        };
        self.take_up(&head)
    }

    fn take_up(&mut self, head: &BlockHead) -> Option<JournalRead> {
        let (data, _) = self.open.as_ref()?;
        if let Some(expected) = self.expected {
            if head.first_sequence < expected {
                self.nth += 1;
                // Of a gap, the rest is still a gap.
                if head.kind == BlockKind::Gap && head.last_sequence >= expected {
                    return Some(self.gap(expected, head));
                }
                let problem = Problem::Order { stream: self.stream, found: head.first_sequence, expected };
                return Some(data.damage(head.offset, head.bytes(), problem).into());
            }
            if head.first_sequence > expected {
                self.expected = Some(head.first_sequence);
                let (stream, to) = (self.stream, head.first_sequence);
                let before = self.at.checked_sub(1).and_then(|at| self.recording.files().get(at));
                let is_deleted = before.is_some_and(|before| self.recording.is_deleted(before.number));
                let reason = is_deleted.then_some(GapReason::Deleted);
                return Some(JournalRead::Gap(Gap { stream, from: expected, to, reason }));
            }
        }
        self.nth += 1;
        if head.kind == BlockKind::Gap {
            return Some(self.gap(head.first_sequence, head));
        }
        self.block.load(data, head).map(JournalRead::from)
    }

    fn gap(&mut self, from: u64, head: &BlockHead) -> JournalRead {
        let gap = Gap { from, ..Gap::of(head) };
        self.expected = Some(gap.to);
        JournalRead::Gap(gap)
    }

    fn next_of_block(&mut self, payload: &mut Vec<u8>) -> Option<JournalRead> {
        let (data, _) = self.open.as_ref()?;
        loop {
            let read = self.block.read(data, payload)?;
            if let JournalRead::Record(Record { record, .. }) = &read {
                if record.stamp.generated < self.from_time {
                    continue;
                }
                self.from_time = 0;
                self.expected = Some(record.sequence + 1);
            }
            return Some(read);
        }
    }
}
