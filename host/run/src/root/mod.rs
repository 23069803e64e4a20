//! The one place that joins paths: a live host, a directory with a host's tree, or a capture file.

mod archive;
mod directory;
mod limits;
pub(crate) mod manifest;
mod ownership;
mod recording;
#[cfg(any(test, feature = "testing"))]
mod testing;
mod tree;

pub use archive::ArchiveError;
pub(crate) use archive::{DENIED_LIST, FAILED_LIST, NAMES_LIST, VALUELESS_LIST};

use lowlat_host::{CpuSet, Reading, snapshot::component_matches};
pub use ownership::Ownership;
pub use ownership::PolledFile;
pub(crate) use recording::{Outcome, Recording};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
};
#[cfg(any(test, feature = "testing"))]
pub use testing::{Replaced, Replacement};
use thiserror::Error;
use tree::Tree;

/// Maximum number of bytes read from a file. The largest file of interest (which excludes /proc/kallsyms) is
/// far smaller.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Directory in captures for data that did not come from files: netlink, D-Bus and system calls, one file per
/// interface.
pub(crate) const INTERFACES: &str = "/.lowlat/interface";

/// Maximum number of symbolic links followed on one path, as in the kernel (MAXSYMLINKS).
const LINKS_MAX: u32 = 40;

/// The location of a host's files. Paths are absolute, as on the host: "/proc/cpuinfo".
///
/// In a directory or capture, symbolic links stay inside the root: an absolute link starts at the root, and
/// `..` stops there.
#[derive(Debug)]
pub struct Root {
    backend: Backend,
    label: String,
    /// Everything read since recording started; `None` while not recording.
    recording: Mutex<Option<Recording>>,
    /// Places that were not read, whose entries make up a list of the snapshot.
    unread: Mutex<BTreeMap<String, Reading<()>>>,
    /// Bytes read so far. A sum that orders nothing else, so each access is relaxed.
    read_bytes: AtomicU64,
}

#[derive(Debug)]
enum Backend {
    Live,
    /// A directory that contains a host's tree, without links in its path.
    Directory(PathBuf),
    Capture(Tree),
}

/// Reason why a root cannot be opened.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct RootError(String);

/// Object at a path, without following links.
pub(crate) enum Entry {
    File,
    Directory,
    Link(String),
}

impl Root {
    /// Returns the root of the running host.
    pub fn live() -> Self {
        Self::with_backend(Backend::Live, "/")
    }

    /// Opens the root that the user gave: `/` is the running host, a directory a tree, a file a capture.
    ///
    /// # Errors
    /// [`RootError`] if nothing readable exists there, or it contains no host.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        let label = path.display().to_string();
        let open_error = |error| {
            RootError(format!(
                "cannot open {label} as a host root: {error}\nhint: name a directory that contains proc/ and sys/, or a \
                 capture file"
            ))
        };
        if path == Path::new("/") {
            return Ok(Self::live());
        }
        if !std::fs::metadata(path).map_err(open_error)?.is_dir() {
            let file = std::fs::File::open(path).map_err(open_error)?;
            return Self::from_capture(&label, io::BufReader::new(file));
        }
        let base = path.canonicalize().map_err(open_error)?;
        Self::with_backend(Backend::Directory(base), &label).holding_host()
    }

    /// Opens the root in a capture, compressed or not; messages name it `label`.
    ///
    /// # Errors
    /// [`RootError`] if it is not an archive, is damaged, or contains no host.
    pub fn from_capture(label: &str, archive: impl io::Read) -> Result<Self, RootError> {
        let tree = archive::load(archive)
            .map_err(|error| RootError(format!("cannot read {label} as a capture: {error}")))?;
        Self::with_backend(Backend::Capture(tree), label).holding_host()
    }

    /// Creates a root from these files, for tests and fuzzing. Paths are cleaned like those of archives.
    pub fn in_memory(label: &str, files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Self::with_backend(Backend::Capture(archive::plant_files(files)), label)
    }

    fn with_backend(backend: Backend, label: &str) -> Self {
        Self {
            backend,
            label: label.into(),
            recording: Mutex::new(None),
            unread: Mutex::default(),
            read_bytes: AtomicU64::new(0),
        }
    }

    fn holding_host(self) -> Result<Self, RootError> {
        if !self.exists("/proc") && !self.exists("/sys") {
            return Err(RootError(format!(
                "cannot open {} as a host root: it contains neither proc/ nor sys/\nhint: name the directory above them",
                self.label
            )));
        }
        match self.impossible_cpu() {
            Some(cpu) => Err(RootError(format!(
                "cannot read {} as a host root: it has CPU {cpu}, and Linux supports CPUs 0-{}\nhint: capture the host \
                 again with `lowlat host capture`",
                self.label,
                lowlat_host::CPU_ID_MAX
            ))),
            None => Ok(self),
        }
    }

    /// The lowest CPU below /sys whose number exceeds the kernel's limit.
    fn impossible_cpu(&self) -> Option<u64> {
        let names = self.list("/sys/devices/system/cpu").into_known().unwrap_or_default();
        let number = |name: &String| {
            let digits = name.strip_prefix("cpu")?;
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse().unwrap_or(u64::MAX))
        };
        names.iter().filter_map(number).filter(|cpu| *cpu > u64::from(lowlat_host::CPU_ID_MAX)).min()
    }

    /// The path that the user gave.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// True for the running host, which netlink, D-Bus and affinity also describe.
    pub fn is_live(&self) -> bool {
        matches!(self.backend, Backend::Live)
    }

    pub fn is_capture(&self) -> bool {
        matches!(self.backend, Backend::Capture(_))
    }

    /// Reads a file as [`Root::read_bytes`] does, as text with invalid UTF-8 replaced.
    pub fn read_lossy(&self, path: &str) -> Reading<String> {
        self.read_bytes(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads the bytes of a regular file, at most [`FILE_BYTES_MAX`].
    pub fn read_bytes(&self, path: &str) -> Reading<Vec<u8>> {
        self.read_part(path, directory::read_file)
    }

    /// Reads the part of a regular file that `part` returns. A capture keeps that part in place of the file.
    pub fn read_part(
        &self,
        path: &str,
        part: impl FnOnce(&std::fs::File) -> io::Result<Vec<u8>>,
    ) -> Reading<Vec<u8>> {
        let result = self.access(path, |path| part(&directory::open_file(path)?), Tree::read);
        let reading = reading_of(path, result.and_then(|bytes| self.within_budget(bytes)));
        self.record(path, |recording, path, exists| recording.note_read(path, &reading, exists));
        reading
    }

    /// Fails after the root's read limit. Readers keep what they read, and in a hostile tree many links can
    /// lead to one large file.
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
            Err(io::Error::other(format!("not read: {budget} bytes of this root have already been read")))
        }
    }

    /// Facts that do not come from files (netlink, D-Bus, system calls), as bytes in a format that the reader
    /// chooses.
    ///
    /// On the running host, calls `read`. In a directory or capture, returns the bytes kept under `name`, or
    /// `Absent` if there are none. The reader chooses `name`: letters, digits and `-_.@`, with `/` between
    /// components ("ethtool/eth0/channels"), without `..`.
    pub fn interface(&self, name: &str, read: impl FnOnce() -> Reading<Vec<u8>>) -> Reading<Vec<u8>> {
        let path = format!("{INTERFACES}/{name}");
        if !self.is_live() {
            return self.read_bytes(&path);
        }
        let reading = read();
        self.record(&path, |recording, path, _| recording.note_read(path, &reading, false));
        reading
    }

    /// Reads a file as text without trailing white space. Invalid UTF-8 is unparsable.
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

    /// Reads a file as one value.
    pub fn read_as<T: std::str::FromStr>(&self, path: &str, expected: &str) -> Reading<T> {
        self.read(path).parse(path, expected, |text| text.parse().ok())
    }

    /// Reads a file as a CPU list (`0-3,8`).
    pub fn read_cpu_list(&self, path: &str) -> Reading<CpuSet> {
        self.read(path).parse(path, "a CPU list such as 0-3,8", |text| CpuSet::parse_list(text).ok())
    }

    /// Reads a file as a CPU mask (`ff,00000000`).
    pub fn read_cpu_mask(&self, path: &str) -> Reading<CpuSet> {
        self.read(path)
            .parse(path, "a hexadecimal CPU mask such as ff,00000000", |text| CpuSet::parse_mask(text).ok())
    }

    /// Lists the names in a directory, sorted.
    pub fn list(&self, path: &str) -> Reading<Vec<String>> {
        let result = self.access(path, directory::list, Tree::list);
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

    /// Follows every link of a path below this root: "/sys/class/net/eth0" to "/sys/devices/pci…/net/eth0".
    pub fn real_path(&self, path: &str) -> Reading<String> {
        let result = match &self.backend {
            Backend::Live => std::fs::canonicalize(path).map(|path| path.to_string_lossy().into_owned()),
            _ => self.resolve(path).and_then(|path| self.entry(&path).map(|_| path)),
        };
        self.record(path, Recording::note_existence);
        reading_of(path, result)
    }

    /// True if something exists at the path, readable or not.
    pub fn exists(&self, path: &str) -> bool {
        self.record(path, Recording::note_existence);
        match &self.backend {
            Backend::Live => Path::new(path).exists(),
            _ => self.resolve(path).and_then(|path| self.entry(&path)).is_ok(),
        }
    }

    /// The paths that match a glob with `*` inside components, sorted. Unreadable directories match nothing.
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

    /// Accesses what is at the end of a path: a file or directory, or a node of a capture.
    fn access<T>(
        &self,
        path: &str,
        on_disk: impl FnOnce(&Path) -> io::Result<T>,
        kept: impl FnOnce(&Tree, &str) -> io::Result<T>,
    ) -> io::Result<T> {
        match &self.backend {
            Backend::Live => on_disk(Path::new(path)),
            Backend::Directory(base) => on_disk(&place(base, &self.resolve(path)?)),
            Backend::Capture(tree) => kept(tree, &self.resolve(path)?),
        }
    }

    fn entry(&self, path: &str) -> io::Result<Entry> {
        match &self.backend {
            Backend::Live => directory::entry(Path::new(path)),
            Backend::Directory(base) => directory::entry(&place(base, path)),
            Backend::Capture(tree) => tree.entry(path),
        }
    }

    /// The value, or an empty list for a place that was not read, which is kept for [`Root::take_unread`]: such a list
    /// does not mean that there is nothing.
    pub(crate) fn or_unread<T: Default>(&self, place: &str, reading: Reading<T>) -> T {
        let missing = match reading {
            Reading::Known(value) => return value,
            missing => missing.map(|_| ()),
        };
        if let Ok(mut unread) = self.unread.lock() {
            unread.insert(place.to_owned(), missing);
        }
        T::default()
    }

    /// Returns the places that were not read since the last call.
    pub(crate) fn take_unread(&self) -> BTreeMap<String, Reading<()>> {
        self.unread.lock().map(|mut unread| std::mem::take(&mut *unread)).unwrap_or_default()
    }

    /// Starts recording what is read, listed and found, until [`Root::take_recording`].
    pub(crate) fn start_recording(&self) {
        if let Ok(mut slot) = self.recording.lock() {
            *slot = Some(Recording::default());
        }
    }

    /// Stops recording and returns what was seen.
    pub(crate) fn take_recording(&self) -> Recording {
        self.recording.lock().ok().and_then(|mut slot| slot.take()).unwrap_or_default()
    }

    /// While recording, notes a fact about `path`: the links in it, then, under its real path and with
    /// whether it exists, whatever `note` records.
    fn record(&self, path: &str, note: impl FnOnce(&mut Recording, &str, bool)) {
        let Ok(mut slot) = self.recording.lock() else { return };
        let Some(recording) = slot.as_mut() else { return };
        let followed = self.follow(path, |link, target| recording.note_link(link, target));
        if let Ok(real) = followed {
            let exists = self.entry(&real).is_ok();
            note(recording, &real, exists);
        }
    }

    /// Follows links below this root, including the last component.
    fn resolve(&self, path: &str) -> io::Result<String> {
        self.follow(path, |_, _| true)
    }

    /// Follows those links below this root for which `on_link` (path, target) returns true.
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
                return Err(io::Error::other("the path is too long after following its symbolic links"));
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

/// `path` is already resolved: absolute, without links and `..`.
fn place(base: &Path, path: &str) -> PathBuf {
    base.join(path.trim_start_matches('/'))
}

/// The four results of an access. The kernel's errors for an attribute without a value (EINVAL for a link
/// that is down, EOPNOTSUPP) mean absent; other failures are kept with their text.
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
