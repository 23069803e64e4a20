//! Following a recording while it is written.

use super::{
    Block, Gap, Read, Record, Recording,
    file::{DataFile, FileEnd},
    recording::streams_of,
};
use crate::{
    bytes::wide,
    damage::Damage,
    damage::Problem,
    layout::{BlockHead, BlockKind, FILE_HEAD_BYTES, data_name, manifest::StreamEntry},
    record::FolderLock,
};
use std::path::PathBuf;

/// Reads a recording in the order in which its blocks were written, and goes on when more come. Each stream is in its
/// order; between streams the order is that of the blocks.
pub struct Tail {
    folder: PathBuf,
    recording: Option<u64>,
    streams: Vec<StreamEntry>,
    number: u64,
    file: Option<DataFile>,
    offset: u64,
    block: Block,
    stream: u32,
}

impl Tail {
    /// From the first record.
    pub fn from_start(recording: &Recording) -> Self {
        Self::at(recording, recording.files().first().map_or(1, |file| file.number), wide(FILE_HEAD_BYTES))
    }

    /// Behind the last block that is there now.
    pub fn from_now(recording: &Recording) -> Self {
        let last = recording.files().len().saturating_sub(1);
        let number = recording.files().get(last).map_or(1, |file| file.number);
        let offset = recording.open_file(last).map_or(wide(FILE_HEAD_BYTES), |file| {
            let index = recording.index(last, &file);
            match (index.scan.end, index.scan.blocks.last()) {
                (FileEnd::Open { at }, _) => at,
                // To be read again, since it says where to go on.
                (FileEnd::Ended { .. }, Some(end)) => end.offset,
                (FileEnd::Ended { .. }, None) => wide(FILE_HEAD_BYTES),
            }
        });
        Self::at(recording, number, offset)
    }

    fn at(recording: &Recording, number: u64, offset: u64) -> Self {
        Self {
            folder: recording.folder().to_owned(),
            recording: recording.number(),
            streams: recording.streams().to_vec(),
            number,
            file: None,
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
            if self.file.is_none() {
                match DataFile::open(&self.folder, self.number) {
                    Ok(file) => self.file = Some(file),
                    Err(damage) => {
                        if let Some(read) = self.without_file(damage) {
                            return read;
                        }
                        continue;
                    }
                }
            }
            if let Some(read) = self.next_of_block(payload).or_else(|| self.next_block()) {
                return read;
            }
        }
    }

    /// The file cannot be opened: not there yet, never there, or not readable.
    fn without_file(&mut self, damage: Damage) -> Option<Read> {
        if damage.problem != Problem::FileMissing {
            self.go_to_next();
            return Some(Read::Damaged(Box::new(damage)));
        }
        let is_there = |number| self.folder.join(data_name(number)).exists();
        match (1..=16).map(|more| self.number + more).find(|number| is_there(*number)) {
            Some(later) => {
                self.number = later;
                Some(Read::Damaged(Box::new(damage)))
            }
            None if FolderLock::is_taken(&self.folder) => Some(Read::Nothing),
            // Made in the moment between the two looks?
            None if is_there(self.number) => None,
            None => Some(Read::Ended),
        }
    }

    fn go_to_next(&mut self) {
        self.number += 1;
        self.offset = wide(FILE_HEAD_BYTES);
        self.file = None;
        self.block.clear();
    }

    /// Whether the last block of the last file may still be under way.
    fn is_being_written(&self) -> bool {
        !self.folder.join(data_name(self.number + 1)).exists() && FolderLock::is_taken(&self.folder)
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
                self.go_to_next();
                return Some(Read::Damaged(Box::new(damage)));
            }
        };
        let Some(head) = found else { return self.without_block(is_being_written) };
        if head.kind == BlockKind::Records {
            let damage = self.block.load(file, &head);
            if is_being_written && !self.block.is_whole(file) {
                self.block.clear();
                return Some(Read::Nothing);
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
                self.go_to_next();
                None
            }
            BlockKind::Records => None,
        }
    }

    /// No block begins where the next one should.
    fn without_block(&mut self, is_being_written: bool) -> Option<Read> {
        if is_being_written {
            return Some(Read::Nothing);
        }
        let file = self.file.as_ref()?;
        let Ok(found) = file.find_block(self.offset, self.recording) else {
            self.go_to_next();
            return None;
        };
        let next = found.head.map_or(found.used, |head| head.offset);
        let damage =
            (next > self.offset).then(|| file.damage(self.offset, next - self.offset, Problem::NoBlock));
        match found.head {
            Some(head) => self.offset = head.offset,
            None => self.go_to_next(),
        }
        damage.map(|damage| Read::Damaged(Box::new(damage)))
    }
}
