//! An instance of ours in tracefs: its name, its files, its removal.

use super::{TraceError, Tracefs, files::SharedFile, leftovers::start_time};
use std::{
    fs::OpenOptions,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

/// What the names of our instances begin with.
pub(super) const PREFIX: &str = "lowlat-";
/// Attempts to remove an instance that is busy, and the time between them: two seconds in all. A file that another
/// thread is about to close, or a reader of the instance's text files, makes it busy for a moment.
const REMOVE_ATTEMPTS: u32 = 100;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// The instances of this process that are not yet removed.
static OWN: Mutex<Vec<Arc<Instance>>> = Mutex::new(Vec::new());
/// Tells the instances of one process apart.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A directory below `instances/`.
#[derive(Debug)]
pub(super) struct Instance {
    tracefs: Arc<Tracefs>,
    /// Below tracefs: "instances/lowlat-…".
    directory: String,
    name: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<SharedFile>,
    is_removed: bool,
}

impl Instance {
    /// Makes an instance with a name that no other has.
    pub(super) fn make(tracefs: &Arc<Tracefs>) -> Result<Arc<Self>, TraceError> {
        // Relaxed: only the number itself matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let name = format!("{PREFIX}{pid}-{}-{number}", start_time(pid).unwrap_or(0));
        let directory = format!("instances/{name}");
        let mut own = lock(&OWN);
        tracefs.make_directory(&directory).map_err(|source| {
            let path = tracefs.shown(&directory);
            TraceError::refused(&path, source, |source| TraceError::Make { path: path.clone(), source })
        })?;
        let instance =
            Arc::new(Self { tracefs: Arc::clone(tracefs), directory, name, state: Mutex::default() });
        own.push(Arc::clone(&instance));
        Ok(instance)
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn tracefs(&self) -> &Arc<Tracefs> {
        &self.tracefs
    }

    /// A path of the instance, below tracefs.
    pub(super) fn within(&self, relative: &str) -> String {
        format!("{}/{relative}", self.directory)
    }

    pub(super) fn write(&self, relative: &str, value: &str) -> Result<(), TraceError> {
        self.tracefs.write(&self.within(relative), value)
    }

    /// Opens a file of the instance that stays open until the instance is removed.
    pub(super) fn open(&self, relative: &str, options: &OpenOptions) -> Result<SharedFile, TraceError> {
        let relative = self.within(relative);
        let mut state = lock(&self.state);
        let file = self.tracefs.open(&relative, options).map_err(|source| {
            let path = self.tracefs.shown(&relative);
            TraceError::refused(&path, source, |source| TraceError::Read {
                path: path.clone(),
                problem: source.to_string(),
            })
        })?;
        let file = SharedFile::new(file);
        state.files.push(file.clone());
        Ok(file)
    }

    /// Closes the instance's files and removes it; nothing when that has been done.
    pub(super) fn remove(&self) -> Result<(), TraceError> {
        let mut state = lock(&self.state);
        if state.is_removed {
            return Ok(());
        }
        state.files.drain(..).for_each(|file| file.close());
        // Should removal fail, at least nothing is traced any more. Removal itself is the answer that counts.
        let _ = self.write("tracing_on", "0");
        let _ = self.write("events/enable", "0");
        remove_directory(&self.tracefs, &self.directory, REMOVE_ATTEMPTS)
            .map_err(|source| TraceError::Remove { path: self.tracefs.shown(&self.directory), source })?;
        state.is_removed = true;
        drop(state);
        lock(&OWN).retain(|other| other.name != self.name);
        Ok(())
    }
}

/// Removes the instances of this process, whoever holds them; their pipes answer with an error from then on. For the
/// way out of a process that is told to stop at once: call it from a thread, as a handler of `ctrlc` is, not from
/// within a signal handler. What could not be removed is answered.
pub fn remove_own() -> Vec<TraceError> {
    let own: Vec<Arc<Instance>> = lock(&OWN).clone();
    own.iter().filter_map(|instance| instance.remove().err()).collect()
}

/// Removes an instance's directory; tries again while it is busy. One that is gone counts as removed.
pub(super) fn remove_directory(tracefs: &Tracefs, directory: &str, attempts: u32) -> io::Result<()> {
    for attempt in 1.. {
        match tracefs.remove_directory(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && attempt < attempts => {
                thread::sleep(REMOVE_PAUSE);
            }
            answer => return answer,
        }
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
