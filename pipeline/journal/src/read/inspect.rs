//! Missing or damaged parts of a recording, other than records. Every reader reports what is found here, so
//! that verify, ls, export, replay, tail and diff agree.
//!
//! A recording is complete if
//!
//! * its files are numbered from 1, or the first one not deleted on purpose, without a gap, up to the last one that an end or an index refers to;
//! * each file is a regular file of this recording, with a valid head, and ends with an end block. The last
//!   file has none while the recording is being written;
//! * its blocks are numbered from 1 without a gap, over all files, and nothing else is between them;
//! * lists of streams, gaps and ends are intact.
//!
//! Readers check the records: each has a checksum, and the sequence after that of the previous record.

use super::{
    Block, Recording,
    file::{DataFile, FileEnd, is_stored, missing},
    index::FileIndex,
    recording::streams_of,
};
use crate::{
    damage::{DamagedPlace, Problem},
    layout::{BlockHead, BlockKind, HeadProblem},
};
use std::sync::Arc;

/// Inspects the files of a recording in order.
pub struct Inspector<'r> {
    recording: &'r Recording,
    /// Index of the next file.
    at: usize,
    /// The expected number of the next file.
    next_file: u64,
    /// The expected number of its first block; `None` if unknown.
    next_block: Option<u64>,
    /// The end of the previous file announces another file.
    goes_on: bool,
    /// Kept, so that readers of the file need not load it again.
    index: Option<Arc<FileIndex>>,
}

impl<'r> Inspector<'r> {
    /// From the first file, including files missing before it.
    pub fn new(recording: &'r Recording) -> Self {
        let (next_file, next_block) = (recording.first_file(), recording.first_block());
        Self { recording, at: 0, next_file, next_block, goes_on: false, index: None }
    }

    /// From the file at this index. Files missing before it are reported only if it is the first.
    pub fn from(recording: &'r Recording, at: usize) -> Self {
        match recording.files().get(at) {
            Some(file) if at > 0 => {
                Self { at, next_file: file.number, next_block: None, ..Self::new(recording) }
            }
            _ => Self { at, ..Self::new(recording) },
        }
    }

    /// Damage of the next file in order, after that of files missing before it. After the last file, that of
    /// files missing there; then `None`.
    pub fn next_file(&mut self) -> Option<Vec<DamagedPlace>> {
        let (recording, at) = (self.recording, self.at);
        self.at += 1;
        let Some(start) = recording.files().get(at) else {
            return (at == recording.files().len()).then(|| self.behind());
        };
        let mut damages: Vec<_> = missing(recording.folder(), self.next_file..start.number).collect();
        self.next_file = start.number.saturating_add(1);
        self.goes_on = false;
        match recording.open_indexed(at) {
            Ok((file, index)) => {
                self.inspect(&file, &index, recording.is_growing(at), &mut damages);
                self.index = Some(index);
            }
            Err(_) if recording.is_deleted(start.number) => self.next_block = None,
            Err(damage) => damages.push(damage),
        }
        Some(damages)
    }

    /// Files missing after the last one: a writer creates the next file before an end announces it, and the
    /// index after the file.
    fn behind(&self) -> Vec<DamagedPlace> {
        let (folder, named) = (self.recording.folder(), self.recording.last_index.saturating_add(1));
        let to = if self.goes_on { named.max(self.next_file.saturating_add(1)) } else { named };
        let is_missing = |number: &u64| !is_stored(folder, *number);
        (self.next_file..to)
            .filter(is_missing)
            .flat_map(|number| missing(folder, number..number + 1))
            .collect()
    }

    fn inspect(&mut self, file: &DataFile, index: &FileIndex, is_growing: bool, out: &mut Vec<DamagedPlace>) {
        let scan = &index.scan;
        let open_at = match scan.end {
            FileEnd::Open { at } => Some(at),
            FileEnd::Ended { goes_on } => {
                self.goes_on = goes_on;
                None
            }
        };
        // A block, or the head of a new file, that is being written does not count yet.
        let is_under_way = |damage: &DamagedPlace| match damage.problem {
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

/// A block with an unexpected number.
pub fn number_damage(file: &DataFile, head: &BlockHead, expected: Option<u64>) -> Option<DamagedPlace> {
    let expected = expected.filter(|expected| *expected != head.number)?;
    let problem = Problem::BlocksMissing { from: expected.min(head.number), to: expected.max(head.number) };
    Some(file.damage(head.offset, 0, problem))
}

/// Checks every byte of a block without records.
pub fn check_plain(file: &DataFile, head: &BlockHead, out: &mut impl Extend<DamagedPlace>) {
    let (mut block, mut is_whole) = (Block::default(), true);
    let mut add = |damage: Option<DamagedPlace>| {
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

/// All missing or damaged parts of a recording other than records, file by file.
pub fn inspect(recording: &Recording) -> impl Iterator<Item = DamagedPlace> {
    let mut inspector = Inspector::new(recording);
    std::iter::from_fn(move || inspector.next_file()).flatten()
}

#[cfg(test)]
mod tests;
