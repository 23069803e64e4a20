//! Collects records into blocks.

use super::{
    BlockBuffer, CachedDisk, DirectDisk, Files, FolderLock, Options, Place, RecordError, Storage, StoredFile,
    WriteMethod, Written,
    disk::{self, WriteJob},
    identity::Identity,
    storage,
};
use crate::{
    layout::{
        self, BlockHead, GapReason, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, SEQUENCE_MAX, STREAMS_MAX,
        manifest::{StreamEntry, UNKNOWN},
    },
    read,
};
use lowlat_ipc::stream::Record;
use std::{
    io::Write as _,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Recorded {
    pub written: Written,
    pub gaps: u64,
    /// Records missing in the gaps.
    pub lost: u64,
    /// Records in them that were published while no recorder ran.
    pub missed: u64,
    /// Records that the resumed recording already contained.
    pub skipped: u64,
    /// Number of times that all blocks were full, so that the follower waited for the disk.
    pub waits: u64,
    /// Total duration of these waits.
    pub waited: Duration,
}

struct Stream {
    name: String,
    /// The next sequence; `None` before the first record of a new stream.
    expected: Option<u64>,
    /// The stream comes from an earlier recording, so that earlier records may be seen again.
    is_resumed: bool,
    /// The latest generation time of the earlier recording.
    generated_max: u64,
    /// The reason of a jump right before the next record, if any. It applies only to that record: any later
    /// missing record was published while this recorder followed, and overwritten before it was read.
    reason: GapReason,
    block: Option<BlockBuffer>,
    /// Start of its block, as a count of [`Recorder::flush_old`].
    begun: u64,
}

/// Collects records of streams and passes them on for writing. Used by one thread; another thread writes.
pub struct Recorder {
    folder: PathBuf,
    recording: u64,
    options: Options,
    /// `None` once the writing thread has ended.
    jobs: Option<SyncSender<WriteJob>>,
    empty: Receiver<BlockBuffer>,
    give_back: SyncSender<BlockBuffer>,
    thread: Option<JoinHandle<Result<Written, RecordError>>>,
    streams: Vec<Stream>,
    recorded: Recorded,
    flushes: u64,
    flushed: Instant,
    _lock: FolderLock,
}

impl Recorder {
    /// Starts a recording in a directory, which is created if it is missing, or resumes the existing one in a
    /// new file.
    pub fn open(folder: &Path, options: Options) -> Result<Self, RecordError> {
        match options.writes {
            WriteMethod::Direct => Self::open_on(DirectDisk, folder, options),
            WriteMethod::Cached => Self::open_on(CachedDisk, folder, options),
        }
    }

    /// Checks that a new recording can be created in a directory, which is created if it is missing: no
    /// recorder is running there, it holds no recording, and a first file fits. For callers that start a
    /// recorder as a process and want an early error.
    pub fn check_new(folder: &Path, options: Options) -> Result<(), RecordError> {
        let refused = |doing| RecordError::refused(folder, doing);
        let _lock = Self::lock(folder)?;
        let files = read::list(folder).map_err(refused("read directory"))?;
        if !files.data.is_empty() || files.last_index > 0 {
            let why = "it holds a recording\nhint: name a new directory, or remove this recording first";
            return Err(RecordError::at(folder, why));
        }
        // Readers do not take its name for a file of a recording, and it is removed at once.
        let mut trial = tempfile::NamedTempFile::new_in(folder).map_err(refused("create a file in"))?;
        let bytes = options.bounded().file_bytes_max;
        trial.as_file_mut().allocate(bytes).map_err(refused("reserve space for a file in"))?;
        trial.close().map_err(refused("remove a file in"))
    }

    /// Keeps the names of instruments 0, 1, ... with the recording, for those who read it.
    pub fn keep_symbols(folder: &Path, symbols: &[String]) -> Result<(), RecordError> {
        let refused = |doing| RecordError::refused(folder, doing);
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(refused("create a file in"))?;
        let lines: String = symbols.iter().map(|symbol| format!("{symbol}\n")).collect();
        file.write_all(lines.as_bytes()).map_err(refused("write a file in"))?;
        let kept = file.persist(folder.join(layout::SYMBOLS_NAME)).map_err(|error| error.error);
        kept.map(drop).map_err(refused("create the file of symbols in"))
    }

    /// Creates the directory if it is missing, and locks it.
    fn lock(folder: &Path) -> Result<FolderLock, RecordError> {
        storage::make_folder(folder).map_err(RecordError::refused(folder, "create directory"))?;
        let lock = FolderLock::take(folder).map_err(RecordError::refused(folder, "lock directory"))?;
        let why = "another process is recording there\nhint: stop it, or name another directory";
        lock.ok_or_else(|| RecordError::at(folder, why))
    }

    /// Like [`Recorder::open`], with other storage.
    pub fn open_on<S: Storage + 'static>(
        storage: S,
        folder: &Path,
        options: Options,
    ) -> Result<Self, RecordError> {
        let lock = Self::lock(folder)?;
        let (identity, place) = if let Some(resumed) = read::resume(folder)? {
            resumed
        } else {
            let identity = Identity::new().map_err(RecordError::refused(folder, "generate an id for"))?;
            (Identity { clock: options.clock, ..identity }, Place::start())
        };
        let (options, recording, last_file) = (options.bounded(), identity.recording, place.file - 1);
        let streams: Vec<_> = place.streams.iter().map(Stream::resumed).collect();
        let mut files = Files::new(storage, folder, identity, options, place)?;
        // Now that the next file exists.
        read::name_next_file(folder, last_file, recording)?;
        files.compress()?;
        // Capacity for every block that can exist, so that a send never waits for capacity.
        let room = options.spare_blocks + STREAMS_MAX;
        let (jobs, taken) = sync_channel(room);
        let (give_back, empty) = sync_channel(room);
        for _ in 0..options.spare_blocks + streams.len() {
            give_back.try_send(BlockBuffer::new(options.block_bytes)).ok();
        }
        let emptied = give_back.clone();
        let thread = std::thread::Builder::new()
            .name("lowlat-journal".to_owned())
            .spawn(move || disk::run(files, &taken, &emptied))
            .map_err(RecordError::refused(folder, "start the writing thread for"))?;
        Ok(Self {
            folder: folder.to_owned(),
            recording,
            options,
            jobs: Some(jobs),
            empty,
            give_back,
            thread: Some(thread),
            streams,
            recorded: Recorded::default(),
            flushes: 0,
            flushed: Instant::now(),
            _lock: lock,
        })
    }

    /// The number of the stream with this name, which is added if it is new. `first_sequence` is the expected
    /// sequence of its first record, if known; `schema` names the schema of its payloads.
    pub fn add_stream(
        &mut self,
        name: &str,
        id: u32,
        schema: &str,
        first_sequence: Option<u64>,
    ) -> Result<u32, RecordError> {
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        if let Some(at) = self.streams.iter().position(|stream| stream.name == name) {
            return Ok(number(at));
        }
        if name.is_empty() || name.len() > NAME_BYTES_MAX || schema.len() > NAME_BYTES_MAX {
            return Err(RecordError(format!(
                "cannot record stream {name:?}: expected a unique name of 1 to {NAME_BYTES_MAX} bytes"
            )));
        }
        if self.streams.len() >= STREAMS_MAX {
            return Err(RecordError(format!(
                "cannot record stream {name:?}: a recording has at most {STREAMS_MAX} streams\nhint: start a second recording"
            )));
        }
        let entry = StreamEntry {
            name: name.to_owned(),
            schema: schema.to_owned(),
            id,
            next_sequence: first_sequence.unwrap_or(UNKNOWN),
            generated_max: 0,
        };
        self.streams.push(Stream {
            is_resumed: false,
            reason: GapReason::Overwritten,
            ..Stream::resumed(&entry)
        });
        self.give_back.try_send(BlockBuffer::new(self.options.block_bytes)).ok();
        self.send(WriteJob::Stream(entry))?;
        Ok(number(self.streams.len() - 1))
    }

    /// Records one record. Missing records before it are recorded as a gap.
    #[inline]
    pub fn record(
        &mut self,
        stream: u32,
        epoch: u64,
        record: &Record,
        payload: &[u8],
    ) -> Result<(), RecordError> {
        let at = crate::bytes::narrow(stream.into());
        let Some(state) = self.streams.get_mut(at) else { return Ok(()) };
        if record.sequence > SEQUENCE_MAX {
            // Damage in shared memory, reported with the next record.
            self.recorded.lost = self.recorded.lost.saturating_add(1);
            state.reason = GapReason::DamagedInMemory;
            return Ok(());
        }
        if state.expected != Some(record.sequence) && !self.jump(stream, epoch, record)? {
            return Ok(());
        }
        if payload.len() > PAYLOAD_BYTES_MAX {
            return self.gap(stream, epoch, record.sequence, record.sequence + 1, GapReason::TooLong);
        }
        let Some(state) = self.streams.get_mut(at) else { return Ok(()) };
        if let Some(block) = &mut state.block
            && block.head().epoch == epoch
            && block.push(record, payload)
        {
            state.go_on(record.sequence + 1);
            return Ok(());
        }
        self.hand_over(at)?;
        let mut block = self.take_empty()?;
        block.begin(self.recording, stream, epoch);
        block.push(record, payload);
        let begun = self.flushes;
        if let Some(state) = self.streams.get_mut(at) {
            (state.block, state.begun) = (Some(block), begun);
            state.go_on(record.sequence + 1);
        }
        Ok(())
    }

    /// Sets the reason of missing records before the next one of a stream.
    pub fn expect_gap(&mut self, stream: u32, reason: GapReason) {
        if let Some(stream) = self.streams.get_mut(crate::bytes::narrow(stream.into())) {
            stream.reason = reason;
        }
    }

    /// Handles a record out of sequence. Returns whether to record it.
    #[cold]
    fn jump(&mut self, stream: u32, epoch: u64, record: &Record) -> Result<bool, RecordError> {
        let Some(state) = self.streams.get_mut(crate::bytes::narrow(stream.into())) else { return Ok(false) };
        let Some(expected) = state.expected else { return Ok(true) };
        if record.sequence < expected {
            if state.is_resumed && record.stamp.generated <= state.generated_max {
                // It was still in the ring, so nothing after it had been overwritten when this recorder
                // started.
                state.reason = GapReason::Overwritten;
                self.recorded.skipped += 1;
                return Ok(false);
            }
            return Err(RecordError(format!(
                "cannot record stream {:?}: it belongs to another run (found record {}, expected {expected})\nhint: record it into a new directory",
                state.name, record.sequence
            )));
        }
        let reason = state.reason;
        self.gap(stream, epoch, expected, record.sequence, reason)?;
        Ok(true)
    }

    /// Records that the records from `from` up to, but not including, `to` are missing.
    fn gap(
        &mut self,
        stream: u32,
        epoch: u64,
        from: u64,
        to: u64,
        reason: GapReason,
    ) -> Result<(), RecordError> {
        let at = crate::bytes::narrow(stream.into());
        self.hand_over(at)?;
        let head = BlockHead {
            stream,
            epoch,
            first_sequence: from,
            last_sequence: to - 1,
            detail: reason.code(),
            ..BlockHead::default()
        };
        self.recorded.gaps += 1;
        self.recorded.lost = self.recorded.lost.saturating_add(to - from);
        if reason == GapReason::NotRecording {
            self.recorded.missed = self.recorded.missed.saturating_add(to - from);
        }
        if let Some(state) = self.streams.get_mut(at) {
            state.go_on(to);
        }
        self.send(WriteJob::Gap(head))
    }

    /// Hands over old blocks. To be called now and then, also without new records; it reads the clock.
    pub fn flush_old(&mut self) -> Result<(), RecordError> {
        if self.flushed.elapsed() < self.options.block_age_max {
            return Ok(());
        }
        self.flushed = Instant::now();
        self.flushes += 1;
        for at in 0..self.streams.len() {
            if self.streams.get(at).is_some_and(|stream| stream.begun < self.flushes) {
                self.hand_over(at)?;
            }
        }
        Ok(())
    }

    /// Result so far; what was written is known only at the end.
    pub fn recorded(&self) -> Recorded {
        self.recorded
    }

    /// Hands over everything, waits until it is written, and ends the recording.
    pub fn stop(mut self) -> Result<Recorded, RecordError> {
        for at in 0..self.streams.len() {
            self.hand_over(at)?;
        }
        self.send(WriteJob::End)?;
        self.jobs = None;
        self.recorded.written = self.join()?;
        Ok(self.recorded)
    }

    fn hand_over(&mut self, stream: usize) -> Result<(), RecordError> {
        let block = self.streams.get_mut(stream).and_then(|stream| stream.block.take());
        block.map_or(Ok(()), |block| self.send(WriteJob::Block(block)))
    }

    fn take_empty(&mut self) -> Result<BlockBuffer, RecordError> {
        loop {
            match self.empty.try_recv() {
                Ok(block) => return Ok(block),
                Err(TryRecvError::Disconnected) => return Err(self.failed()),
                Err(TryRecvError::Empty) => {}
            }
            self.recorded.waits += 1;
            let begun = Instant::now();
            // The recorder itself holds a sender, so the end of the thread must be checked.
            let taken = self.empty.recv_timeout(Duration::from_millis(100));
            self.recorded.waited += begun.elapsed();
            if let Ok(block) = taken {
                return Ok(block);
            }
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                return Err(self.failed());
            }
        }
    }

    fn send(&mut self, job: WriteJob) -> Result<(), RecordError> {
        let sent = self.jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if sent { Ok(()) } else { Err(self.failed()) }
    }

    /// Returns the error that ended the writing thread.
    fn failed(&mut self) -> RecordError {
        self.jobs = None;
        self.join().err().unwrap_or_else(|| RecordError::ended(&self.folder))
    }

    fn join(&mut self) -> Result<Written, RecordError> {
        let thread = self.thread.take().ok_or_else(|| RecordError::ended(&self.folder))?;
        thread.join().unwrap_or_else(|_| Err(RecordError::ended(&self.folder)))
    }
}

impl Drop for Recorder {
    /// Dropping it without [`Recorder::stop`] writes what it has, and leaves its recording without an end.
    fn drop(&mut self) {
        if self.thread.is_some() {
            for at in 0..self.streams.len() {
                self.hand_over(at).ok();
            }
            self.jobs = None;
            self.join().ok();
        }
    }
}

impl Stream {
    fn resumed(entry: &StreamEntry) -> Self {
        Self {
            name: entry.name.clone(),
            expected: entry.next(),
            is_resumed: true,
            generated_max: entry.generated_max,
            reason: GapReason::NotRecording,
            block: None,
            begun: 0,
        }
    }

    /// The next record has this sequence; a later one is missing records that were overwritten.
    #[inline]
    fn go_on(&mut self, expected: u64) {
        (self.expected, self.reason) = (Some(expected), GapReason::Overwritten);
    }
}
