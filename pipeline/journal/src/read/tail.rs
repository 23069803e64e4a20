//! Follows a recording while it is being written.

#[cfg(test)]
mod tests;

use super::{
    Block, Gap, JournalRead, Recording,
    file::{DataFile, FileEnd, behind_end, is_stored, is_there, missing},
    inspect::{check_plain, number_damage},
    recording::{list, streams_of},
};
use crate::{
    bytes::wide,
    damage::{DamagedPlace, Problem},
    layout::{BlockHead, BlockKind, FILE_HEAD_BYTES, HeadProblem, index_name, manifest::StreamEntry},
    record::FolderLock,
};
use std::{collections::VecDeque, path::PathBuf};

/// Reads a recording in the order in which its blocks were written, and continues when more are written. Each
/// stream is in order; between streams the order is that of the blocks.
pub struct TailReader {
    folder: PathBuf,
    recording: Option<u64>,
    streams: Vec<StreamEntry>,
    number: u64,
    file: Option<DataFile>,
    /// The file is known to have been created.
    is_made: bool,
    /// The file's problem was reported.
    is_told: bool,
    /// A missing end of the file is to be reported.
    tells_end: bool,
    /// Damage not yet returned, including missing files.
    found: VecDeque<DamagedPlace>,
    /// The expected number of the next block; `None` if unknown.
    next_block: Option<u64>,
    offset: u64,
    block: Block,
}

impl TailReader {
    /// Starts with the first record.
    pub fn from_start(recording: &Recording) -> Self {
        let number = recording.files().first().map_or(1, |file| file.number);
        Self {
            found: missing(recording.folder(), recording.first_file()..number).collect(),
            next_block: recording.first_block(),
            ..Self::at(recording, number, wide(FILE_HEAD_BYTES))
        }
    }

    /// After the last existing block. Existing damage is not reported.
    pub fn from_now(recording: &Recording) -> Self {
        let last = recording.files().len().saturating_sub(1);
        let number = recording.files().get(last).map_or(1, |file| file.number);
        let begin = wide(FILE_HEAD_BYTES);
        let Ok((file, index)) = recording.open_indexed(last) else {
            return Self { is_told: true, ..Self::at(recording, number, begin) };
        };
        let end = index.scan.blocks.last();
        let at = |number, offset| Self {
            is_told: file.head.is_err(),
            // The end of a file that is no longer written is final.
            tells_end: recording.is_live(),
            next_block: end.map(|end| end.number + 1),
            ..Self::at(recording, number, offset)
        };
        let next = at(number + 1, begin);
        match (index.scan.end, end) {
            (FileEnd::Open { at: offset }, _) => at(number, offset),
            (FileEnd::Ended { goes_on }, _)
                if (goes_on || next.is_indexed()) && !is_stored(&next.folder, next.number) =>
            {
                Self { is_told: true, ..next }
            }
            // Read again, because it tells where to continue.
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
        }
    }

    /// Returns true if the present file has an index, and so was created.
    fn is_indexed(&self) -> bool {
        is_there(&self.folder.join(index_name(self.number)))
    }

    /// The streams known so far; more may appear.
    pub fn streams(&self) -> &[StreamEntry] {
        &self.streams
    }

    /// The next record, with its payload in `payload`, or what is in its place. [`JournalRead::Nothing`] while a
    /// recorder is running but has written nothing new.
    pub fn next(&mut self, payload: &mut Vec<u8>) -> JournalRead {
        loop {
            if let Some(damage) = self.found.pop_front() {
                return damage.into();
            }
            if self.file.is_none() {
                let Some(read) = self.open() else { continue };
                return read;
            }
            let read = self.file.as_ref().and_then(|file| self.block.read(file, payload));
            if let Some(read) = read.or_else(|| self.next_block()) {
                return read;
            }
        }
    }

    /// Opens the file, or advances to a later one; returns an item to report instead.
    fn open(&mut self) -> Option<JournalRead> {
        let file = match DataFile::open_of(&self.folder, self.number, self.recording) {
            Ok(file) => file,
            Err(damage) => return self.without_file(damage),
        };
        let is_other = matches!(file.head, Err(HeadProblem::Version { .. }));
        // A writer creates a file before it writes its head.
        let is_told = self.is_told || (!is_other && self.is_being_written());
        let damage = file.head_damage().filter(|_| !is_told);
        if is_other {
            self.go_to(self.number + 1, false);
        } else {
            self.file = Some(file);
        }
        damage.map(JournalRead::from)
    }

    /// The file cannot be opened: not created yet, deleted, or unreadable. The latter two are reported once.
    /// Waits for it while a recorder is running and no later file exists.
    fn without_file(&mut self, damage: DamagedPlace) -> Option<JournalRead> {
        // Checked before the files: if no writer is left, the files seen are final.
        let is_live = FolderLock::is_taken(&self.folder);
        let later = self.later().next();
        let is_missing = damage.problem == Problem::FileMissing;
        let is_made = self.is_made || later.is_some() || self.is_indexed();
        if !self.is_told && (is_made || !is_missing) {
            self.is_told = true;
            return Some(damage.into());
        }
        match later {
            Some(later) => {
                self.found.extend(missing(&self.folder, self.number + 1..later));
                self.go_to(later, true);
                None
            }
            None if is_live => Some(JournalRead::Nothing),
            // Created between the two checks?
            None if is_missing && is_stored(&self.folder, self.number) => None,
            None => Some(JournalRead::Ended),
        }
    }

    fn go_to(&mut self, number: u64, is_made: bool) {
        (self.number, self.is_made, self.is_told) = (number, is_made, false);
        self.tells_end = true;
        self.offset = wide(FILE_HEAD_BYTES);
        self.file = None;
        self.block.clear();
    }

    /// Returns true if the last block of the last file may be incomplete.
    fn is_being_written(&self) -> bool {
        FolderLock::is_taken(&self.folder) && !self.is_followed()
    }

    /// Handles a file without new blocks: it is still being written, or its writer has moved on and the next
    /// file is missing.
    fn nothing_yet(&self) -> Option<JournalRead> {
        (!self.is_followed()).then_some(JournalRead::Nothing)
    }

    /// The files after the present one.
    fn later(&self) -> impl Iterator<Item = u64> {
        let files = list(&self.folder).map(|listing| listing.data).unwrap_or_default();
        let number = self.number;
        files.into_iter().filter(move |later| *later > number)
    }

    /// Returns true if the recording continues in a later file. A recorder creates the next file, ends this one, and
    /// then writes the first block of the next one.
    fn is_followed(&self) -> bool {
        let mut later = self.later();
        later.next().is_some_and(|next| later.next().is_some() || self.has_block(next))
    }

    fn has_block(&self, number: u64) -> bool {
        DataFile::open_of(&self.folder, number, self.recording).is_ok_and(|file| {
            file.block_at(wide(FILE_HEAD_BYTES), self.recording).is_ok_and(|head| head.is_some())
        })
    }

    /// Loads the next block; returns an item to report instead.
    fn next_block(&mut self) -> Option<JournalRead> {
        // Checked before the bytes: if no writer is left, the bytes seen are final.
        let is_being_written = self.is_being_written();
        let file = self.file.as_mut()?;
        file.refresh();
        let found = match file.block_at(self.offset, self.recording) {
            Ok(found) => found,
            Err(error) => {
                let damage = file.damage(self.offset, 0, Problem::unreadable(&error));
                self.go_to(self.number + 1, false);
                return Some(damage.into());
            }
        };
        let Some(head) = found else { return self.without_block(is_being_written) };
        let damage = number_damage(file, &head, self.next_block);
        self.next_block = Some(head.number);
        if damage.is_some() {
            return damage.map(JournalRead::from);
        }
        let damage = self.block.load(file, &head);
        if is_being_written && !self.block.is_whole(file) {
            self.block.clear();
            return self.nothing_yet();
        }
        self.next_block = Some(head.number + 1);
        self.offset += head.bytes();
        if head.kind == BlockKind::Records {
            return damage.map(JournalRead::from);
        }
        self.block.clear();
        check_plain(file, &head, &mut self.found);
        if head.kind == BlockKind::End && !is_being_written {
            self.found.extend(behind_end(file, self.offset, self.recording));
        }
        self.take_other(&head)
    }

    fn take_other(&mut self, head: &BlockHead) -> Option<JournalRead> {
        match head.kind {
            BlockKind::Gap => Some(JournalRead::Gap(Gap::of(head))),
            BlockKind::Manifest => {
                let streams = self.file.as_ref().and_then(|file| streams_of(file, head));
                if let Some(streams) = streams.filter(|streams| streams.len() > self.streams.len()) {
                    self.streams = streams;
                }
                None
            }
            BlockKind::End => {
                // Its writer created the next file before it announced it.
                self.go_to(self.number + 1, head.goes_on());
                None
            }
            BlockKind::Records => None,
        }
    }

    /// No block starts where the next one should.
    fn without_block(&mut self, is_being_written: bool) -> Option<JournalRead> {
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
