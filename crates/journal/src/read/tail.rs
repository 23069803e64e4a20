//! Following a recording while it is written.

#[cfg(test)]
mod tests;

use super::{
    Block, Gap, Read, Record, Recording,
    file::{DataFile, FileEnd, behind_end},
    inspect::{check_plain, number_damage},
    missing::{is_there, missing},
    recording::{list, streams_of},
};
use crate::{
    bytes::wide,
    damage::{Damage, Problem},
    layout::{
        BlockHead, BlockKind, FILE_HEAD_BYTES, HeadProblem, data_name, index_name, manifest::StreamEntry,
    },
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
    /// Whether it is still to be told when the file has no end.
    tells_end: bool,
    /// Damages that are still to be told, missing files among them.
    found: VecDeque<Damage>,
    /// The number that the next block should have; none when that is not known.
    next_block: Option<u64>,
    offset: u64,
    block: Block,
    stream: u32,
}

impl Tail {
    /// From the first record.
    pub fn from_start(recording: &Recording) -> Self {
        let number = recording.files().first().map_or(1, |file| file.number);
        Self {
            found: missing(recording.folder(), 1..number).collect(),
            next_block: Some(1),
            ..Self::at(recording, number, wide(FILE_HEAD_BYTES))
        }
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
        let end = index.scan.blocks.last();
        let at = |number, offset| Self {
            is_told: file.head.is_err(),
            // Of a file that nobody writes any more it is known by now.
            tells_end: recording.is_live(),
            next_block: end.map(|end| end.number + 1),
            ..Self::at(recording, number, offset)
        };
        let next = at(number + 1, begin);
        match (index.scan.end, end) {
            (FileEnd::Open { at: offset }, _) => at(number, offset),
            (FileEnd::Ended { goes_on }, _) if (goes_on || next.is_indexed()) && !is_there(&next.path()) => {
                Self { is_told: true, ..next }
            }
            // To be read again, since it says where to go on.
            (FileEnd::Ended { .. }, Some(end)) => {
                Self { next_block: Some(end.number), ..at(number, end.offset) }
            }
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
            tells_end: true,
            found: VecDeque::new(),
            next_block: None,
            offset,
            block: Block::default(),
            stream: 0,
        }
    }

    /// The present file, or where it will be.
    fn path(&self) -> PathBuf {
        self.folder.join(data_name(self.number))
    }

    /// Whether the present file has an index, and so was made.
    fn is_indexed(&self) -> bool {
        is_there(&self.folder.join(index_name(self.number)))
    }

    /// The streams known by now; more may come while it is followed.
    pub fn streams(&self) -> &[StreamEntry] {
        &self.streams
    }

    /// The next record, its payload in `payload`, or what stands in its place. [`Read::Nothing`] as long as somebody
    /// records and has written nothing new.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> Read {
        loop {
            if let Some(damage) = self.found.pop_front() {
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
        let later = self.later().next();
        let is_missing = damage.problem == Problem::FileMissing;
        let is_made = self.is_made || later.is_some() || self.is_indexed();
        if !self.is_told && (is_made || !is_missing) {
            self.is_told = true;
            return Some(Read::Damaged(Box::new(damage)));
        }
        match later {
            Some(later) => {
                self.found.extend(missing(&self.folder, self.number + 1..later));
                self.go_to(later, true);
                None
            }
            None if is_live => Some(Read::Nothing),
            // Made in the moment between the two looks?
            None if is_missing && is_there(&self.path()) => None,
            None => Some(Read::Ended),
        }
    }

    fn go_to(&mut self, number: u64, is_made: bool) {
        (self.number, self.is_made, self.is_told) = (number, is_made, false);
        self.tells_end = true;
        self.offset = wide(FILE_HEAD_BYTES);
        self.file = None;
        self.block.clear();
    }

    /// Whether the last block of the last file may still be under way.
    fn is_being_written(&self) -> bool {
        FolderLock::is_taken(&self.folder) && !self.is_followed()
    }

    /// Nothing new of a file that is being written; or it is not, since its writer has gone on and the next file is gone.
    fn nothing_yet(&self) -> Option<Read> {
        (!self.is_followed()).then_some(Read::Nothing)
    }

    /// The files behind the present one.
    fn later(&self) -> impl Iterator<Item = u64> {
        let files = list(&self.folder).map(|listing| listing.data).unwrap_or_default();
        let number = self.number;
        files.into_iter().filter(move |later| *later > number)
    }

    /// Whether the recording goes on in a later file. A recorder makes the next file, ends this one, and then writes the
    /// first block of the next one.
    fn is_followed(&self) -> bool {
        let mut later = self.later();
        later.next().is_some_and(|next| later.next().is_some() || self.has_block(next))
    }

    fn has_block(&self, number: u64) -> bool {
        DataFile::open_of(&self.folder, number, self.recording).is_ok_and(|file| {
            file.block_at(wide(FILE_HEAD_BYTES), self.recording).is_ok_and(|head| head.is_some())
        })
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
        let damage = number_damage(file, &head, self.next_block);
        self.next_block = Some(head.number);
        if damage.is_some() {
            return damage.map(|damage| Read::Damaged(Box::new(damage)));
        }
        let damage = self.block.load(file, &head);
        if is_being_written && !self.block.is_whole(file) {
            self.block.clear();
            return self.nothing_yet();
        }
        self.next_block = Some(head.number + 1);
        self.offset += head.bytes();
        if head.kind == BlockKind::Records {
            self.stream = head.stream;
            return damage.map(|damage| Read::Damaged(Box::new(damage)));
        }
        self.block.clear();
        check_plain(file, &head, &mut self.found);
        if head.kind == BlockKind::End && !is_being_written {
            self.found.extend(behind_end(file, self.offset, self.recording));
        }
        self.take_other(&head)
    }

    fn take_other(&mut self, head: &BlockHead) -> Option<Read> {
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
        if next > self.offset {
            self.found.push_back(file.damage(self.offset, next - self.offset, Problem::NoBlock));
        }
        if let Some(head) = found.head {
            self.offset = head.offset;
        } else {
            if self.tells_end {
                self.found.push_back(file.damage(self.offset, 0, Problem::Unfinished));
            }
            self.go_to(self.number + 1, false);
        }
        None
    }
}
