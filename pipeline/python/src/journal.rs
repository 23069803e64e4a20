//! Recordings.

use crate::{
    batches::{Batches, lost},
    errors::{BusyError, JournalError},
    events::{Names, PendingEvent, Record},
    exit,
};
use lowlat_journal::read::{JournalRead, Merge, OpenError, Recording};
use pyo3::prelude::*;
use self_cell::self_cell;
use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

/// Number of events read per batch.
const EVENTS: usize = 256;

self_cell!(
    pub struct Reading {
        owner: Arc<Recording>,
        #[not_covariant]
        dependent: Merge,
    }
);

/// Selected records of a recording.
#[derive(Clone)]
pub struct Selection {
    pub recording: Arc<Recording>,
    streams: Vec<u32>,
    from_ns: Option<u64>,
}

impl Selection {
    /// Starts with the first of them.
    pub fn read(&self) -> Reading {
        let mut reading =
            Reading::new(Arc::clone(&self.recording), |recording| Merge::new(recording, &self.streams));
        if let Some(from_ns) = self.from_ns {
            reading.with_dependent_mut(|_, merge| merge.seek_time(from_ns));
        }
        reading
    }
}

/// The recording in a directory: an iterator of its records in order of time, with Lost and Damage where some
/// are missing.
#[pyclass(frozen, module = "lowlat")]
pub struct Journal {
    /// The directory.
    #[pyo3(get)]
    folder: PathBuf,
    /// Names of all streams of the recording, selected or not.
    #[pyo3(get)]
    streams: Vec<String>,
    selection: Selection,
    inner: Mutex<JournalState>,
}

struct JournalState {
    reading: Reading,
    names: Names,
    payload: Vec<u8>,
    events: VecDeque<PendingEvent>,
    is_over: bool,
}

#[pymethods]
impl Journal {
    /// Opens the recording in a directory. `streams` is a stream's name, or a prefix and a star ("orders.*").
    /// `from_ns` skips records written before that time.
    #[new]
    #[pyo3(signature = (folder, streams = "*", from_ns = None))]
    #[expect(clippy::needless_pass_by_value, reason = "as it comes from Python")]
    fn new(folder: PathBuf, streams: &str, from_ns: Option<u64>) -> PyResult<Self> {
        Self::open(&folder, streams, from_ns).map_err(|error| JournalError::new_err(error.to_string()))
    }

    /// What to add to a record's times for the time of day, ns since 1970 in UTC; None if the recording has no clock.
    #[getter]
    fn realtime_offset_ns(&self) -> Option<i128> {
        self.selection.recording.realtime_offset_ns()
    }

    /// Names of instruments 0, 1, ...; empty if the recording has none.
    #[getter]
    fn symbols(&self) -> Vec<String> {
        self.selection.recording.symbols()
    }

    /// The selected records in columns, from the first one on, whatever was iterated. `kind` is "quote", "order" or
    /// "answer", with columns of its payload; None selects all records, with their payloads as bytes.
    #[pyo3(signature = (kind = None))]
    fn batches(&self, kind: Option<String>) -> PyResult<Batches> {
        Batches::new(self.selection.clone(), kind)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let mut inner = self.lock()?;
        if inner.events.is_empty() {
            py.check_signals()?;
            let inner = &mut *inner;
            exit::detached(py, || inner.read());
        }
        inner.events.pop_front().map(|event| event.into_object(py)).transpose()
    }

    fn __repr__(&self) -> String {
        format!("Journal('{}')", self.folder.display())
    }
}

impl Journal {
    fn open(folder: &Path, pattern: &str, from_ns: Option<u64>) -> Result<Self, OpenError> {
        let recording = Arc::new(Recording::open(folder)?.reading_ahead());
        let streams = recording.streams().iter().map(|stream| stream.name.clone()).collect();
        let selection = Selection { streams: recording.choose(&[pattern])?, recording, from_ns };
        let (names, payload, events) = (Names::default(), Vec::new(), VecDeque::with_capacity(EVENTS));
        let reading = selection.read();
        let inner = Mutex::new(JournalState { reading, names, payload, events, is_over: false });
        Ok(Self { folder: folder.to_owned(), streams, selection, inner })
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, JournalState>> {
        let busy =
            |_| BusyError::new_err("another thread is reading this journal\nhint: open one per thread");
        self.inner.try_lock().map_err(busy)
    }
}

impl JournalState {
    fn read(&mut self) {
        while !self.is_over && self.events.len() < EVENTS {
            let payload = &mut self.payload;
            let read = self.reading.with_dependent_mut(|_, merge| merge.next(payload));
            let event = match read {
                JournalRead::Record(found) => {
                    let name = self.name(found.stream);
                    PendingEvent::Record(Record::new(name, &found.record, &self.payload, None))
                }
                JournalRead::Gap(gap) => PendingEvent::Lost(lost(self.reading.borrow_owner(), &gap)),
                JournalRead::Damaged(damage) => PendingEvent::Damage(damage.to_string()),
                JournalRead::Nothing | JournalRead::Ended => {
                    self.is_over = true;
                    return;
                }
            };
            self.events.push_back(event);
        }
    }

    fn name(&mut self, stream: u32) -> Arc<str> {
        let streams = self.reading.borrow_owner().streams();
        let entry = usize::try_from(stream).ok().and_then(|at| streams.get(at));
        self.names.get(entry.map_or("", |entry| entry.name.as_str()))
    }
}
