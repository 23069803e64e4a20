//! A directory of data files as one recording.

use super::{
    file::{DataFile, open_regular},
    index::FileIndex,
    packed::PackedFile,
    start::start_of,
};
use crate::{
    bytes::wide,
    damage::DamagedPlace,
    layout::{
        self, BlockHead, BlockKind, FILE_HEAD_BYTES, FileHead,
        manifest::{self, StreamEntry},
        start::Start,
    },
    record::FolderLock,
};
use std::{
    collections::{BTreeMap, BinaryHeap},
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};
use thiserror::Error;

/// Maximum number of files of a recording: a petabyte at the default size.
const FILES_MAX: usize = 1 << 20;

/// Reason why a directory cannot be read as a recording.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct OpenError(pub(super) String);

/// The start of a file; empty for one that cannot be opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FileStart {
    pub number: u64,
    /// Its length when the recording was opened; 0 if unknown.
    pub bytes: u64,
    /// Its head; `None` if it is invalid.
    pub head: Option<FileHead>,
    /// The streams in its first block; `None` if that is damaged.
    pub streams: Option<Vec<StreamEntry>>,
}

/// A recording, open for reading. Any number of processes may read it, also while it is being written.
#[derive(Debug)]
pub struct Recording {
    folder: PathBuf,
    number: Option<u64>,
    files: Vec<FileStart>,
    streams: Vec<StreamEntry>,
    indexes: Mutex<Vec<Weak<FileIndex>>>,
    /// Compressed files that readers have open: they share what is decompressed.
    frames: Mutex<BTreeMap<u64, Weak<PackedFile>>>,
    /// The index of the last file, which often has no index file and takes long to scan.
    last: OnceLock<Arc<FileIndex>>,
    /// The largest number of an index file; 0 if there is none.
    pub(super) last_index: u64,
    /// `None` if no file was deleted on purpose.
    pub(super) start: Option<Start>,
    is_live: bool,
    is_read_ahead: bool,
}

impl Recording {
    /// Opens the recording in a directory. Readers report damage later; opening fails only if nothing can be
    /// read at all.
    pub fn open(folder: &Path) -> Result<Self, OpenError> {
        // Before anything is read: without a recorder, a file without an end that is read later will never get
        // one.
        Self::open_as(folder, FolderLock::is_taken(folder))
    }

    /// The same, with a second thread that decompresses what will be read next.
    #[must_use]
    pub fn reading_ahead(self) -> Self {
        Self { is_read_ahead: true, ..self }
    }

    /// Like [`Recording::open`], for a caller that knows whether a recorder is running.
    pub(super) fn open_as(folder: &Path, is_live: bool) -> Result<Self, OpenError> {
        let Listing { data: numbers, last_index } = list(folder).map_err(|source| {
            OpenError(format!(
                "cannot read directory {}: {source}\nhint: name the directory of a recording",
                folder.display()
            ))
        })?;
        let mut recording = Self {
            folder: folder.to_owned(),
            number: None,
            files: Vec::new(),
            streams: Vec::new(),
            indexes: Mutex::default(),
            frames: Mutex::default(),
            last: OnceLock::new(),
            last_index,
            start: None,
            is_live,
            is_read_ahead: false,
        };
        let (mut first_damage, mut is_any_open) = (None, false);
        for number in &numbers {
            match DataFile::open(folder, *number) {
                Ok(file) => {
                    is_any_open = true;
                    recording.number = recording.number.or_else(|| recording_of(&file));
                    let start = recording.start_of(&file);
                    recording.files.push(start);
                }
                Err(damage) => {
                    // It stays in the list, so that readers report why it cannot be read.
                    recording.files.push(FileStart { number: *number, bytes: 0, head: None, streams: None });
                    first_damage.get_or_insert(damage);
                }
            }
        }
        if numbers.is_empty() && last_index == 0 {
            return Err(OpenError(format!(
                "{} holds no recording: found no file such as {}\nhint: name the directory given to the recorder",
                folder.display(),
                layout::data_name(1)
            )));
        }
        if let Some(damage) = first_damage.filter(|_| !is_any_open) {
            return Err(OpenError(format!(
                "cannot read any file of the recording: {damage}\nhint: check their permissions, or restore them from a copy"
            )));
        }
        recording.start = start_of(folder).filter(|start| Some(start.recording) == recording.number);
        // A deletion that was interrupted leaves some.
        let first = recording.first_file();
        recording.files.retain(|file| file.number >= first);
        recording.indexes = Mutex::new(recording.files.iter().map(|_| Weak::new()).collect());
        recording.find_streams();
        Ok(recording)
    }

    fn start_of(&self, file: &DataFile) -> FileStart {
        let head = file.head.clone().ok();
        let first = file.block_at(wide(FILE_HEAD_BYTES), self.number).ok().flatten();
        let streams = first.and_then(|head| streams_of(file, &head));
        FileStart { number: file.number, bytes: file.bytes, head, streams }
    }

    /// Each file starts with the streams at its creation. Later streams are in the next file's list or, without
    /// a next file, among the blocks of the file.
    fn find_streams(&mut self) {
        let mut streams: Vec<StreamEntry> = Vec::new();
        let mut add = |more: &[StreamEntry]| {
            // Numbers never change their meaning, so a longer list only adds streams, and a later one is more
            // complete.
            if more.len() >= streams.len() {
                streams = more.to_vec();
            }
        };
        let mut known = 0;
        for (at, start) in self.files.iter().enumerate() {
            start.streams.iter().for_each(|streams| add(streams));
            if self.files.get(at + 1).is_some_and(|next| next.streams.is_some()) {
                continue;
            }
            let Ok((file, index)) = self.open_indexed(at) else { continue };
            for head in &index.scan.blocks {
                match head.kind {
                    BlockKind::Manifest => streams_of(&file, head).iter().for_each(|more| add(more)),
                    BlockKind::End => {}
                    _ => known = known.max(crate::bytes::narrow(head.stream.into()) + 1),
                }
            }
        }
        // Streams whose names are lost can still be read by number.
        while streams.len() < known.min(layout::STREAMS_MAX) {
            streams.push(StreamEntry {
                name: format!("stream-{}", streams.len()),
                schema: String::new(),
                id: 0,
                next_sequence: manifest::UNKNOWN,
                generated_max: 0,
            });
        }
        self.streams = streams;
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The number shared by all its files; `None` if none is readable.
    pub fn number(&self) -> Option<u64> {
        self.number
    }

    /// Its data files, lowest number first.
    pub fn files(&self) -> &[FileStart] {
        &self.files
    }

    /// Number of its first file that was not deleted on purpose.
    pub(super) fn first_file(&self) -> u64 {
        self.start.as_ref().map_or(1, |start| start.first_file)
    }

    /// The expected number of the first block; `None` if unknown.
    pub(super) fn first_block(&self) -> Option<u64> {
        let first = self.files.first().filter(|file| file.number == self.first_file());
        if self.start.is_some() { first?.head.map(|head| head.first_block) } else { Some(1) }
    }

    /// Its streams; a stream's number is its index.
    pub fn streams(&self) -> &[StreamEntry] {
        &self.streams
    }

    /// Number of a stream by name.
    pub fn stream(&self, name: &str) -> Result<u32, OpenError> {
        let at = self.streams.iter().position(|stream| stream.name == name);
        at.and_then(|at| u32::try_from(at).ok()).ok_or_else(|| {
            let known: Vec<_> = self.streams.iter().map(|stream| stream.name.as_str()).collect();
            OpenError(format!("no stream {name:?} in the recording; its streams: {}", known.join(", ")))
        })
    }

    /// The numbers of the streams that match any of the patterns ([`fits`]), lowest first. A pattern without a
    /// match is an error, which lists the existing streams.
    pub fn choose(&self, patterns: &[impl AsRef<str>]) -> Result<Vec<u32>, OpenError> {
        let names = || self.streams().iter().map(|stream| stream.name.as_str());
        for pattern in patterns.iter().map(AsRef::as_ref) {
            if !names().any(|name| fits(pattern, name)) {
                self.stream(pattern)?;
            }
        }
        let is_chosen = |name| patterns.iter().any(|pattern| fits(pattern.as_ref(), name));
        Ok((0..).zip(names()).filter(|(_, name)| is_chosen(name)).map(|(number, _)| number).collect())
    }

    /// Returns true if it was being recorded when it was opened.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Returns true if the file at this index may lack an end: the last one, and the one before it while the last one
    /// has no block, because recorders create the next file first.
    pub(super) fn is_growing(&self, at: usize) -> bool {
        let is_last = match self.files.get(at + 1..).unwrap_or_default() {
            [] => true,
            [next] => next.streams.is_none(),
            _ => false,
        };
        self.is_live && is_last
    }

    /// CLOCK_MONOTONIC and CLOCK_REALTIME of one moment, ns; `None` if no head of a file has both.
    pub fn moment_ns(&self) -> Option<(u64, u64)> {
        let head = self.files.iter().find_map(|file| file.head.filter(|head| head.realtime_ns > 0))?;
        Some((head.monotonic_ns, head.realtime_ns))
    }

    /// Offset from generation time to time of day, ns; `None` if no head of a file has both. Only valid for
    /// streams that use CLOCK_MONOTONIC, which a recording does not know.
    pub fn realtime_offset_ns(&self) -> Option<i128> {
        let (monotonic_ns, realtime_ns) = self.moment_ns()?;
        Some(i128::from(realtime_ns) - i128::from(monotonic_ns))
    }

    /// Names of instruments 0, 1, ...; empty if the recording has none.
    pub fn symbols(&self) -> Vec<String> {
        let read = || {
            let (file, metadata) = open_regular(&self.folder.join(layout::SYMBOLS_NAME)).ok()?;
            let mut text = String::new();
            (metadata.len() <= layout::SYMBOLS_BYTES_MAX).then_some(())?;
            file.take(layout::SYMBOLS_BYTES_MAX).read_to_string(&mut text).ok()?;
            Some(text)
        };
        let text = read().filter(|text| !text.contains(|found: char| found.is_control() && found != '\n'));
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Opens one of its files, by its index in [`Recording::files`].
    pub fn open_file(&self, at: usize) -> Result<DataFile, DamagedPlace> {
        let number = self.files.get(at).map_or(0, |file| file.number);
        let mut file = DataFile::open_of(&self.folder, number, self.number)?;
        // A panic of another reader leaves the list consistent.
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        file.share(frames.entry(number).or_default());
        if self.is_read_ahead {
            file.read_ahead();
        }
        Ok(file)
    }

    /// One of its files and its index.
    pub(super) fn open_indexed(&self, at: usize) -> Result<(DataFile, Arc<FileIndex>), DamagedPlace> {
        let file = self.open_file(at)?;
        let index = self.index(at, &file);
        Ok((file, index))
    }

    /// The index of one of its files. Readers of several streams share it.
    pub fn index(&self, at: usize, file: &DataFile) -> Arc<FileIndex> {
        // A panic of another reader leaves the list consistent.
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = indexes.get(at).and_then(Weak::upgrade) {
            return index;
        }
        let index = Arc::new(FileIndex::load(file, self.number, self.is_growing(at)));
        if let Some(place) = indexes.get_mut(at) {
            *place = Arc::downgrade(&index);
        }
        if at + 1 == self.files.len() {
            self.last.get_or_init(|| Arc::clone(&index));
        }
        index
    }

    /// The index of the last file at whose start the streams had not advanced past `is_before`.
    pub(crate) fn find_file(&self, stream: u32, is_before: impl Fn(&StreamEntry) -> bool) -> usize {
        let stream = crate::bytes::narrow(stream.into());
        // A file with a damaged first block might contain it: that only makes the search longer.
        let is_before = |file: &FileStart| file.streams.as_ref()?.get(stream).map(&is_before);
        let earlier = self.files.iter().take_while(|file| is_before(file) != Some(false));
        earlier.enumerate().filter(|(_, file)| is_before(file) == Some(true)).last().map_or(0, |(at, _)| at)
    }
}

/// Returns true if a pattern matches the name of a stream: the name itself, or a prefix and a star (`orders.*`).
pub fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |begin| name.starts_with(begin))
}

/// The files of a recording, by name.
#[non_exhaustive]
pub struct Listing {
    /// Numbers of the data files, lowest first.
    pub data: Vec<u64>,
    /// The largest number of an index file; 0 if there is none.
    pub last_index: u64,
}

/// Lists the files of a recording.
pub fn list(folder: &Path) -> io::Result<Listing> {
    let (mut data, mut last_index) = (Vec::new(), 0);
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        data.extend(layout::number_of(name));
        last_index = last_index.max(layout::index_number_of(name).unwrap_or(0));
        if data.len() > FILES_MAX {
            return Err(io::Error::other(format!("found more than {FILES_MAX} data files")));
        }
    }
    // In order. A heap's code is a tenth of a sort's.
    let mut data = BinaryHeap::from(data).into_sorted_vec();
    // A file is there in both forms while one replaces the other.
    data.dedup();
    Ok(Listing { data, last_index })
}

/// The recording that a file belongs to, from its head or else its first readable block.
fn recording_of(file: &DataFile) -> Option<u64> {
    if let Ok(head) = &file.head {
        return Some(head.recording);
    }
    let found = file.find_block(wide(FILE_HEAD_BYTES), None).ok()?;
    found.head.map(|head| head.recording)
}

/// The streams of a manifest.
pub fn streams_of(file: &DataFile, head: &BlockHead) -> Option<Vec<StreamEntry>> {
    if head.kind != BlockKind::Manifest || usize::try_from(head.body_bytes).ok()? > manifest::BYTES_MAX {
        return None;
    }
    let mut block = super::Block::default();
    block.load(file, head);
    let streams = manifest::decode(block.body())?;
    (crc32c::crc32c(block.body()) == head.body_crc).then_some(streams)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Maker, options};

    #[test]
    fn a_star_matches_any_suffix() {
        assert!(fits("orders.*", "orders.a") && fits("*", "md") && fits("md", "md"));
        assert!(!fits("orders.*", "md") && !fits("md", "md2"));
    }

    #[test]
    fn streams_are_selected_once_in_order_and_a_pattern_without_a_match_is_an_error() {
        let folder = tempfile::TempDir::new().unwrap();
        Maker::new(folder.path(), options(), &["md", "orders.a", "orders.b"]).files.finish().unwrap();
        let recording = Recording::open(folder.path()).unwrap();
        let chosen = |patterns: &[&str]| recording.choose(patterns);
        assert_eq!(chosen(&["orders.*", "orders.b", "md"]).unwrap(), [0, 1, 2]);
        assert_eq!(chosen(&["orders.b"]).unwrap(), [2]);
        assert_eq!(chosen(&[]).unwrap(), [0; 0]);
        let told = chosen(&["md", "quotes.*"]).unwrap_err().to_string();
        assert_eq!(told, "no stream \"quotes.*\" in the recording; its streams: md, orders.a, orders.b");
    }
}
