//! The files of a recording as they are written: one writer, whole blocks, one after the other.

use super::{
    Buffer, Options, RecordError, Storage, StoredFile, SyncPolicy, buffer::EMPTY, identity::Identity,
};
use crate::{
    bytes::wide,
    layout::{
        self, BLOCK_HEAD_BYTES, BlockHead, BlockKind, FILE_HEAD_BYTES, FileHead, block_bytes,
        manifest::{self, StreamEntry},
    },
};
use std::{
    io,
    path::{Path, PathBuf},
    time::Instant,
};

/// Bytes of an end block, for which there must always be room.
const END_BYTES: u64 = BLOCK_HEAD_BYTES as u64;

/// Bytes of blocks that share a sync at most.
const SHARED_SYNC_BYTES: u64 = 4 << 20;

/// Where a recording goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Number of the next file.
    pub file: u64,
    /// Number of the next block.
    pub block: u64,
    /// Its streams so far.
    pub streams: Vec<StreamEntry>,
}

impl Place {
    /// The beginning of a new recording.
    pub fn start() -> Self {
        Self { file: 1, block: 1, streams: Vec::new() }
    }
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Records.
    pub records: u64,
    /// Blocks of all kinds.
    pub blocks: u64,
    /// Files.
    pub files: u64,
    /// Bytes, heads and all.
    pub bytes: u64,
}

struct Open<F> {
    out: F,
    path: PathBuf,
    offset: u64,
    /// The heads of its blocks, for the index.
    heads: Vec<u8>,
    is_dirty: bool,
}

impl<F: StoredFile> Open<F> {
    /// Where the last block ends that the system has whole.
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
    open: Option<Open<S::File>>,
    place: Place,
    synced: Instant,
    /// How many bytes were written then.
    synced_bytes: u64,
    written: Written,
}

impl<S: Storage> Files<S> {
    /// The writer of a recording from this place on. The first file is made at once, so that a folder that cannot be
    /// written is told before anything is published.
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
            synced: Instant::now(),
            synced_bytes: 0,
            written: Written::default(),
        };
        let first = files.create(files.place.file, files.place.block)?;
        files.begin_file(first)?;
        Ok(files)
    }

    /// What was written so far.
    pub fn written(&self) -> Written {
        self.written
    }

    /// Adds a stream; its number is how many there were.
    pub fn add_stream(&mut self, entry: StreamEntry) -> Result<(), RecordError> {
        self.place.streams.push(entry);
        self.write_manifest()
    }

    /// Writes a block of records.
    pub fn append(&mut self, buffer: &mut Buffer) -> Result<(), RecordError> {
        let head = buffer.finished_head();
        self.make_room(head.body_bytes)?;
        let head = self.placed(head);
        self.write_block(&head, buffer.seal(&head))?;
        self.note(&head);
        Ok(())
    }

    /// Writes a gap; `head` has its stream, epoch, sequences and reason.
    pub fn append_gap(&mut self, head: &BlockHead) -> Result<(), RecordError> {
        let stream = usize::try_from(head.stream).ok().and_then(|at| self.place.streams.get(at));
        let generated = stream.map_or(0, |stream| stream.generated_max);
        let head =
            BlockHead { kind: BlockKind::Gap, generated_min: generated, generated_max: generated, ..*head };
        self.append_plain(head, &[])?;
        self.note(&head);
        Ok(())
    }

    /// Hands over what was kept back, and syncs when the policy says so. To be called when nothing more is there to be
    /// written at once.
    pub fn settle(&mut self) -> Result<(), RecordError> {
        self.flush()?;
        self.sync_if_due(true)
    }

    /// Syncs when the policy says so. `is_last` says that nothing more is there to be written at once: while there is,
    /// blocks that are synced one by one share a sync.
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
        // What was recorded last, so that it is missed when it is gone.
        self.write_manifest()?;
        self.end_file(0)?;
        Ok(self.written)
    }

    fn note(&mut self, head: &BlockHead) {
        self.written.records += u64::from(head.records);
        let stream = usize::try_from(head.stream).ok().and_then(|at| self.place.streams.get_mut(at));
        if let Some(stream) = stream {
            stream.next_sequence = head.last_sequence + 1;
            stream.generated_max = stream.generated_max.max(head.generated_max);
        }
    }

    /// Goes on to the next file when a block does not fit into this one. A block that fits into none goes into a new
    /// one alone.
    fn make_room(&mut self, body_bytes: u32) -> Result<(), RecordError> {
        let needed = block_bytes(body_bytes) + END_BYTES;
        let is_full = self.open.as_ref().is_none_or(|open| {
            let has_records = open.heads.len() > BLOCK_HEAD_BYTES;
            has_records && open.offset + needed > self.options.file_bytes_max
        });
        if !is_full || self.open.is_none() {
            return if is_full { Err(self.ended()) } else { Ok(()) };
        }
        // The next file is made before this one is ended: an end that promises another file is kept.
        let (file, block) = (self.place.file + 1, self.place.block + 1);
        match self.create(file, block) {
            Ok(next) => {
                self.end_file(layout::END_GOES_ON)?;
                self.begin_file(next)
            }
            Err(error) => {
                self.end_file(0).ok();
                Err(error)
            }
        }
    }

    /// Makes a file and writes its head.
    fn create(&mut self, file: u64, first_block: u64) -> Result<Open<S::File>, RecordError> {
        let path = self.folder.join(layout::data_name(file));
        let mut out =
            self.storage.create(&path).map_err(|source| RecordError::refused(&path, "make it", source))?;
        let (monotonic_ns, realtime_ns) = self.identity.clock.now_ns();
        let Identity { recording, boot_id, .. } = self.identity;
        let head = FileHead { recording, file, first_block, monotonic_ns, realtime_ns, boot_id };
        let begun = out
            .allocate(self.options.file_bytes_max)
            .map_err(|source| ("reserve its room", source))
            // At once: whatever happens to the blocks behind it, it is told whose file this is.
            .and_then(|()| {
                out.write_at(&head.encode(), 0)
                    .and_then(|()| out.flush())
                    .map_err(|source| ("write it", source))
            });
        if let Err((doing, source)) = begun {
            // Without a block in it, it would only be taken for one that a power cut emptied.
            std::fs::remove_file(&path).ok();
            return Err(RecordError::refused(&path, doing, source));
        }
        if self.options.sync != SyncPolicy::None {
            self.storage
                .sync_folder(&self.folder)
                .map_err(|source| RecordError::refused(&self.folder, "sync the folder", source))?;
        }
        Ok(Open { out, path, offset: wide(FILE_HEAD_BYTES), heads: Vec::new(), is_dirty: true })
    }

    fn begin_file(&mut self, file: Open<S::File>) -> Result<(), RecordError> {
        self.written.files += 1;
        self.written.bytes += file.offset;
        self.open = Some(file);
        self.write_manifest()
    }

    fn end_file(&mut self, detail: u64) -> Result<(), RecordError> {
        if self.open.is_none() {
            return Err(self.ended());
        }
        self.append_plain(BlockHead { kind: BlockKind::End, detail, ..PLAIN }, &[])?;
        self.flush()?;
        if self.options.sync != SyncPolicy::None {
            self.sync()?;
        }
        let Some(mut open) = self.open.take() else { return Err(self.ended()) };
        open.out
            .truncate(open.offset)
            .map_err(|source| RecordError::refused(&open.path, "give it its length", source))?;
        let index = layout::index::encode(self.identity.recording, self.place.file, open.offset, &open.heads);
        let path = self.folder.join(layout::index_name(self.place.file));
        // An index only saves time, so a failure to write it is none of the recording.
        self.storage.write_whole(&path, &index).ok();
        self.place.file += 1;
        Ok(())
    }

    fn write_manifest(&mut self) -> Result<(), RecordError> {
        let body = manifest::encode(&self.place.streams);
        self.append_plain(BlockHead { kind: BlockKind::Manifest, ..PLAIN }, &body)
    }

    /// Writes a block of another kind than records. They are few, so they may allocate.
    fn append_plain(&mut self, head: BlockHead, body: &[u8]) -> Result<(), RecordError> {
        let body_bytes = u32::try_from(body.len()).unwrap_or(u32::MAX);
        if head.kind == BlockKind::Gap || (head.kind == BlockKind::Manifest && self.open.is_some()) {
            self.make_room_for_plain(body_bytes)?;
        }
        let head = self.placed(BlockHead { body_bytes, body_crc: crc32c::crc32c(body), ..head });
        let mut bytes = head.encode().to_vec();
        bytes.extend_from_slice(body);
        bytes.resize(crate::bytes::narrow(head.bytes()), 0);
        self.write_block(&head, &bytes)
    }

    fn make_room_for_plain(&mut self, body_bytes: u32) -> Result<(), RecordError> {
        let is_first = self.open.as_ref().is_some_and(|open| open.heads.is_empty());
        if is_first { Ok(()) } else { self.make_room(body_bytes) }
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
        let Some(open) = &mut self.open else { return Err(self.ended()) };
        if let Err(source) = open.out.write_at(bytes, open.offset) {
            let error = RecordError::refused(&open.path, "write a block", source);
            self.give_up();
            return Err(error);
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
        if let Err(source) = open.out.flush() {
            let error = RecordError::refused(&open.path, "write a block", source);
            self.give_up();
            return Err(error);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), RecordError> {
        self.flush()?;
        self.synced = Instant::now();
        self.synced_bytes = self.written.bytes;
        let Some(open) = self.open.as_mut().filter(|open| open.is_dirty) else { return Ok(()) };
        open.is_dirty = false;
        if let Err(source) = open.out.sync() {
            // What the kernel could not write it may have dropped: nothing more is written behind it.
            let error = RecordError::refused(&open.path, "sync it", source);
            self.give_up();
            return Err(error);
        }
        Ok(())
    }

    /// After an error: takes away the piece of a block that may stand at the end. The file is left without an end, which
    /// readers report.
    fn give_up(&mut self) {
        if let Some(mut open) = self.open.take() {
            let cut: io::Result<()> = open.out.truncate(open.whole_to());
            // When even that fails readers find the torn block by its checksum.
            cut.ok();
        }
    }

    fn ended(&self) -> RecordError {
        RecordError::Ended { path: self.folder.clone() }
    }
}

/// A block of no stream.
const PLAIN: BlockHead = BlockHead { generated_min: 0, ..EMPTY };
