//! Following a recording while it is written.

#[cfg(test)]
mod tests;

use super::{
    Block, Gap, Read, Record, Recording,
    file::{DataFile, FileEnd},
    missing::{is_there, missing},
    recording::{numbers, streams_of},
};
use crate::{
    bytes::wide,
    damage::{Damage, Problem},
    layout::{BlockHead, BlockKind, FILE_HEAD_BYTES, HeadProblem, manifest::StreamEntry},
    record::FolderLock,
};
use std::{collections::VecDeque, path::PathBuf};

/// Reads a recording in the order in which its blocks were written, and goes on when more come. Each stream is in its
/// order; between streams the order is that of the blocks.
pub struct Tail {
    folder: PathBuf,
    recording: Option<u64>,
    streams: Vec<StreamEntry>,
    number: u64,
    file: Option<DataFile>,
    /// Whether the file is known to have been made.
    is_made: bool,
    /// Whether it was told what is wrong with the file.
    is_told: bool,
    /// Whether there are files behind it.
    is_left: bool,
    /// Missing files before it that are still to be told.
    missing: VecDeque<Damage>,
    offset: u64,
    block: Block,
    stream: u32,
}

impl Tail {
    /// From the first record.
    pub fn from_start(recording: &Recording) -> Self {
        Self::at(recording, recording.files().first().map_or(1, |file| file.number), wide(FILE_HEAD_BYTES))
    }

    /// Behind the last block that is there now. What is wrong with the files by now is not told.
    pub fn from_now(recording: &Recording) -> Self {
        let last = recording.files().len().saturating_sub(1);
        let number = recording.files().get(last).map_or(1, |file| file.number);
        let begin = wide(FILE_HEAD_BYTES);
        let Ok(file) = recording.open_file(last) else {
            return Self { is_told: true, ..Self::at(recording, number, begin) };
        };
        let index = recording.index(last, &file);
        let at = |number, offset| Self { is_told: file.head.is_err(), ..Self::at(recording, number, offset) };
        match (index.scan.end, index.scan.blocks.last()) {
            (FileEnd::Open { at: offset }, _) => at(number, offset),
            (FileEnd::Ended { goes_on: true }, _) if !is_there(recording.folder(), number + 1) => {
                Self { is_told: true, ..Self::at(recording, number + 1, begin) }
            }
            // To be read again, since it says where to go on.
            (FileEnd::Ended { .. }, Some(end)) => at(number, end.offset),
            (FileEnd::Ended { .. }, None) => at(number, begin),
        }
    }

    fn at(recording: &Recording, number: u64, offset: u64) -> Self {
        Self {
            folder: recording.folder().to_owned(),
            recording: recording.number(),
            streams: recording.streams().to_vec(),
            number,
            file: None,
            is_made: true,
            is_told: false,
            is_left: false,
            missing: VecDeque::new(),
            offset,
            block: Block::default(),
            stream: 0,
        }
    }

    /// The streams known by now; more may come while it is followed.
    pub fn streams(&self) -> &[StreamEntry] {
        &self.streams
    }

    /// The next record, its payload in `payload`, or what stands in its place. [`Read::Nothing`] as long as somebody
    /// records and has written nothing new.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Read {
        loop {
            if let Some(damage) = self.missing.pop_front() {
                return Read::Damaged(Box::new(damage));
            }
            if self.file.is_none() {
                match self.open() {
                    Some(read) => return read,
                    None => continue,
                }
            }
            if let Some(read) = self.next_of_block(payload).or_else(|| self.next_block()) {
                return read;
            }
        }
    }

    /// Opens the file, or goes on to one behind it; something to tell instead.
    fn open(&mut self) -> Option<Read> {
        let file = match DataFile::open_of(&self.folder, self.number, self.recording) {
            Ok(file) => file,
            Err(damage) => return self.without_file(damage),
        };
        let is_other = matches!(file.head, Err(HeadProblem::Version { .. }));
        // A writer makes a file and then writes its head.
        let is_told = self.is_told || (!is_other && self.is_being_written());
        let damage = file.head_damage().filter(|_| !is_told);
        if is_other {
            self.go_to(self.number + 1, false);
        } else {
            self.file = Some(file);
        }
        damage.map(|damage| Read::Damaged(Box::new(damage)))
    }

    /// The file cannot be opened: not there yet, gone, or not readable. The latter two are told once; it is waited for
    /// as long as somebody records and there is none behind it.
    fn without_file(&mut self, damage: Damage) -> Option<Read> {
        // Looked at before the files: what is there when nobody writes any more is all there is.
        let is_live = FolderLock::is_taken(&self.folder);
        let later = self.later();
        let is_missing = damage.problem == Problem::FileMissing;
        if !self.is_told && (self.is_made || later.is_some() || !is_missing) {
            self.is_told = true;
            return Some(Read::Damaged(Box::new(damage)));
        }
        match later {
            Some(later) => {
                self.missing.extend(missing(&self.folder, self.number + 1..later));
                self.go_to(later, true);
                None
            }
            None if is_live => Some(Read::Nothing),
            // Made in the moment between the two looks?
            None if is_missing && is_there(&self.folder, self.number) => None,
            None => Some(Read::Ended),
        }
    }

    fn go_to(&mut self, number: u64, is_made: bool) {
        (self.number, self.is_made, self.is_told, self.is_left) = (number, is_made, false, false);
        self.offset = wide(FILE_HEAD_BYTES);
        self.file = None;
        self.block.clear();
    }

    /// Whether the last block of the last file may still be under way.
    fn is_being_written(&self) -> bool {
        !self.is_left && !is_there(&self.folder, self.number + 1) && FolderLock::is_taken(&self.folder)
    }

    /// Nothing new of a file that is being written; or it is not, since its writer has gone on and the next file is gone.
    fn nothing_yet(&mut self) -> Option<Read> {
        self.is_left = self.later().is_some();
        (!self.is_left).then_some(Read::Nothing)
    }

    /// The next file behind the present one that is there.
    fn later(&self) -> Option<u64> {
        numbers(&self.folder).unwrap_or_default().into_iter().find(|number| *number > self.number)
    }

    fn next_of_block(&mut self, payload: &mut Vec<u8>) -> Option<Read> {
        let file = self.file.as_ref()?;
        let epoch = self.block.epoch();
        match self.block.next(file)? {
            Ok((record, bytes)) => {
                payload.clear();
                payload.extend_from_slice(bytes);
                Some(Read::Record(Record { stream: self.stream, epoch, record }))
            }
            Err(damage) => Some(Read::Damaged(Box::new(damage))),
        }
    }

    /// Takes up the next block; something to tell instead.
    fn next_block(&mut self) -> Option<Read> {
        // Looked at before the bytes: what was written when nobody writes any more is all there is.
        let is_being_written = self.is_being_written();
        let file = self.file.as_mut()?;
        file.refresh();
        let found = match file.block_at(self.offset, self.recording) {
            Ok(found) => found,
            Err(error) => {
                let problem = Problem::Unreadable { error: error.to_string() };
                let damage = file.damage(self.offset, 0, problem);
                self.go_to(self.number + 1, false);
                return Some(Read::Damaged(Box::new(damage)));
            }
        };
        let Some(head) = found else { return self.without_block(is_being_written) };
        if head.kind == BlockKind::Records {
            let damage = self.block.load(file, &head);
            if is_being_written && !self.block.is_whole(file) {
                self.block.clear();
                return self.nothing_yet();
            }
            self.stream = head.stream;
            self.offset += head.bytes();
            return damage.map(|damage| Read::Damaged(Box::new(damage)));
        }
        self.take_other(&head)
    }

    fn take_other(&mut self, head: &BlockHead) -> Option<Read> {
        self.offset += head.bytes();
        match head.kind {
            BlockKind::Gap => Some(Read::Gap(Gap {
                stream: head.stream,
                from: head.first_sequence,
                to: head.last_sequence + 1,
                reason: head.gap_reason(),
            })),
            BlockKind::Manifest => {
                let streams = self.file.as_ref().and_then(|file| streams_of(file, head));
                if let Some(streams) = streams.filter(|streams| streams.len() > self.streams.len()) {
                    self.streams = streams;
                }
                None
            }
            BlockKind::End => {
                // Its writer made the next file before it wrote that it goes on.
                self.go_to(self.number + 1, head.goes_on());
                None
            }
            BlockKind::Records => None,
        }
    }

    /// No block begins where the next one should.
    fn without_block(&mut self, is_being_written: bool) -> Option<Read> {
        if is_being_written {
            return self.nothing_yet();
        }
        let file = self.file.as_ref()?;
        let Ok(found) = file.find_block(self.offset, self.recording) else {
            self.go_to(self.number + 1, false);
            return None;
        };
        let next = found.head.map_or(found.used, |head| head.offset);
        let damage =
            (next > self.offset).then(|| file.damage(self.offset, next - self.offset, Problem::NoBlock));
        match found.head {
            Some(head) => self.offset = head.offset,
            None => self.go_to(self.number + 1, false),
        }
        damage.map(|damage| Read::Damaged(Box::new(damage)))
    }
}
