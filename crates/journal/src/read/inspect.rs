//! What is missing or damaged in a recording outside of its records. Every reader reports what is found here, so that
//! verify, ls, export, replay, tail and diff agree.
//!
//! A recording is complete when
//!
//! * its files are numbered from 1 without a gap, up to the last one that an end, or an index, names;
//! * each file is a regular file of this recording, with a right head, and ends with an end block. The last file has none
//!   while the recording is being written;
//! * its blocks are numbered from 1 without a gap, over all files, and nothing else stands between them;
//! * lists of streams, gaps and ends are as they were written.
//!
//! Records are checked by those who read them: each has a checksum, and the sequence behind that of the record before it.

use super::{
    Block, Recording,
    file::{DataFile, FileEnd},
    index::FileIndex,
    missing::{is_there, missing},
    recording::streams_of,
};
use crate::{
    damage::{Damage, Problem},
    layout::{BlockHead, BlockKind, HeadProblem},
};
use std::sync::Arc;

/// Goes through the files of a recording in their order.
pub struct Inspector<'r> {
    recording: &'r Recording,
    /// Place of the next file.
    at: usize,
    /// The number that it should have.
    next_file: u64,
    /// The number that its first block should have; none when that is not known.
    next_block: Option<u64>,
    /// Whether the end of the file before it names a file behind it.
    goes_on: bool,
    /// Kept, so that a reader of the file need not load it again.
    index: Option<Arc<FileIndex>>,
}

impl<'r> Inspector<'r> {
    /// From the first file, and the files that are missing before it.
    pub fn new(recording: &'r Recording) -> Self {
        Self { recording, at: 0, next_file: 1, next_block: Some(1), goes_on: false, index: None }
    }

    /// From the file at this place. What is missing before it is only reported where it is the first.
    pub fn from(recording: &'r Recording, at: usize) -> Self {
        match recording.files().get(at) {
            Some(file) if at > 0 => {
                Self { at, next_file: file.number, next_block: None, ..Self::new(recording) }
            }
            _ => Self { at, ..Self::new(recording) },
        }
    }

    /// The damages of the next file in their order, those of files missing before it first. Behind the last file those of
    /// files missing there; then none.
    pub fn next_file(&mut self) -> Option<Vec<Damage>> {
        let (recording, at) = (self.recording, self.at);
        self.at += 1;
        let Some(start) = recording.files().get(at) else {
            return (at == recording.files().len()).then(|| self.behind());
        };
        let mut damages: Vec<_> = missing(recording.folder(), self.next_file..start.number).collect();
        self.next_file = start.number.saturating_add(1);
        self.goes_on = false;
        match recording.open_file(at) {
            Ok(file) => {
                let index = recording.index(at, &file);
                self.inspect(&file, &index, recording.is_growing(at), &mut damages);
                self.index = Some(index);
            }
            Err(damage) => damages.push(damage),
        }
        Some(damages)
    }

    /// Files behind the last one: a writer makes the next file before an end names it, and the index after the file.
    fn behind(&self) -> Vec<Damage> {
        let (folder, named) = (self.recording.folder(), self.recording.last_index().saturating_add(1));
        let to = if self.goes_on { named.max(self.next_file.saturating_add(1)) } else { named };
        missing(folder, self.next_file..to).filter(|damage| !is_there(&damage.file)).collect()
    }

    fn inspect(&mut self, file: &DataFile, index: &FileIndex, is_growing: bool, out: &mut Vec<Damage>) {
        let scan = &index.scan;
        let open_at = match scan.end {
            FileEnd::Open { at } => Some(at),
            FileEnd::Ended { goes_on } => {
                self.goes_on = goes_on;
                None
            }
        };
        // A block, and the head of a new file, that are being written are none yet.
        let is_under_way = |damage: &Damage| match damage.problem {
            Problem::FileHead { .. } => scan.blocks.is_empty(),
            _ => open_at.is_some_and(|at| damage.offset >= at),
        };
        let mut damages =
            scan.damages.iter().filter(|damage| !(is_growing && is_under_way(damage))).peekable();
        for head in &scan.blocks {
            while let Some(damage) = damages.next_if(|damage| damage.offset <= head.offset) {
                out.push(damage.clone());
            }
            out.extend(number_damage(file, head, self.next_block));
            self.next_block = Some(head.number + 1);
            if head.kind != BlockKind::Records {
                check_plain(file, head, out);
            }
        }
        out.extend(damages.cloned());
        let is_other = matches!(file.head, Err(HeadProblem::Version { .. }));
        if let Some(at) = open_at.filter(|_| !is_growing && !is_other) {
            out.push(file.damage(at, 0, Problem::Unfinished));
        }
    }
}

/// A block whose number is not the expected one.
pub fn number_damage(file: &DataFile, head: &BlockHead, expected: Option<u64>) -> Option<Damage> {
    let expected = expected.filter(|expected| *expected != head.number)?;
    let problem = Problem::BlocksMissing { from: expected.min(head.number), to: expected.max(head.number) };
    Some(file.damage(head.offset, 0, problem))
}

/// Checks every byte of a block that holds no records.
pub fn check_plain(file: &DataFile, head: &BlockHead, out: &mut impl Extend<Damage>) {
    let (mut block, mut is_whole) = (Block::default(), true);
    let mut add = |damage: Option<Damage>| {
        is_whole &= damage.is_none();
        out.extend(damage);
    };
    add(block.load(file, head));
    while let Some(read) = block.next(file) {
        add(read.err());
    }
    if head.kind == BlockKind::Manifest && is_whole && streams_of(file, head).is_none() {
        out.extend([file.damage(head.offset, 0, Problem::Manifest)]);
    }
}

/// Everything that is missing or damaged in a recording outside of its records, file by file.
pub fn inspect(recording: &Recording) -> impl Iterator<Item = Damage> {
    let mut inspector = Inspector::new(recording);
    std::iter::from_fn(move || inspector.next_file()).flatten()
}

#[cfg(test)]
mod tests;
