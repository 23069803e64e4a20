//! Facts about a file, known without reading its records.

use super::{
    OpenError, Recording,
    file::{DataFile, FileEnd, Scan, behind_end, open_regular, scan},
};
use crate::{
    bytes::wide,
    layout::{self, BlockHead, BlockKind, FILE_HEAD_BYTES, FileHead, index},
    record::{CachedDisk, Storage},
};
use std::io::{self, Read};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexOrigin {
    /// Read from the index file.
    Stored,
    /// The data file was scanned, because there is no index file.
    Missing,
    /// The data file was scanned, because the index file is unusable.
    Rebuilt(String),
}

/// The blocks of a file.
#[derive(Debug)]
pub struct FileIndex {
    /// Its blocks, damage and end.
    pub scan: Scan,
    pub origin: IndexOrigin,
    /// For each stream, in order, the places of its records and gaps in the list of blocks.
    by_stream: Vec<(u32, Vec<Place>)>,
}

/// One block of a stream.
#[derive(Debug, Clone, Copy)]
struct Place {
    block: usize,
    /// The latest generation time up to and including this block: it never decreases, so it can be searched.
    generated_max: u64,
}

impl FileIndex {
    /// From the index file, or by scanning the data file if the index is missing, damaged or outdated.
    pub fn load(file: &DataFile, recording: Option<u64>, is_growing: bool) -> Self {
        let (scan, origin) = match (&file.head, recording) {
            (Ok(head), Some(recording)) if head.recording == recording => match stored(file, head) {
                Ok(Some(scan)) => (scan, IndexOrigin::Stored),
                Ok(None) => (scan(file, Some(recording), is_growing), IndexOrigin::Missing),
                Err(problem) => (scan(file, Some(recording), is_growing), IndexOrigin::Rebuilt(problem)),
            },
            _ => (scan(file, recording, is_growing), IndexOrigin::Missing),
        };
        Self::of(scan, origin)
    }

    fn of(scan: Scan, origin: IndexOrigin) -> Self {
        // A tree's code for insertion has 3 kB, in programs too that only read.
        let mut by_stream: Vec<(u32, Vec<Place>)> = Vec::new();
        for (block, head) in scan.blocks.iter().enumerate() {
            if matches!(head.kind, BlockKind::Records | BlockKind::Gap) {
                let found = by_stream.binary_search_by_key(&head.stream, |(stream, _)| *stream);
                let at = found.unwrap_or_else(|at| {
                    by_stream.insert(at, (head.stream, Vec::new()));
                    at
                });
                let Some((_, places)) = by_stream.get_mut(at) else { continue };
                let before = places.last().map_or(0, |last| last.generated_max);
                let generated_max = before.max(head.generated_max);
                places.push(Place { block, generated_max });
            }
        }
        Self { scan, origin, by_stream }
    }

    fn places_of(&self, stream: u32) -> &[Place] {
        let found = self.by_stream.binary_search_by_key(&stream, |(stream, _)| *stream);
        found.ok().and_then(|at| self.by_stream.get(at)).map_or(&[], |(_, places)| places)
    }

    /// The blocks of a stream, starting with its `nth`.
    pub fn block_of(&self, stream: u32, nth: usize) -> Option<&BlockHead> {
        self.scan.blocks.get(self.places_of(stream).get(nth)?.block)
    }

    /// Number of blocks of a stream.
    pub fn blocks_of(&self, stream: u32) -> usize {
        self.places_of(stream).len()
    }

    /// The first of a stream's blocks with a record of this time or a later one.
    pub fn find_time(&self, stream: u32, generated: u64) -> usize {
        self.places_of(stream).partition_point(|place| place.generated_max < generated)
    }

    /// The bytes of an index file; `None` for a file without an end, which may still grow.
    pub fn encode(&self, file: &DataFile, recording: u64) -> Option<Vec<u8>> {
        let is_whole = matches!(self.scan.end, FileEnd::Ended { .. }) && self.scan.damages.is_empty();
        let heads: Vec<u8> = self.scan.blocks.iter().flat_map(BlockHead::encode).collect();
        is_whole.then(|| index::encode(recording, file.number, file.bytes, &heads))
    }
}

fn stored(file: &DataFile, head: &FileHead) -> Result<Option<Scan>, String> {
    let path = file.path.with_file_name(layout::index_name(file.number));
    let unreadable = |error: io::Error| format!("it cannot be read: {}", error.kind());
    let stored = match open_regular(&path) {
        Ok((stored, _)) => stored,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    stored.take(index::BYTES_MAX).read_to_end(&mut bytes).map_err(unreadable)?;
    let blocks = index::decode(&mut bytes, head.recording, file.number, file.bytes)?;
    let Some(end) = end_of(&blocks) else { return Err(index::OTHER.to_owned()) };
    let behind = end.offset + end.bytes();
    let damages = behind_end(file, behind, Some(head.recording)).into_iter().collect();
    Ok(Some(Scan { end: FileEnd::Ended { goes_on: end.goes_on() }, blocks, damages }))
}

/// The end block, if the blocks cover the file from its head to its end without gaps. An index that omits a
/// block would hide its records.
fn end_of(blocks: &[BlockHead]) -> Option<BlockHead> {
    let mut at = wide(FILE_HEAD_BYTES);
    for head in blocks {
        if head.offset != at {
            return None;
        }
        at = at.saturating_add(head.bytes());
    }
    blocks.last().copied().filter(|last| last.kind == BlockKind::End)
}

/// Writes index files that are missing or unusable, and returns their number. Files without an end, and damaged
/// ones, get none: they are scanned.
pub fn write_missing_indexes(recording: &Recording) -> Result<u64, OpenError> {
    let mut written = 0;
    for at in 0..recording.files().len() {
        let Ok((file, index)) = recording.open_indexed(at) else { continue };
        let number = recording.number().filter(|_| index.origin != IndexOrigin::Stored);
        let Some(bytes) = number.and_then(|number| index.encode(&file, number)) else { continue };
        let path = recording.folder().join(layout::index_name(file.number));
        CachedDisk.write_whole(&path, &bytes).map_err(|source| {
            OpenError(format!(
                "cannot write index {}: {source}; reads work without it, but take longer",
                path.display()
            ))
        })?;
        written += 1;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        read::recording::list,
        testing::{Maker, options},
    };
    use std::{
        fs,
        path::{Path, PathBuf},
    };
    use tempfile::TempDir;

    /// At least four data files; the last one has no end unless the writer finishes.
    fn make(folder: &Path, is_finished: bool) {
        let mut maker = Maker::new(folder, options(), &["one"]);
        for block in 0..120 {
            maker.records(0, 20 * block..20 * block + 20);
        }
        if is_finished {
            maker.files.finish().unwrap();
        }
    }

    fn indexes(folder: &Path) -> Vec<PathBuf> {
        let numbers = list(folder).unwrap().data;
        numbers.into_iter().map(|number| folder.join(layout::index_name(number))).collect()
    }

    fn write(folder: &Path) -> Result<u64, OpenError> {
        write_missing_indexes(&Recording::open(folder).unwrap())
    }

    #[test]
    fn missing_or_damaged_indexes_are_regenerated_unchanged() {
        let folder = TempDir::new().unwrap();
        make(folder.path(), true);
        let paths = indexes(folder.path());
        assert!(paths.len() > 2);
        let before: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(write(folder.path()).unwrap(), 0, "none is missing");
        fs::remove_file(&paths[0]).unwrap();
        fs::write(&paths[1], &before[1][..before[1].len() - 1]).unwrap();
        // Intact, but of another file.
        fs::write(&paths[2], &before[0]).unwrap();
        assert_eq!(write(folder.path()).unwrap(), 3);
        let after: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        assert_eq!(after, before);
        assert_eq!(write(folder.path()).unwrap(), 0);
    }

    #[test]
    fn files_without_an_end_and_damaged_ones_get_no_index() {
        let folder = TempDir::new().unwrap();
        make(folder.path(), false);
        let paths = indexes(folder.path());
        let (last, ended) = paths.split_last().unwrap();
        assert!(!last.exists());
        for path in ended {
            fs::remove_file(path).unwrap();
        }
        let damaged = folder.path().join(layout::data_name(1));
        let mut bytes = fs::read(&damaged).unwrap();
        // The magic of its second block, without which it is not a block.
        let second = bytes.windows(8).enumerate().filter(|(_, bytes)| *bytes == layout::BLOCK_MAGIC).nth(1);
        let at = second.unwrap().0;
        bytes[at] ^= 1;
        fs::write(&damaged, &bytes).unwrap();
        assert_eq!(write(folder.path()).unwrap(), ended.len() as u64 - 1);
        assert!(!last.exists() && !paths[0].exists() && paths[1].exists());
    }

    #[test]
    fn an_index_that_cannot_be_written_is_reported() {
        let folder = TempDir::new().unwrap();
        make(folder.path(), true);
        let path = indexes(folder.path()).remove(0);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        fs::write(path.join("x"), b"").unwrap();
        let told = write(folder.path()).unwrap_err().to_string();
        assert!(
            told.contains(&path.display().to_string()) && told.contains("reads work without it"),
            "{told}"
        );
        let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(
            left.into_iter().all(|name| !name.to_string_lossy().ends_with("tmp")),
            "no part of it is left"
        );
    }
}
