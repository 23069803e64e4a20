//! The log itself: opening, recovering, appending.

use super::{
    Event, Faults, History, HostError, Inspection, LogDamage, LogMark, LoggedState, PrivateDirectory, Record,
    State, Target, TargetSpec, UndoError, UndoStep, Writer, compact,
    expire::UNKNOWN_BOOT,
    lock, record,
    segment::{self, EarlierLog, SegmentHeader},
    store::{CONTENTS, ContentStore},
    target::HostFiles,
};
use rustix::{fs::OFlags, io::Errno};
use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Pauses between reads after a write, while the value is not the wanted one: a tenth of a second in total.
const READ_BACK_PAUSES_MS: [u64; 5] = [1, 5, 15, 30, 50];

/// The record of lowlat's changes to a host, and the means to roll them back. Only one process can hold it.
#[derive(Debug)]
pub struct UndoLog {
    pub(super) dir: PrivateDirectory,
    pub(super) writer: Writer,
    pub(super) store: ContentStore,
    pub(super) targets: Vec<Box<dyn Target>>,
    boot: String,
    pub(super) scan: Inspection,
    /// The segment for new records; `None` until the first append.
    segment: Option<File>,
    is_poisoned: bool,
    is_read_only: bool,
    is_compacted: bool,
    _lock: Option<lock::Lock>,
}

impl UndoLog {
    /// Opens the log in `dir` for changes through `writer`, and reads up to the last valid record. A torn
    /// record at the end is reported by [`UndoLog::inspect`] and otherwise harmless, because no step starts
    /// before its record is complete. Damage is reported by [`UndoLog::damage`] and prevents new plans from
    /// being applied.
    ///
    /// A long log with few active entries is first compacted, if `may_compact` agrees; it receives the mark
    /// of the log's end. It must disagree if a different mark is stored, because [`Inspection::compare`](crate::Inspection::compare) then
    /// needs the records that the mark counts.
    ///
    /// # Errors
    /// Another process has the log, or the system reported an error.
    pub fn open(
        dir: PrivateDirectory,
        writer: Writer,
        may_compact: impl FnOnce(&LogMark) -> bool,
    ) -> Result<Self, UndoError> {
        let lock = lock::take(&dir)?;
        dir.sync_above(&writer.faults)?;
        let mut scan = segment::scan(&dir)?;
        settle(&dir, &scan, &writer.faults)?;
        let compacted = compact::compacted(&scan).filter(|_| may_compact(&scan.chain.mark()));
        let is_compacted = compacted.is_some();
        if let Some(bytes) = compacted {
            // If the write fails, the log is unchanged. The directory shows which of both it is: an existing
            // name counts, whatever the call returned.
            let _ = compact::write(&dir, &scan, &bytes, &writer.faults);
            scan = segment::scan(&dir)?;
            settle(&dir, &scan, &writer.faults)?;
        }
        let is_rid_of_some = (is_compacted || !scan.stale.is_empty()) && scan.damage.is_none();
        compact::remove_stale(&dir, &scan, &writer.faults);
        let mut log = Self { is_compacted, ..Self::of(dir, writer, scan, Some(lock)) };
        if is_rid_of_some {
            log.drop_contents();
        }
        Ok(log)
    }

    /// Opens the log in `dir` to inspect it and the host. Nothing can be appended, and nothing is created or
    /// changed, not even a lock. If a lock file exists, no other process changes the log meanwhile.
    ///
    /// # Errors
    /// Another process is changing the log, or the system reported an error.
    pub fn look(dir: PrivateDirectory, writer: Writer) -> Result<Self, UndoError> {
        let lock = lock::share(&dir)?;
        let scan = segment::scan(&dir)?;
        Ok(Self { is_read_only: true, ..Self::of(dir, writer, scan, lock) })
    }

    fn of(dir: PrivateDirectory, writer: Writer, scan: Inspection, lock: Option<lock::Lock>) -> Self {
        let boot = writer.read_value("/proc/sys/kernel/random/boot_id").ok().and_then(State::into_value);
        let boot = boot.map_or_else(|| UNKNOWN_BOOT.to_owned(), |text| text.trim().to_owned());
        Self {
            store: ContentStore::open(&dir),
            dir,
            writer,
            targets: vec![Box::new(HostFiles::Values), Box::new(HostFiles::Files)],
            boot,
            scan,
            segment: None,
            is_poisoned: false,
            is_read_only: false,
            is_compacted: false,
            _lock: lock,
        }
    }

    /// Reads the log in `dir` without a lock and without changing anything; a missing directory means an
    /// empty log.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn inspect(dir: Option<&PrivateDirectory>) -> Result<Inspection, UndoError> {
        Ok(dir.map(segment::scan).transpose()?.unwrap_or_else(Inspection::empty))
    }

    /// True if opening has compacted the log, so that marks should be renewed.
    pub fn is_compacted(&self) -> bool {
        self.is_compacted
    }

    /// Adds a kind of target, replacing an existing one of the same name.
    #[must_use]
    pub fn with_target(mut self, target: Box<dyn Target>) -> Self {
        self.targets.insert(0, target);
        self
    }

    /// Everything valid in the log.
    pub fn inspection(&self) -> &Inspection {
        &self.scan
    }

    pub fn history(&self) -> &History {
        &self.scan.history
    }

    /// Returns the start of the untrusted part of the log, as found when opening.
    pub fn damage(&self) -> Option<&LogDamage> {
        self.scan.damage.as_ref()
    }

    /// Records that the damage is known, so that new plans can be applied again. Steps recorded after the
    /// damage stay unknown. Roll back the known steps first, and check the host.
    pub fn accept_damage(&mut self) -> Result<(), UndoError> {
        if self.scan.damage.is_some() {
            self.start_segment(EarlierLog::Accepted)?;
            self.scan.damage = None;
        }
        Ok(())
    }

    /// The ID of the running boot, as in records.
    pub fn boot(&self) -> &str {
        &self.boot
    }

    pub(super) fn target(&self, spec: &TargetSpec) -> Result<&dyn Target, HostError> {
        let known = self.targets.iter().find(|t| t.kind() == spec.kind);
        known.map(AsRef::as_ref).ok_or_else(|| HostError::UnknownKind { kind: spec.kind.clone() })
    }

    pub(super) fn read(&self, spec: &TargetSpec) -> Result<State, HostError> {
        self.target(spec)?.read(&self.writer, spec)
    }

    /// Reads the state after a write of `wanted`. The kernel may briefly return the old state. An interrupt
    /// that moves when it next fires shows its previous CPUs while that happens (`irq_move_masked_irq` clears
    /// the pending mask before it sets the new one). So another state is accepted only after it has persisted
    /// for a while.
    pub(super) fn read_back(&self, spec: &TargetSpec, wanted: &State) -> Result<State, HostError> {
        let mut pauses = READ_BACK_PAUSES_MS.iter();
        loop {
            let present = self.read(spec)?;
            if spec.comparison.same(&present, wanted) {
                return Ok(present);
            }
            let Some(pause) = pauses.next() else { return Ok(present) };
            thread::sleep(Duration::from_millis(*pause));
        }
    }

    /// The current state, for the old state of a [`UndoStep`].
    pub fn present(&self, spec: &TargetSpec) -> Result<State, UndoError> {
        Ok(self.read(spec)?)
    }

    /// A step that gives a target another state than its current one. Its ID is the target's name.
    pub fn step(&self, target: TargetSpec, new: State) -> Result<UndoStep, UndoError> {
        let old = self.present(&target)?;
        Ok(UndoStep { id: target.name.clone(), target, old, new })
    }

    /// A name that is the same for all spellings of a target. A plan may have only one step of a kind with this name.
    pub fn place(&self, spec: &TargetSpec) -> Result<String, UndoError> {
        Ok(self.target(spec)?.identity(&self.writer, spec)?)
    }

    /// A recorded state with its content.
    pub fn restore(&self, state: &LoggedState) -> Result<State, HostError> {
        state.restore(|name| self.store.get(name))
    }

    /// Converts a state for a record; its content is durable before the record is.
    pub(super) fn keep(&mut self, state: &State) -> Result<LoggedState, HostError> {
        self.store.keep(&self.writer.faults, state)?;
        Ok(LoggedState::of(state))
    }

    /// Appends one record and makes it durable.
    pub(super) fn append(&mut self, plan: &str, event: Event) -> Result<(), UndoError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let record = Record {
            plan: plan.to_owned(),
            boot: self.boot.clone(),
            unix_ms: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            event,
        };
        let bytes = record::encode(self.scan.next_sequence, &record).ok_or_else(|| HostError::TooLarge {
            path: self.dir.path().display().to_string(),
            bytes: u64::try_from(record::PAYLOAD_BYTES_MAX).unwrap_or(u64::MAX),
            bytes_max: u64::try_from(record::PAYLOAD_BYTES_MAX).unwrap_or(u64::MAX),
        })?;
        self.append_bytes(&bytes)?;
        self.scan.next_sequence += 1;
        self.scan.chain.push(&record.event, &bytes);
        self.scan.history.fold(record);
        Ok(())
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> Result<(), UndoError> {
        if self.is_read_only {
            let path = self.dir.path().display();
            return Err(UndoError::Refused(format!(
                "cannot append a record to {path}: the log was opened for reading"
            )));
        }
        if self.is_poisoned {
            return Err(UndoError::Refused(format!(
                "cannot write {}: an earlier append failed and its bytes could not be removed\nhint: run the command again",
                self.segment_path()
            )));
        }
        let io = |doing, path: &str, e: io::Error| UndoError::from(HostError::io(doing, path, e));
        let is_usable = self.scan.segment != 0 && self.scan.is_whole && self.scan.damage.is_none();
        if (!is_usable && self.segment.is_none()) || self.scan.good_bytes >= segment::SEGMENT_BYTES_MAX {
            let is_damaged = self.scan.damage.is_some();
            self.start_segment(if is_damaged { EarlierLog::Damaged } else { EarlierLog::Sound })?;
        }
        let path = self.segment_path();
        let file = match self.segment.take() {
            Some(file) => file,
            None => self.open_segment()?,
        };
        let at = self.scan.good_bytes;
        let faults = &self.writer.faults;
        let appended = faults
            .write(&path, bytes, |bytes| file.write_all_at(bytes, at))
            .and_then(|()| faults.step("fsync", &path))
            .and_then(|()| file.sync_data());
        if let Err(error) = appended {
            // It may not be durable, so it must not remain either: the next record has its number.
            let cut = faults.step("truncate", &path).and_then(|()| file.set_len(at));
            self.is_poisoned = cut.and_then(|()| file.sync_data()).is_err();
            self.segment = Some(file);
            return Err(io("append to", &path, error));
        }
        self.segment = Some(file);
        self.scan.good_bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        Ok(())
    }

    /// Creates the segment that continues after the valid part of the log.
    fn start_segment(&mut self, before: EarlierLog) -> Result<(), UndoError> {
        let number = self.scan.highest.checked_add(1).ok_or_else(|| {
            UndoError::Refused(format!(
                "cannot read {}: found the highest segment number, expected a segment of an undo log, version 1\nhint: use \
                 the version that wrote it",
                self.dir.path().display()
            ))
        })?;
        let header = SegmentHeader {
            before,
            continues: self.scan.segment,
            trusted_bytes: self.scan.good_bytes,
            first_sequence: self.scan.next_sequence,
        };
        self.dir.write(&self.writer.faults, &segment::name(number), &header.encode())?;
        (self.scan.segment, self.scan.highest) = (number, number);
        self.scan.good_bytes = u64::try_from(segment::HEADER_BYTES).unwrap_or(u64::MAX);
        self.scan.is_whole = true;
        self.segment = Some(self.open_segment()?);
        Ok(())
    }

    /// The segment for new records.
    fn open_segment(&self) -> Result<File, HostError> {
        let file = self.dir.file(&segment::name(self.scan.segment), OFlags::WRONLY)?;
        file.ok_or_else(|| HostError::io("open", &self.segment_path(), Errno::NOENT))
    }

    fn segment_path(&self) -> String {
        self.dir.path().join(segment::name(self.scan.segment)).display().to_string()
    }
}

/// Makes what was read durable. A process killed between write and fsync leaves records that are only in
/// memory, and actions based on them must not outlive them.
fn settle(dir: &PrivateDirectory, scan: &Inspection, faults: &Faults) -> Result<(), HostError> {
    if scan.segment != 0
        && let Some(file) = dir.file(&segment::name(scan.segment), OFlags::RDONLY)?
    {
        let shown = dir.path().join(segment::name(scan.segment)).display().to_string();
        faults.run("fsync", &shown, || file.sync_all())?;
    }
    if let Some(contents) = dir.sub(CONTENTS)? {
        contents.sync(faults)?;
    }
    dir.sync(faults)
}
