//! The one place that joins paths: a live host, a directory that holds its tree, or a capture file.

mod archive;
mod directory;
mod limits;
pub(crate) mod manifest;
mod ownership;
mod polled;
mod recording;
mod tree;

pub use archive::ArchiveError;
pub(crate) use archive::{DENIED_LIST, FAILED_LIST, NAMES_LIST, VALUELESS_LIST};
pub use limits::Limit;

use lowlat_host::{CpuSet, Reading, snapshot::component_matches};
pub use ownership::Ownership;
pub use polled::PolledFile;
pub(crate) use recording::{Outcome, Recording};
use std::{
    io,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
use thiserror::Error;
use tree::Tree;

/// Bytes that are read of one file at most; the largest file of interest (/proc/kallsyms is not one) is far smaller.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Where captures keep what did not come from files: netlink, D-Bus and system calls, one file an interface.
pub(crate) const INTERFACES: &str = "/.lowlat/interface";

/// Symbolic links followed on one path at most, as the kernel does (MAXSYMLINKS).
const LINKS_MAX: u32 = 40;

/// Where the files of a host are. Paths are absolute as the host would name them: "/proc/cpuinfo".
///
/// In a directory or capture, symbolic links are followed inside the root only: an absolute link starts at the root
/// again, and `..` stops there.
#[derive(Debug)]
pub struct Root {
    backend: Backend,
    label: String,
    /// What was seen since recording began; none while nothing is recorded.
    recording: Mutex<Option<Recording>>,
    /// Bytes that were read so far. A sum that orders nothing else, so each access is relaxed.
    read_bytes: AtomicU64,
}

#[derive(Debug)]
enum Backend {
    Live,
    Directory(directory::Directory),
    Capture(Tree),
}

/// Why a root cannot be opened.
#[derive(Debug, Error)]
pub enum RootError {
    /// Nothing is there, or it may not be read.
    #[error(
        "cannot open {path} as a host root: {source}; name a directory holding proc/ and sys/, or a capture file"
    )]
    Open {
        /// What the user named.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no archive of a host's tree.
    #[error("cannot read {path} as a capture: {source}")]
    Archive {
        /// What the user named.
        path: String,
        /// What is wrong with it.
        source: ArchiveError,
    },
    /// There is neither a proc nor a sys below it.
    #[error("{path} holds neither proc/ nor sys/ and so is no host root; name the directory above them")]
    NoHost {
        /// What the user named.
        path: String,
    },
    /// It has a CPU that no kernel can have.
    #[error(
        "cannot read {path} as a host root: it has CPU {cpu}, and Linux supports CPUs 0-{max}\nhint: capture the host \
         again with `lowlat host capture`",
        max = lowlat_host::CPU_ID_MAX
    )]
    TooManyCpus {
        /// What the user named.
        path: String,
        /// The first CPU beyond the limit.
        cpu: u64,
    },
}

/// What stands at a path, links not followed.
pub(crate) enum Entry {
    File,
    Directory,
    Link(String),
}

impl Root {
    /// The running host.
    pub fn live() -> Self {
        Self::with_backend(Backend::Live, "/")
    }

    /// The root that the user named: `/` is the running host, a directory a tree, a file a capture.
    ///
    /// # Errors
    /// [`RootError`] when nothing readable is there, or when it holds no host.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        let label = path.display().to_string();
        let open_error = |source| RootError::Open { path: label.clone(), source };
        if path == Path::new("/") {
            return Ok(Self::live());
        }
        if !std::fs::metadata(path).map_err(open_error)?.is_dir() {
            let file = std::fs::File::open(path).map_err(open_error)?;
            return Self::from_capture(&label, io::BufReader::new(file));
        }
        let directory = directory::Directory::open(path).map_err(open_error)?;
        Self::with_backend(Backend::Directory(directory), &label).holding_host()
    }

    /// The root held in a capture, compressed or not; `label` is what messages call it.
    ///
    /// # Errors
    /// [`RootError`] when it is no archive, is damaged, or holds no host.
    pub fn from_capture(label: &str, archive: impl io::Read) -> Result<Self, RootError> {
        let tree =
            archive::load(archive).map_err(|source| RootError::Archive { path: label.into(), source })?;
        Self::with_backend(Backend::Capture(tree), label).holding_host()
    }

    /// A root made of these files, for tests and fuzzing. Paths are cleaned as those of archives are.
    pub fn in_memory(label: &str, files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Self::with_backend(Backend::Capture(archive::plant_files(files)), label)
    }

    fn with_backend(backend: Backend, label: &str) -> Self {
        Self { backend, label: label.into(), recording: Mutex::new(None), read_bytes: AtomicU64::new(0) }
    }

    fn holding_host(self) -> Result<Self, RootError> {
        if !self.exists("/proc") && !self.exists("/sys") {
            return Err(RootError::NoHost { path: self.label });
        }
        match self.impossible_cpu() {
            Some(cpu) => Err(RootError::TooManyCpus { path: self.label, cpu }),
            None => Ok(self),
        }
    }

    /// The lowest CPU below /sys whose number is beyond the kernel's limit.
    fn impossible_cpu(&self) -> Option<u64> {
        let names = self.list("/sys/devices/system/cpu").into_known().unwrap_or_default();
        let number = |name: &String| {
            let digits = name.strip_prefix("cpu")?;
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse().unwrap_or(u64::MAX))
        };
        names.iter().filter_map(number).filter(|cpu| *cpu > u64::from(lowlat_host::CPU_ID_MAX)).min()
    }

    /// What the user named.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether this is the running host, so that netlink, D-Bus and affinity speak of it too.
    pub fn is_live(&self) -> bool {
        matches!(self.backend, Backend::Live)
    }

    /// Whether this is a capture file.
    pub fn is_capture(&self) -> bool {
        matches!(self.backend, Backend::Capture(_))
    }

    /// The bytes of a regular file, [`FILE_BYTES_MAX`] at most.
    pub fn read_bytes(&self, path: &str) -> Reading<Vec<u8>> {
        let result = match &self.backend {
            Backend::Live => directory::read_file(Path::new(path)),
            Backend::Directory(directory) => self.resolve(path).and_then(|path| directory.read(&path)),
            Backend::Capture(tree) => self.resolve(path).and_then(|path| tree.read(&path)),
        };
        let reading = reading_of(path, result.and_then(|bytes| self.within_budget(bytes)));
        self.record(path, |recording, path, exists| recording.note_read(path, &reading, exists));
        reading
    }

    /// Refuses what is read beyond the budget of the root. Readers keep what they read, and in a hostile tree many
    /// links can lead to one large file.
    fn within_budget(&self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let budget = match &self.backend {
            Backend::Live => return Ok(bytes),
            Backend::Directory(_) => limits::DIRECTORY_READ_BYTES,
            Backend::Capture(tree) => {
                limits::CAPTURE_READ_BYTES.max(limits::CONTENT_READS_MAX * tree.content_bytes())
            }
        };
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let before = self.read_bytes.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) <= budget {
            Ok(bytes)
        } else {
            Err(io::Error::other(format!("not read: {budget} bytes of this root were read already")))
        }
    }

    /// Facts that do not come from files (netlink, D-Bus, system calls), as bytes of the reader's own choosing.
    ///
    /// On the running host `read` is called. In a directory or capture the bytes that were kept under `name` are
    /// given, or `Absent` when there are none. `name` is the reader's own: letters, digits and `-_.@`, with `/`
    /// between components ("ethtool/eth0/channels"), no `..`.
    pub fn interface(&self, name: &str, read: impl FnOnce() -> Reading<Vec<u8>>) -> Reading<Vec<u8>> {
        let path = format!("{INTERFACES}/{name}");
        if !self.is_live() {
            return self.read_bytes(&path);
        }
        let reading = read();
        self.record(&path, |recording, path, _| recording.note_read(path, &reading, false));
        reading
    }

    /// The text of a file without trailing white space. Bytes that are no UTF-8 make it unparsable.
    pub fn read(&self, path: &str) -> Reading<String> {
        self.read_bytes(path).and_then(|bytes| match String::from_utf8(bytes) {
            Ok(text) => {
                Reading::Known(text.trim_end_matches(|c: char| c.is_whitespace() || c == '\0').to_owned())
            }
            Err(error) => {
                let lossy = String::from_utf8_lossy(error.as_bytes()).into_owned();
                Reading::unparsable(path, &lossy, "text in UTF-8")
            }
        })
    }

    /// A file read as one value.
    pub fn read_as<T: std::str::FromStr>(&self, path: &str, expected: &str) -> Reading<T> {
        self.read(path).parse(path, expected, |text| text.parse().ok())
    }

    /// A file read as a cpulist (`0-3,8`).
    pub fn read_cpu_list(&self, path: &str) -> Reading<CpuSet> {
        self.read(path).parse(path, "a CPU list such as 0-3,8", |text| CpuSet::parse_list(text).ok())
    }

    /// A file read as a CPU mask (`ff,00000000`).
    pub fn read_cpu_mask(&self, path: &str) -> Reading<CpuSet> {
        self.read(path)
            .parse(path, "a hexadecimal CPU mask such as ff,00000000", |text| CpuSet::parse_mask(text).ok())
    }

    /// The names in a directory, sorted.
    pub fn list(&self, path: &str) -> Reading<Vec<String>> {
        let result = match &self.backend {
            Backend::Live => directory::list(Path::new(path)),
            Backend::Directory(directory) => self.resolve(path).and_then(|path| directory.list(&path)),
            Backend::Capture(tree) => self.resolve(path).and_then(|path| tree.list(&path)),
        };
        let reading = reading_of(path, result).map(|mut names| {
            names.sort();
            names
        });
        self.record(path, |recording, path, exists| recording.note_list(path, &reading, exists));
        reading
    }

    /// The text of a symbolic link.
    pub fn read_link(&self, path: &str) -> Reading<String> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        self.record(path, Recording::note_existence);
        let entry = match &self.backend {
            Backend::Live => directory::entry(Path::new(path)),
            _ => self.resolve(parent).and_then(|parent| self.entry(&format!("{parent}/{name}"))),
        };
        reading_of(
            path,
            entry.and_then(|entry| match entry {
                Entry::Link(target) => Ok(target),
                _ => Err(io::ErrorKind::NotFound.into()),
            }),
        )
    }

    /// The path with every link followed, below this root: "/sys/class/net/eth0" to "/sys/devices/pci…/net/eth0".
    pub fn real_path(&self, path: &str) -> Reading<String> {
        let result = match &self.backend {
            Backend::Live => std::fs::canonicalize(path).map(|path| path.to_string_lossy().into_owned()),
            _ => self.resolve(path).and_then(|path| self.entry(&path).map(|_| path)),
        };
        self.record(path, Recording::note_existence);
        reading_of(path, result)
    }

    /// Whether something stands at the path, readable or not.
    pub fn exists(&self, path: &str) -> bool {
        self.record(path, Recording::note_existence);
        match &self.backend {
            Backend::Live => Path::new(path).exists(),
            _ => self.resolve(path).and_then(|path| self.entry(&path)).is_ok(),
        }
    }

    /// The paths that match a glob with `*` inside components, sorted. Directories that may not be read match nothing.
    pub fn glob(&self, pattern: &str) -> Vec<String> {
        let mut paths = vec![String::new()];
        for component in pattern.split('/').filter(|component| !component.is_empty()) {
            paths = paths.iter().flat_map(|path| self.step(path, component)).collect();
        }
        paths.retain(|path| self.exists(path));
        paths
    }

    fn step(&self, path: &str, component: &str) -> Vec<String> {
        if !component.contains('*') {
            return vec![format!("{path}/{component}")];
        }
        let directory = if path.is_empty() { "/" } else { path };
        let names = self.list(directory).into_known().unwrap_or_default();
        names
            .iter()
            .filter(|name| component_matches(component, name))
            .map(|name| format!("{path}/{name}"))
            .collect()
    }

    fn entry(&self, path: &str) -> io::Result<Entry> {
        match &self.backend {
            Backend::Live => directory::entry(Path::new(path)),
            Backend::Directory(directory) => directory.entry(path),
            Backend::Capture(tree) => tree.entry(path),
        }
    }

    /// Begins to keep what is read, listed and found, until [`Root::take_recording`].
    pub(crate) fn start_recording(&self) {
        if let Ok(mut slot) = self.recording.lock() {
            *slot = Some(Recording::default());
        }
    }

    /// Ends recording; gives what was seen.
    pub(crate) fn take_recording(&self) -> Recording {
        self.recording.lock().ok().and_then(|mut slot| slot.take()).unwrap_or_default()
    }

    /// While recording, notes something about `path`: the links on the way to it, then, under its real path and with
    /// whether anything stands there, whatever `note` says.
    fn record(&self, path: &str, note: impl FnOnce(&mut Recording, &str, bool)) {
        let Ok(mut slot) = self.recording.lock() else { return };
        let Some(recording) = slot.as_mut() else { return };
        let followed = self.follow(path, |link, target| recording.note_link(link, target));
        if let Ok(real) = followed {
            let exists = self.entry(&real).is_ok();
            note(recording, &real, exists);
        }
    }

    /// Follows links below this root, the last component's too.
    fn resolve(&self, path: &str) -> io::Result<String> {
        self.follow(path, |_, _| true)
    }

    /// Follows those links below this root that `on_link` (path, target) says are to be followed.
    fn follow(&self, path: &str, mut on_link: impl FnMut(&str, &str) -> bool) -> io::Result<String> {
        let mut done = String::new();
        let mut ahead: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let (mut links, mut visits) = (0, 0);
        while let Some(component) = ahead.pop() {
            let parent_bytes = done.rfind('/').unwrap_or_default();
            match component.as_str() {
                "" | "." => continue,
                ".." => {
                    done.truncate(parent_bytes);
                    continue;
                }
                _ => {}
            }
            let parent_bytes = done.len();
            done.push('/');
            done.push_str(&component);
            visits += 1;
            if visits > limits::WALK_MAX || done.len() > limits::PATH_BYTES_MAX {
                return Err(io::Error::other("the path is too long with its symbolic links followed"));
            }
            if let Ok(Entry::Link(target)) = self.entry(&done) {
                if !on_link(&done, &target) {
                    continue;
                }
                links += 1;
                if links > LINKS_MAX {
                    return Err(io::Error::other("too many levels of symbolic links"));
                }
                done.truncate(if target.starts_with('/') { 0 } else { parent_bytes });
                ahead.extend(target.split('/').rev().map(str::to_owned));
            }
        }
        Ok(if done.is_empty() { "/".to_owned() } else { done })
    }
}

/// The four answers of an access. What the kernel says of an attribute without a value (EINVAL of a link that is
/// down, EOPNOTSUPP) is absence; other failures are kept with their text.
fn reading_of<T>(path: &str, result: io::Result<T>) -> Reading<T> {
    use io::ErrorKind as K;
    match result {
        Ok(value) => Reading::Known(value),
        Err(error) => match error.kind() {
            K::NotFound | K::NotADirectory | K::InvalidInput | K::Unsupported => Reading::Absent,
            K::PermissionDenied => Reading::Denied,
            _ => match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
                Some(rustix::io::Errno::NODEV | rustix::io::Errno::NXIO | rustix::io::Errno::NODATA) => {
                    Reading::Absent
                }
                _ => Reading::unparsable(path, &error.to_string(), "a readable file or directory"),
            },
        },
    }
}

#[cfg(test)]
mod tests;
