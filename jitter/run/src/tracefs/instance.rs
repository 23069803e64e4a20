//! An instance of lowlat in tracefs: its name, its files, its removal.

use super::{TraceError, Tracefs, place::MAKE};
use lowlat_host_run::{Root, task_stat::TaskStat};
use std::{
    fs::{self, File, OpenOptions},
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

/// Prefix of the names of lowlat's instances.
pub(super) const PREFIX: &str = "lowlat-";
/// Attempts to remove a busy instance, and the time between them: two seconds in total. A file that another
/// thread is about to close, or a reader of the instance's text files, makes it busy for a moment.
const REMOVE_ATTEMPTS: u32 = 100;
const REMOVE_PAUSE: Duration = Duration::from_millis(20);

/// The instances of this process that are not yet removed.
static OWN: Mutex<Vec<Arc<Instance>>> = Mutex::new(Vec::new());
/// Distinguishes the instances of one process.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A trace instance: a directory below `instances/`.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) tracefs: Arc<Tracefs>,
    /// Its path below tracefs: "instances/lowlat-…".
    directory: String,
    pub(super) name: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    files: Vec<SharedFile>,
    is_removed: bool,
}

impl Instance {
    /// Creates an instance with a unique name.
    pub(super) fn make(tracefs: &Arc<Tracefs>) -> Result<Arc<Self>, TraceError> {
        // Relaxed: only the number itself matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let name = format!("{PREFIX}{pid}-{}-{number}", start_time(pid).unwrap_or(0));
        let directory = format!("instances/{name}");
        let mut own = lock(&OWN);
        fs::create_dir(tracefs.path(&directory))
            .map_err(|source| TraceError::cannot(MAKE, &tracefs.shown(&directory), &source))?;
        let instance =
            Arc::new(Self { tracefs: Arc::clone(tracefs), directory, name, state: Mutex::default() });
        own.push(Arc::clone(&instance));
        Ok(instance)
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
        let file = self.tracefs.open(&relative, options);
        let file =
            file.map_err(|source| TraceError::cannot("read", &self.tracefs.shown(&relative), &source))?;
        let file = SharedFile::new(file);
        state.files.push(file.clone());
        Ok(file)
    }

    /// Closes the instance's files and removes it; does nothing if that has been done.
    pub(super) fn remove(&self) -> Result<(), TraceError> {
        let mut state = lock(&self.state);
        if state.is_removed {
            return Ok(());
        }
        state.files.drain(..).for_each(|file| file.close());
        // If removal fails, at least nothing is traced any more. The result of the removal itself is what
        // counts.
        let _ = self.write("tracing_on", "0");
        let _ = self.write("events/enable", "0");
        remove_directory(&self.tracefs, &self.directory, REMOVE_ATTEMPTS)
            .map_err(|source| TraceError::not_removed(&self.tracefs.shown(&self.directory), &source))?;
        state.is_removed = true;
        drop(state);
        lock(&OWN).retain(|other| other.name != self.name);
        Ok(())
    }
}

/// An open file of an instance, which can be closed from elsewhere: the kernel does not remove an instance while one of
/// its files is open, so removal must be able to close them all, wherever they are held.
///
/// Its user holds the lock for the length of one call that does not block. The other side takes it only when
/// the instance is removed.
#[derive(Debug, Clone)]
pub(super) struct SharedFile(Arc<Mutex<Option<File>>>);

impl SharedFile {
    pub(super) fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(Some(file))))
    }

    /// Uses the file; fails if it has been closed.
    pub(super) fn with<T>(&self, action: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        match lock(&self.0).as_ref() {
            Some(file) => action(file),
            None => Err(io::Error::new(io::ErrorKind::NotConnected, "the trace instance was removed")),
        }
    }

    pub(super) fn close(&self) {
        drop(lock(&self.0).take());
    }
}

/// Removes all instances of this process; their pipes return errors from then on. Meant for a process that
/// must exit at once: call it from a thread, such as a handler of `ctrlc`, not from within a signal handler.
/// Returns the errors of what could not be removed.
pub fn remove_own() -> Vec<TraceError> {
    let own: Vec<Arc<Instance>> = lock(&OWN).clone();
    own.iter().filter_map(|instance| instance.remove().err()).collect()
}

/// Removes an instance's directory, with retries while it is busy. A missing one counts as removed.
pub(super) fn remove_directory(tracefs: &Tracefs, directory: &str, attempts: u32) -> io::Result<()> {
    for attempt in 1.. {
        match fs::remove_dir(tracefs.path(directory)) {
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

/// An instance whose process no longer exists.
#[derive(Debug)]
pub struct Leftover {
    /// Name of its directory below `instances/`.
    pub name: String,
    /// Reason why it still exists; `None` if it has been removed.
    pub problem: Option<TraceError>,
}

/// Removes lowlat's instances whose process is dead, and reports them. Instances of a running lowlat are
/// kept: they are identified by the process's number and start time, and the kernel does not remove an
/// instance in use.
pub fn remove_leftovers(tracefs: &Tracefs) -> Vec<Leftover> {
    let is_leftover = |name: &String| {
        owner(name).is_some_and(|(pid, started)| start_time(pid).is_none_or(|present| present != started))
    };
    let names = tracefs.list("instances").into_iter().filter(is_leftover);
    let remove = |name: String| {
        let directory = format!("instances/{name}");
        let answer = remove_directory(tracefs, &directory, 1);
        let problem = answer.err().map(|source| TraceError::not_removed(&tracefs.shown(&directory), &source));
        Leftover { name, problem }
    };
    names.map(remove).collect()
}

/// The process that created an instance, by its number and start time; `None` if it is not lowlat's.
fn owner(name: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Start time of a process, in clock ticks since boot; `None` if it does not exist, or is dead and not yet
/// waited for.
pub(super) fn start_time(pid: u32) -> Option<u64> {
    let stat = TaskStat::read(&Root::live(), &format!("/proc/{pid}/stat")).into_known()?;
    stat.usage.filter(|_| !stat.is_dead()).map(|usage| usage.start_ticks)
}

/// Maximum number of instances inspected.
const INSTANCES_MAX: usize = 256;

/// Lists the other traces that are active on this host, one phrase each: `top level: tracer "function" is on`. Ignores
/// the instance `own`.
pub(super) fn other_tracers(tracefs: &Tracefs, own: &str) -> Vec<String> {
    let mut facts = activity(tracefs, "", "top level");
    for name in tracefs.list("instances").iter().filter(|name| *name != own).take(INSTANCES_MAX) {
        facts.extend(activity(tracefs, &format!("instances/{name}/"), &format!("instance \"{name}\"")));
    }
    facts
}

/// Describes one trace by its tracer and events. A trace that is switched off (`tracing_on`) still costs time if its
/// events or tracer are on, because their code still runs.
fn activity(tracefs: &Tracefs, prefix: &str, label: &str) -> Vec<String> {
    let text = |file: &str| tracefs.text(&format!("{prefix}{file}")).unwrap_or_default();
    let mut facts = Vec::new();
    let tracer = text("current_tracer");
    if !matches!(tracer.as_str(), "" | "nop") {
        facts.push(format!("{label}: tracer \"{tracer}\" is on"));
    }
    let events = text("set_event");
    let mut names = events.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    if let Some(first) = names.next() {
        let facts_of = match names.count() {
            0 => format!("{label}: event {first} is on"),
            more => format!("{label}: {} events are on, starting with {first}", more + 1),
        };
        facts.push(facts_of);
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_their_owner() {
        assert_eq!(owner("lowlat-12-3456-0"), Some((12, 3456)));
        for name in [
            "lowlat-",
            "lowlat-12",
            "lowlat-x-1-0",
            "lowlat--1",
            "other-12-3456-0",
            "lowlat-12-99999999999999999999",
        ] {
            assert_eq!(owner(name), None, "{name}");
        }
    }

    #[test]
    fn a_process_has_one_start_time() {
        let own = start_time(std::process::id());
        assert!(own.is_some_and(|ticks| ticks > 0));
        assert_eq!(own, start_time(std::process::id()));
        assert_eq!(start_time(u32::MAX), None);
    }
}
