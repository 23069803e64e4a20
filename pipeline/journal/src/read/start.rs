//! Recordings whose oldest files were deleted.

use super::{
    Gap, Recording,
    file::{DataFile, open_regular},
    index::FileIndex,
    recording::{list, streams_of},
};
use crate::{
    bytes::narrow,
    layout::{
        self, BlockHead, BlockKind, GapReason,
        manifest::UNKNOWN,
        start::{BYTES_MAX, NAME, Start},
    },
    record::Storage,
};
use std::{
    fs,
    io::{self, Read},
    path::Path,
};

/// Reads the start in a directory; `None` if nothing was deleted, or it is unreadable.
pub fn start_of(folder: &Path) -> Option<Start> {
    let (file, _) = open_regular(&folder.join(NAME)).ok()?;
    let mut bytes = Vec::new();
    file.take(crate::bytes::wide(BYTES_MAX)).read_to_end(&mut bytes).ok()?;
    Start::decode(&mut bytes)
}

impl Recording {
    /// The records of a stream that were deleted with the oldest files.
    pub fn deleted(&self, stream: u32) -> Option<Gap> {
        let at = narrow(stream.into());
        let from = self.start.as_ref()?.streams.get(at)?.next()?;
        let to = self.files().first()?.streams.as_ref()?.get(at)?.next()?;
        let reason = Some(GapReason::Deleted);
        (from < to).then_some(Gap { stream, from, to, reason })
    }

    /// Returns true if the file with this number was deleted as one of the oldest, also since the recording was opened.
    pub(super) fn is_deleted(&self, file: u64) -> bool {
        start_of(self.folder()).is_some_and(|start| file < start.first_file)
    }
}

/// Deletes the data files before `first_file`, if any, after writing down where the recording starts then.
pub(crate) fn delete_before(
    folder: &Path,
    recording: u64,
    first_file: u64,
    storage: &impl Storage,
) -> io::Result<()> {
    let known = start_of(folder).filter(|start| start.recording == recording);
    let mut start = known.unwrap_or(Start { recording, first_file: 1, streams: Vec::new() });
    let numbers: Vec<u64> =
        list(folder)?.data.into_iter().take_while(|number| *number < first_file).collect();
    if numbers.is_empty() {
        return Ok(());
    }
    let deleted_before = start.first_file;
    for number in numbers.iter().filter(|number| **number >= deleted_before) {
        // Of an unreadable file nothing is known anyway.
        let Ok(file) = DataFile::open_of(folder, *number, Some(recording)) else { continue };
        let index = FileIndex::load(&file, Some(recording), false);
        index.scan.blocks.iter().for_each(|head| start.note(&file, head));
    }
    start.first_file = start.first_file.max(first_file);
    storage.write_whole(&folder.join(NAME), &start.encode())?;
    storage.sync_folder(folder)?;
    for number in numbers {
        for name in [layout::data_name, layout::packed_name, layout::index_name].map(|name| name(number)) {
            match fs::remove_file(folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

impl Start {
    /// Notes the first records of streams in a block that is to be deleted.
    fn note(&mut self, file: &DataFile, head: &BlockHead) {
        match head.kind {
            BlockKind::Manifest => {
                let more = streams_of(file, head).unwrap_or_default();
                self.streams.extend(more.into_iter().skip(self.streams.len()));
            }
            BlockKind::Records | BlockKind::Gap => {
                let stream = self.streams.get_mut(narrow(head.stream.into()));
                if let Some(stream) = stream.filter(|stream| stream.next_sequence == UNKNOWN) {
                    stream.next_sequence = head.first_sequence;
                }
            }
            BlockKind::End => {}
        }
    }
}
