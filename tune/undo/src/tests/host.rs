//! A small tree in place of a host, and a plan for it.

use super::super::*;
use std::{
    fmt::Write,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

/// A tree, with a log beside it.
pub(crate) struct Host {
    /// Keeps the directory until the test ends.
    _dir: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) log: PathBuf,
}

/// A memory file system if available: these tests run thousands of fsyncs.
fn temporary_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The user who runs the test and owns everything that it creates.
pub(crate) fn me() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

pub(crate) fn file(text: &str, mode: u32) -> State {
    let (uid, gid) = me();
    let bytes = text.as_bytes().to_vec();
    State::File(FileState { bytes, mode, uid, gid, mtime: None, xattrs: std::collections::BTreeMap::new() })
}

impl Host {
    pub(crate) fn empty() -> Self {
        let dir = temporary_directory();
        let (root, log) = (dir.path().join("host"), dir.path().join("undo"));
        fs::create_dir(&root).unwrap();
        Self { _dir: dir, root, log }
    }

    pub(crate) fn new() -> Self {
        let host = Self::empty();
        for dir in ["sys/devices/x", "sys/class", "etc/default"] {
            fs::create_dir_all(host.root.join(dir)).unwrap();
        }
        host.put("sys/devices/x/value", "0\n", 0o644);
        symlink("../devices/x", host.root.join("sys/class/x")).unwrap();
        host.put("etc/existing", "old text\n", 0o640);
        host.put("etc/gone", "to be removed", 0o600);
        symlink("/etc/existing", host.root.join("etc/link")).unwrap();
        host.put("etc/plain", "plain", 0o755);
        host
    }

    pub(crate) fn put(&self, path: &str, text: &str, mode: u32) {
        let path = self.root.join(path);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
        fs::File::open(&path).unwrap().set_modified(time).unwrap();
    }

    pub(crate) fn writer(&self, faults: Faults) -> Writer {
        Writer::below(&self.root).unwrap().with_faults(faults)
    }

    pub(crate) fn open(&self, faults: Faults) -> Result<UndoLog, UndoError> {
        UndoLog::open(self.directory()?, self.writer(faults), |_| true)
    }

    /// The log's directory, created if missing.
    pub(crate) fn directory(&self) -> Result<PrivateDirectory, HostError> {
        PrivateDirectory::create(self.log.parent().unwrap(), &["undo"])
    }

    /// The log, read without a lock.
    pub(crate) fn inspection(&self) -> Inspection {
        let dir = PrivateDirectory::open(self.log.parent().unwrap(), &["undo"]).unwrap();
        UndoLog::inspect(dir.as_ref()).unwrap()
    }

    /// A step from the current state.
    pub(crate) fn step(&self, id: &str, target: TargetSpec, new: State) -> UndoStep {
        let writer = self.writer(Faults::none());
        let old = match target.kind.as_str() {
            "value" => writer.read_value(&target.name),
            _ => writer.read_file(&target.name),
        };
        UndoStep { id: id.to_owned(), target, old: old.unwrap(), new }
    }

    /// Returns steps with every kind of change.
    pub(crate) fn plan(&self) -> Vec<UndoStep> {
        let (uid, gid) = me();
        let link = State::Link { to: "../somewhere".to_owned(), uid, gid, mtime: None, context: None };
        let value = TargetSpec::value("/sys/class/x/value", Comparison::Number);
        vec![
            self.step("value", value, State::Value("7\n".to_owned())),
            self.step("replace", TargetSpec::file("/etc/existing"), file("new text, longer\n", 0o600)),
            self.step("create", TargetSpec::file("/etc/a/b/made"), file("made", 0o644)),
            self.step("beside", TargetSpec::file("/etc/a/beside"), file("", 0o644)),
            self.step("remove", TargetSpec::file("/etc/gone"), State::Absent),
            self.step("unlink", TargetSpec::file("/etc/link"), file("no link any more", 0o644)),
            self.step("link", TargetSpec::file("/etc/plain"), link),
        ]
    }

    /// The bytes of all segments of the log.
    pub(crate) fn records(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = fs::read_dir(&self.log).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file());
        let mut all: Vec<_> = files.map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        all.sort();
        all
    }

    /// The whole tree as text. Modification times are included for files and links if `with_times` is set,
    /// but never for directories or the kernel's attributes.
    pub(crate) fn tree(&self, with_times: bool) -> String {
        let mut text = String::new();
        describe(&self.root, Path::new(""), with_times, &mut text);
        text
    }
}

fn describe(root: &Path, at: &Path, with_times: bool, text: &mut String) {
    let mut names: Vec<_> = fs::read_dir(root.join(at)).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    for name in names {
        let path = at.join(&name);
        let full = root.join(&path);
        let meta = full.symlink_metadata().unwrap();
        let (shown, mode, uid, gid) = (path.display(), meta.mode(), meta.uid(), meta.gid());
        write!(text, "{shown} {mode:o} {uid}:{gid}").unwrap();
        if with_times && !meta.is_dir() && !path.starts_with("sys") {
            write!(text, " {}.{:09}", meta.mtime(), meta.mtime_nsec()).unwrap();
        }
        if meta.is_symlink() {
            write!(text, " -> {}", fs::read_link(&full).unwrap().display()).unwrap();
        } else if meta.is_file() {
            write!(text, " {:?}", String::from_utf8_lossy(&fs::read(&full).unwrap())).unwrap();
        }
        text.push('\n');
        if meta.is_dir() {
            describe(root, &path, with_times, text);
        }
    }
}
