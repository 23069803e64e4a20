//! Writes the files of a recording: whole blocks, one after the other, by a single writer.

use super::{
    BlockBuffer, Keep, Options, RecordError, Storage, StoredFile, SyncPolicy, compress::Compressor,
    identity::Identity,
};
use crate::{
    bytes::wide,
    layout::{
        self, BLOCK_HEAD_BYTES, BlockHead, BlockKind, FILE_HEAD_BYTES, FileHead, block_bytes,
        manifest::{self, StreamEntry},
    },
    read::{self, file::DataFile},
};
use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Bytes of an end block, for which space must always remain.
const END_BYTES: u64 = BLOCK_HEAD_BYTES as u64;

/// Largest number of block bytes per sync.
const SHARED_SYNC_BYTES: u64 = 4 << 20;

/// Place where a recording continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Number of the next file.
    pub file: u64,
    /// Number of the next block.
    pub block: u64,
    /// The streams recorded so far.
    pub streams: Vec<StreamEntry>,
}

impl Place {
    /// The start of a new recording.
    pub fn start() -> Self {
        Self { file: 1, block: 1, streams: Vec::new() }
    }
}

/// Totals of what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    pub records: u64,
    /// Number of blocks of all kinds.
    pub blocks: u64,
    pub files: u64,
    /// Bytes, including heads.
    pub bytes: u64,
}

struct OpenFile<F> {
    out: F,
    /// Time of its creation, ns since 1970.
    realtime_ns: u64,
    path: PathBuf,
    offset: u64,
    /// The heads of its blocks, for the index.
    heads: Vec<u8>,
    is_dirty: bool,
}

impl<F: StoredFile> OpenFile<F> {
    /// Returns true if it has more than its list of streams.
    fn has_records(&self) -> bool {
        self.heads.len() > BLOCK_HEAD_BYTES
    }

    /// End of the last block that the system has completely.
    fn whole_to(&self) -> u64 {
        let Some(written) = self.out.written_to() else { return self.offset };
        let heads = self.heads.rchunks_exact(BLOCK_HEAD_BYTES).filter_map(BlockHead::decode);
        let mut ends = heads.map(|head| head.offset + head.bytes());
        ends.find(|end| *end <= written).unwrap_or(wide(FILE_HEAD_BYTES))
    }
}

/// Writes the blocks of a recording.
pub struct Files<S: Storage> {
    storage: S,
    folder: PathBuf,
    identity: Identity,
    options: Options,
    open: Option<OpenFile<S::File>>,
    place: Place,
    compressor: Option<Compressor>,
    synced: Instant,
    /// Bytes written at that time.
    synced_bytes: u64,
    written: Written,
}

impl<S: Storage> Files<S> {
    /// The writer of a recording, starting at this place. Creates the first file at once, so that an unwritable
    /// directory is reported before anything is published.
    pub fn new(
        storage: S,
        folder: &Path,
        identity: Identity,
        options: Options,
        place: Place,
    ) -> Result<Self, RecordError> {
        let mut files = Self {
            storage,
            folder: folder.to_owned(),
            identity,
            options,
            open: None,
            place,
            compressor: None,
            synced: Instant::now(),
            synced_bytes: 0,
            written: Written::default(),
        };
        let first = files.create(files.place.file, files.place.block)?;
        files.begin_file(first)?;
        Ok(files)
    }

    /// Compresses files once they have ended, if the options say so, and those before the first.
    pub fn compress(&mut self) -> Result<(), RecordError> {
        if self.options.is_compressed {
            let compressor = self.compressor.insert(Compressor::start(&self.folder)?);
            compressor.take(self.place.file);
        }
        Ok(())
    }

    /// Totals of what was written so far.
    pub fn written(&self) -> Written {
        self.written
    }

    pub fn add_stream(&mut self, entry: StreamEntry) -> Result<(), RecordError> {
        self.place.streams.push(entry);
        self.write_manifest()
    }

    /// Writes a block of records.
    pub fn append(&mut self, buffer: &mut BlockBuffer) -> Result<(), RecordError> {
        let head = buffer.finished_head();
        self.make_room(head.body_bytes)?;
        let head = self.placed(head);
        self.write_block(&head, buffer.seal(&head))?;
        self.note(&head);
        Ok(())
    }

    /// Writes a gap; `head` contains its stream, epoch, sequences and reason.
    pub fn append_gap(&mut self, head: &BlockHead) -> Result<(), RecordError> {
        let stream = usize::try_from(head.stream).ok().and_then(|at| self.place.streams.get(at));
        let generated = stream.map_or(0, |stream| stream.generated_max);
        let head =
            BlockHead { kind: BlockKind::Gap, generated_min: generated, generated_max: generated, ..*head };
        self.append_plain(head, &[])?;
        self.note(&head);
        Ok(())
    }

    /// Flushes buffered data, and syncs if the policy requires it. To be called when no more jobs are pending.
    pub fn settle(&mut self) -> Result<(), RecordError> {
        self.flush()?;
        self.sync_if_due(true)
    }

    /// Syncs if the policy requires it. `is_last`: no more jobs are pending; while jobs are pending, blocks
    /// that are synced individually share a sync.
    pub fn sync_if_due(&mut self, is_last: bool) -> Result<(), RecordError> {
        let is_due = match self.options.sync {
            SyncPolicy::None => false,
            SyncPolicy::Each => is_last || self.written.bytes - self.synced_bytes >= SHARED_SYNC_BYTES,
            SyncPolicy::Interval(interval) => self.synced.elapsed() >= interval,
        };
        if is_due { self.sync() } else { Ok(()) }
    }

    /// Ends the recording: the end block, the true length, the index.
    pub fn finish(mut self) -> Result<Written, RecordError> {
        // The last sequences, so that a loss at the end is detected.
        self.write_manifest()?;
        self.end_file(0)?;
        self.compressor.take().map_or(Ok(()), Compressor::stop)?;
        Ok(self.written)
    }

    /// Leaves the recording without an end, which readers report: its recorder failed.
    pub fn cut_short(&mut self) {
        // If this fails, the buffered records are lost; readers report the missing end anyway.
        self.flush().ok();
        self.close();
    }

    fn note(&mut self, head: &BlockHead) {
        self.written.records += u64::from(head.records);
        let stream = usize::try_from(head.stream).ok().and_then(|at| self.place.streams.get_mut(at));
        if let Some(stream) = stream {
            stream.next_sequence = head.last_sequence + 1;
            stream.generated_max = stream.generated_max.max(head.generated_max);
        }
    }

    /// Moves to the next file if a block does not fit into this one. A block that fits into none gets a new
    /// file.
    fn make_room(&mut self, body_bytes: u32) -> Result<(), RecordError> {
        let needed = block_bytes(body_bytes) + END_BYTES;
        let Some(open) = &self.open else { return Err(RecordError::ended(&self.folder)) };
        if !open.has_records() || open.offset + needed <= self.options.file_bytes_max {
            return Ok(());
        }
        self.next_file()
    }

    /// Moves to the next file if the present one has records and the next interval has begun.
    pub fn roll_if_due(&mut self) -> Result<(), RecordError> {
        let (Some(roll), Some(open)) = (self.options.roll, &self.open) else { return Ok(()) };
        let interval = |ns: u64| u128::from(ns) / roll.as_nanos().max(1);
        let (_, now_ns) = self.identity.clock.now_ns();
        let is_due = open.has_records() && interval(now_ns) != interval(open.realtime_ns);
        if is_due { self.next_file() } else { Ok(()) }
    }

    fn next_file(&mut self) -> Result<(), RecordError> {
        // The next file is created before this one ends, so that an end never announces a missing file.
        let (file, block) = (self.place.file + 1, self.place.block + 1);
        match self.delete_old().and_then(|()| self.create(file, block)) {
            Ok(next) => {
                self.end_file(layout::END_GOES_ON)?;
                if let Some(compressor) = &self.compressor {
                    compressor.take(self.place.file);
                }
                self.begin_file(next)
            }
            Err(error) => {
                self.cut_short();
                Err(error)
            }
        }
    }

    /// Deletes the oldest files that are too old, or too large with all later ones and the next.
    fn delete_old(&mut self) -> Result<(), RecordError> {
        let Keep { age_max, bytes_max } = self.options.keep;
        if age_max.is_none() && bytes_max.is_none() {
            return Ok(());
        }
        let refused = |doing| RecordError::refused(&self.folder, doing);
        let numbers = read::list(&self.folder).map_err(refused("read directory"))?.data;
        let (_, now_ns) = self.identity.clock.now_ns();
        let head = |number| DataFile::open(&self.folder, number).ok().and_then(|file| file.head.ok());
        let age = |ended: FileHead| Duration::from_nanos(now_ns.saturating_sub(ended.realtime_ns));
        let mut bytes = self.options.file_bytes_max;
        let mut first = self.place.file;
        // From the newest one back. A file ends when the next one is created.
        for number in numbers.into_iter().rev() {
            let forms = [layout::data_name(number), layout::packed_name(number)];
            let stored = forms.iter().filter_map(|name| std::fs::metadata(self.folder.join(name)).ok());
            bytes += stored.map(|metadata| metadata.len()).sum::<u64>();
            let is_old = age_max.is_some_and(|max| head(number + 1).is_some_and(|next| age(next) > max));
            if number < self.place.file && (is_old || bytes_max.is_some_and(|max| bytes > max)) {
                break;
            }
            first = number;
        }
        read::delete_before(&self.folder, self.identity.recording, first, &self.storage)
            .map_err(refused("delete old files of"))
    }

    /// Creates a file and writes its head.
    fn create(&mut self, file: u64, first_block: u64) -> Result<OpenFile<S::File>, RecordError> {
        let path = self.folder.join(layout::data_name(file));
        let mut out = self.storage.create(&path).map_err(RecordError::refused(&path, "create"))?;
        let (monotonic_ns, realtime_ns) = self.identity.clock.now_ns();
        let Identity { recording, boot_id, .. } = self.identity;
        let head = FileHead { recording, file, first_block, monotonic_ns, realtime_ns, boot_id };
        let begun = out
            .allocate(self.options.file_bytes_max)
            .map_err(|source| ("reserve space in", source))
            // Flushed at once: whatever happens to the following blocks, the file's identity is known.
            .and_then(|()| {
                out.write_at(&head.encode(), 0).and_then(|()| out.flush()).map_err(|source| ("write", source))
            });
        if let Err((doing, source)) = begun {
            // Without a block it would be taken for a file emptied by a power cut.
            std::fs::remove_file(&path).ok();
            return Err(RecordError::refused(&path, doing)(source));
        }
        if self.options.sync != SyncPolicy::None {
            self.storage
                .sync_folder(&self.folder)
                .map_err(RecordError::refused(&self.folder, "sync directory"))?;
        }
        Ok(OpenFile {
            out,
            realtime_ns,
            path,
            offset: wide(FILE_HEAD_BYTES),
            heads: Vec::new(),
            is_dirty: true,
        })
    }

    fn begin_file(&mut self, file: OpenFile<S::File>) -> Result<(), RecordError> {
        self.written.files += 1;
        self.written.bytes += file.offset;
        self.open = Some(file);
        self.write_manifest()
    }

    fn end_file(&mut self, detail: u64) -> Result<(), RecordError> {
        self.append_plain(BlockHead { kind: BlockKind::End, detail, ..BlockHead::default() }, &[])?;
        self.flush()?;
        if self.options.sync != SyncPolicy::None {
            self.sync()?;
        }
        let Some(mut open) = self.open.take() else { return Err(RecordError::ended(&self.folder)) };
        open.out.truncate(open.offset).map_err(RecordError::refused(&open.path, "set the length of"))?;
        let index = layout::index::encode(self.identity.recording, self.place.file, open.offset, &open.heads);
        let path = self.folder.join(layout::index_name(self.place.file));
        // An index only saves time, so a failure to write it is not an error of the recording.
        self.storage.write_whole(&path, &index).ok();
        self.place.file += 1;
        Ok(())
    }

    fn write_manifest(&mut self) -> Result<(), RecordError> {
        let body = manifest::encode(&self.place.streams);
        self.append_plain(BlockHead { kind: BlockKind::Manifest, ..BlockHead::default() }, &body)
    }

    /// Writes a block other than records. There are few of them, so they may allocate.
    fn append_plain(&mut self, head: BlockHead, body: &[u8]) -> Result<(), RecordError> {
        let body_bytes = u32::try_from(body.len()).unwrap_or(u32::MAX);
        // There is always room for an end.
        if head.kind != BlockKind::End {
            self.make_room(body_bytes)?;
        }
        let head = self.placed(BlockHead { body_bytes, body_crc: crc32c::crc32c(body), ..head });
        let mut bytes = head.encode().to_vec();
        bytes.extend_from_slice(body);
        bytes.resize(crate::bytes::narrow(head.bytes()), 0);
        self.write_block(&head, &bytes)
    }

    fn placed(&self, head: BlockHead) -> BlockHead {
        BlockHead {
            recording: self.identity.recording,
            file: self.place.file,
            offset: self.open.as_ref().map_or(0, |open| open.offset),
            number: self.place.block,
            ..head
        }
    }

    fn write_block(&mut self, head: &BlockHead, bytes: &[u8]) -> Result<(), RecordError> {
        let Some(open) = &mut self.open else { return Err(RecordError::ended(&self.folder)) };
        if let Err(source) = open.out.write_at(bytes, open.offset) {
            return Err(self.give_up("write a block to", source));
        }
        open.offset += wide(bytes.len());
        open.heads.extend_from_slice(&head.encode());
        open.is_dirty = true;
        self.place.block += 1;
        self.written.blocks += 1;
        self.written.bytes += wide(bytes.len());
        Ok(())
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        open.out.flush().map_err(|source| self.give_up("write a block to", source))
    }

    fn sync(&mut self) -> Result<(), RecordError> {
        self.flush()?;
        self.synced = Instant::now();
        self.synced_bytes = self.written.bytes;
        let Some(open) = self.open.as_mut().filter(|open| open.is_dirty) else { return Ok(()) };
        open.is_dirty = false;
        // The kernel may have dropped what it could not write: nothing more is written after it.
        open.out.sync().map_err(|source| self.give_up("sync", source))
    }

    /// After an error: closes the file, and returns what to report.
    fn give_up(&mut self, doing: &str, source: io::Error) -> RecordError {
        let path = self.open.as_ref().map_or(&self.folder, |open| &open.path);
        let error = RecordError::refused(path, doing)(source);
        self.close();
        error
    }

    /// Removes the partial block at the end, if any. The file is left without an end, which readers report.
    fn close(&mut self) {
        if let Some(mut open) = self.open.take() {
            // If this fails too, readers detect the torn block by its checksum.
            open.out.truncate(open.whole_to()).ok();
        }
    }
}
