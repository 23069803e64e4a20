//! The host that flows act on.

use super::{FlowError, Manager, Systemctl};
use crate::boot_loader::{self, BootLoader, BootLoaderError, GrubVariable};
use crate::steps::{self, Part, Preparation};
use crate::{Programs, StateDir, SystemPrograms, targets};
use lowlat_host::{HostSnapshot, Reading};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::Plan;
use lowlat_settings::Catalogue;
use lowlat_undo::{Faults, HostError, LogMark, Target, UndoError, UndoLog, Writer};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Turns the changes of a plan into steps.
pub type Prepare = fn(&Plan, &HostSnapshot, &UndoLog, Part) -> Result<Preparation, UndoError>;
pub type Detect = fn(&Root) -> Result<Box<dyn BootLoader>, BootLoaderError>;

/// Paths of lowlat's binary in a directory tree.
const IN_TREE: [&str; 5] = [
    "/usr/local/sbin/lowlat",
    "/usr/local/bin/lowlat",
    "/usr/sbin/lowlat",
    "/usr/bin/lowlat",
    "/opt/lowlat/bin/lowlat",
];
/// [`Site::log_wait`] of the running host: two services may start at once during boot.
const LOCK_WAIT: Duration = Duration::from_secs(60);
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// A host to act on: the running one, or a directory with a host's tree.
#[derive(Debug)]
pub struct Site {
    dir: PathBuf,
    pub root: Root,
    /// The settings that plans can change.
    pub catalogue: Catalogue,
    /// lowlat's state on this host.
    pub state: StateDir,
    /// Its service manager; none for a tree.
    pub manager: Option<Box<dyn Manager>>,
    /// Its programs; none for a tree, because the running host's programs act on the running host.
    pub programs: Option<Box<dyn Programs>>,
    /// Kinds of targets beyond files, values and GRUB's variables.
    pub targets: fn() -> Vec<Box<dyn Target>>,
    pub prepare: Prepare,
    pub detect: Detect,
    /// The path of lowlat's binary for units; none if it is not installed.
    pub lowlat: Option<PathBuf>,
    /// Pause between two rounds at boot.
    pub pause: Duration,
    /// Longest wait for another process to release the undo log.
    pub log_wait: Duration,
    pub faults: Faults,
}

impl Site {
    pub fn live(catalogue: Catalogue) -> Self {
        let is_systemd = Path::new("/run/systemd/system").is_dir();
        let manager: Option<Box<dyn Manager>> =
            if is_systemd { Some(Box::new(Systemctl(SystemPrograms))) } else { None };
        Self {
            dir: PathBuf::from("/"),
            root: Root::live(),
            catalogue,
            state: StateDir::below(Path::new("/")),
            manager,
            programs: Some(Box::new(SystemPrograms)),
            targets: targets::all,
            prepare: steps::prepare,
            detect: boot_loader::detect,
            lowlat: std::env::current_exe().and_then(|path| path.canonicalize()).ok(),
            pause: Duration::from_secs(2),
            log_wait: LOCK_WAIT,
            faults: Faults::default(),
        }
    }

    /// A directory with a host's tree. Files and values are written there. What needs the running host
    /// (services, threads, interfaces, a boot loader's generator) is skipped, with the reason.
    pub fn below(dir: &Path, catalogue: Catalogue) -> Result<Self, FlowError> {
        let root = Root::open(dir).map_err(FlowError::obstacle)?;
        if root.is_capture() {
            return Err(FlowError::obstacle(format!(
                "{} is a capture file, which is read-only; name a directory, or unpack it",
                dir.display()
            )));
        }
        let lowlat = IN_TREE.into_iter().find(|path| root.exists(path)).map(PathBuf::from);
        let state = StateDir::below(dir);
        let site = Self::live(catalogue);
        Ok(Self {
            dir: dir.to_owned(),
            root,
            state,
            manager: None,
            programs: None,
            targets: targets::of_trees,
            lowlat,
            pause: Duration::ZERO,
            log_wait: Duration::ZERO,
            ..site
        })
    }

    /// The host named by its root: "/" is the running one.
    pub fn open(dir: &Path, catalogue: Catalogue) -> Result<Self, FlowError> {
        if dir == Path::new("/") { Ok(Self::live(catalogue)) } else { Self::below(dir, catalogue) }
    }

    pub fn is_live(&self) -> bool {
        self.root.is_live()
    }

    pub fn snapshot(&self) -> HostSnapshot {
        snapshot::read(&self.root, self.catalogue)
    }

    /// ID of the running boot (/proc/sys/kernel/random/boot_id).
    pub fn boot_id(&self) -> Reading<String> {
        self.root.read("/proc/sys/kernel/random/boot_id")
    }

    /// The path in the running system of a path on this host.
    pub(super) fn real(&self, path: &str) -> PathBuf {
        self.dir.join(path.trim_start_matches('/'))
    }

    /// Opens the undo log for changes. Waits for another process that uses it, at most [`Site::log_wait`].
    pub(super) fn open_log(&self) -> Result<UndoLog, FlowError> {
        // A note that cannot be read is reported where it is needed; until then all records of the log are kept.
        let is_sealed_at = |end: &LogMark| match self.state.note() {
            Ok(Some((_, seal))) => seal.is_none_or(|seal| seal.mark == *end),
            Ok(None) => true,
            Err(_) => false,
        };
        let open = || UndoLog::open(self.state.make_undo_log()?, self.writer()?, is_sealed_at);
        let log = self.with_targets(self.when_unlocked(open)?);
        if log.is_compacted() {
            self.seal(&log)?;
        }
        Ok(log)
    }

    /// Opens the undo log for reading; none if it is missing. Creates and changes nothing. Waits as
    /// [`Site::open_log`] does.
    pub(super) fn look_at_log(&self) -> Result<Option<UndoLog>, FlowError> {
        let look = || match self.state.open_undo_log()? {
            Some(dir) => UndoLog::look(dir, self.writer()?).map(Some),
            None => Ok(None),
        };
        Ok(self.when_unlocked(look)?.map(|log| self.with_targets(log)))
    }

    fn when_unlocked<T>(&self, open: impl Fn() -> Result<T, UndoError>) -> Result<T, UndoError> {
        let start = Instant::now();
        loop {
            match open() {
                Err(UndoError::Locked { .. }) if start.elapsed() < self.log_wait => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                opened => return opened,
            }
        }
    }

    fn with_targets(&self, log: UndoLog) -> UndoLog {
        // An ordinary file, so it works in a tree too.
        let log = log.with_target(Box::new(GrubVariable));
        (self.targets)().into_iter().fold(log, UndoLog::with_target)
    }

    fn writer(&self) -> Result<Writer, HostError> {
        let writer = if self.is_live() { Writer::live() } else { Writer::below(&self.dir) };
        Ok(writer?.with_faults(self.faults.clone()))
    }

    /// Milliseconds since 1970, for display.
    pub(super) fn now_unix_ms() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
    }
}
