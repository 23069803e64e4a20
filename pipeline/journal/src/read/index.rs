//! Facts about a file, known without reading its records.

use super::file::{DataFile, FileEnd, Scan, behind_end, open_regular, scan};
use crate::{
    bytes::wide,
    layout::{
        self, BlockHead, BlockKind, FILE_HEAD_BYTES, FileHead,
        index::{self, IndexProblem},
    },
};
use std::{
    collections::BTreeMap,
    io::{self, Read},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexOrigin {
    /// Read from the index file.
    Stored,
    /// The data file was scanned, because there is no index file.
    Missing,
    /// The data file was scanned, because the index file is unusable.
    Rebuilt(IndexProblem),
}

/// The blocks of a file.
#[derive(Debug)]
pub struct FileIndex {
    /// Its blocks, damage and end.
    pub scan: Scan,
    pub origin: IndexOrigin,
    /// For each stream, the places of its records and gaps in the list of blocks.
    by_stream: BTreeMap<u32, Vec<Place>>,
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
        let mut by_stream: BTreeMap<u32, Vec<Place>> = BTreeMap::new();
        for (block, head) in scan.blocks.iter().enumerate() {
            if matches!(head.kind, BlockKind::Records | BlockKind::Gap) {
                let places = by_stream.entry(head.stream).or_default();
                let before = places.last().map_or(0, |last| last.generated_max);
                let generated_max = before.max(head.generated_max);
                places.push(Place { block, generated_max });
            }
        }
        Self { scan, origin, by_stream }
    }

    /// The blocks of a stream, starting with its `nth`.
    pub fn block_of(&self, stream: u32, nth: usize) -> Option<&BlockHead> {
        let place = self.by_stream.get(&stream)?.get(nth)?;
        self.scan.blocks.get(place.block)
    }

    /// Number of blocks of a stream.
    pub fn blocks_of(&self, stream: u32) -> usize {
        self.by_stream.get(&stream).map_or(0, Vec::len)
    }

    /// The first of a stream's blocks with a record of this time or a later one.
    pub fn find_time(&self, stream: u32, generated: u64) -> usize {
        self.by_stream
            .get(&stream)
            .map_or(0, |places| places.partition_point(|place| place.generated_max < generated))
    }

    /// The bytes of an index file; `None` for a file without an end, which may still grow.
    pub fn encode(&self, file: &DataFile, recording: u64) -> Option<Vec<u8>> {
        let is_whole = matches!(self.scan.end, FileEnd::Ended { .. }) && self.scan.damages.is_empty();
        let heads: Vec<u8> = self.scan.blocks.iter().flat_map(BlockHead::encode).collect();
        is_whole.then(|| index::encode(recording, file.number, file.bytes, &heads))
    }
}

fn stored(file: &DataFile, head: &FileHead) -> Result<Option<Scan>, IndexProblem> {
    let path = file.path.with_file_name(layout::index_name(file.number));
    let unreadable = |error: io::Error| IndexProblem::Unreadable { kind: error.kind() };
    let stored = match open_regular(&path) {
        Ok((stored, _)) => stored,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let mut bytes = Vec::new();
    stored.take(index::BYTES_MAX).read_to_end(&mut bytes).map_err(unreadable)?;
    let blocks = index::decode(&mut bytes, head.recording, file.number, file.bytes)?;
    let Some(end) = end_of(&blocks) else { return Err(IndexProblem::Other) };
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
