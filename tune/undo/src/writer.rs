//! The one place that writes to a host: below a root, without leaving it, each change complete or not at all.

use super::{
    FILE_BYTES_MAX, FileState, FileTime, HostError, State, VALUE_BYTES_MAX,
    place::{self, Place},
    replace, state,
    target::Faults,
};
use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags},
    io::Errno,
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read, Write},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

/// Virtual file systems of the kernel, by the numbers of statfs(2): writing there changes the kernel. These
/// are all with tunables: sysfs, proc, debugfs, tracefs, cgroup 1 and 2, configfs, resctrl.
const KERNEL_FILE_SYSTEMS: [u32; 8] =
    [0x6265_6572, 0x9fa0, 0x6462_6720, 0x7472_6163, 0x0027_e0eb, 0x6367_7270, 0x6265_6570, 0x0765_5821];
/// Maximum size of an extended attribute, or of the list of their names; the kernel's own limit.
const XATTR_BYTES_MAX: usize = 64 << 10;

/// Writes to a host, all of it below one root.
///
/// A path is walked name by name with every directory held open. Links are followed inside the root only:
/// absolute ones start at the root, as in a chroot, and one that climbs above the root is an error. So
/// nothing outside a temporary tree can be reached by accident, and no link planted in a tree redirects
/// lowlat.
#[derive(Debug)]
pub struct Writer {
    root: OwnedFd,
    is_live: bool,
    pub(super) faults: Faults,
}

impl Writer {
    /// Writes below `dir`. The root of the running host is rejected here; see [`Writer::live`].
    pub fn below(dir: &Path) -> Result<Self, HostError> {
        let writer = Self::open(dir, false)?;
        let id = |fd: &OwnedFd| fs::fstat(fd).map(|s| (s.st_dev, s.st_ino)).ok();
        if id(&writer.root) == id(&Self::open(Path::new("/"), true)?.root) {
            let path = dir.display();
            return Err(HostError::Unfit(format!(
                "{path} is the root of the running host; use Writer::live to allow that"
            )));
        }
        Ok(writer)
    }

    /// Writes to the running host.
    pub fn live() -> Result<Self, HostError> {
        Self::open(Path::new("/"), true)
    }

    fn open(dir: &Path, is_live: bool) -> Result<Self, HostError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::open(dir, flags, Mode::empty())
            .map_err(|e| HostError::io("open", &dir.display().to_string(), e))?;
        Ok(Self { root, is_live, faults: Faults::default() })
    }

    /// True if this writes to the running host. Services, threads and interfaces are not files but always those of the
    /// running host, so a target of such a kind must reject any other writer.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// The same writer, with faults for tests.
    #[must_use]
    pub fn with_faults(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    pub(super) fn find(&self, path: &str, follow_last: bool) -> Result<Place, HostError> {
        place::find(self.root.as_fd(), path, follow_last)
    }

    /// Reads the value file at `path`; links are followed.
    pub fn read_value(&self, path: &str) -> Result<State, HostError> {
        let place = self.find(path, true)?;
        if place.has_no_directory() {
            return Ok(State::Absent);
        }
        let Some(file) = place.open_to_read()? else { return Ok(State::Absent) };
        let stat = fs::fstat(&file).map_err(|e| HostError::io("stat", path, e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(wrong_kind(&place.real, stat.st_mode, "a regular file"));
        }
        let bytes = read_bounded(file, path, VALUE_BYTES_MAX)?;
        String::from_utf8(bytes).map(State::Value).map_err(|error| {
            let raw: String = String::from_utf8_lossy(error.as_bytes()).chars().take(200).collect();
            HostError::not_text(path, &raw)
        })
    }

    /// Writes `text` to the value file at `path` in one write; links are followed. In a tree on a disk (in a
    /// test) the file is replaced as a whole instead, because a disk can store half a write and the kernel's
    /// attributes cannot.
    pub fn write_value(&self, path: &str, text: &str) -> Result<(), HostError> {
        self.write_value_or(path, text, text)
    }

    /// The same for an attribute that shows its choices with the current one in brackets. In a tree on a disk
    /// the brackets are moved, as the kernel would.
    pub(super) fn write_choice(&self, path: &str, word: &str) -> Result<(), HostError> {
        let present = self.read_value(path)?.into_value();
        let shown = present.and_then(|present| state::with_choice(&present, word));
        self.write_value_or(path, word, shown.as_deref().unwrap_or(word))
    }

    /// Writes `text` to an attribute of the kernel, or makes `shown` the content of a file on a disk.
    fn write_value_or(&self, path: &str, text: &str, shown: &str) -> Result<(), HostError> {
        let place = self.find(path, true)?;
        let Some(stat) = place.stat()? else {
            return Err(HostError::io("write", path, Errno::NOENT));
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(wrong_kind(&place.real, stat.st_mode, "a regular file"));
        }
        // Checked through the directory: opening an attribute may need a permission that only its value
        // lacks.
        let system = fs::fstatfs(&place.dir).map_err(|e| HostError::io("statfs", path, e))?;
        if u32::try_from(system.f_type).is_ok_and(|kind| KERNEL_FILE_SYSTEMS.contains(&kind)) {
            return self.write_attribute(&place, text);
        }
        if self.is_live {
            let (found, expected) = ("a file on a disk", "an attribute of the kernel");
            return Err(HostError::Kind { path: place.real, found, expected });
        }
        let file = FileState {
            bytes: shown.as_bytes().to_vec(),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            mtime: None,
            xattrs: BTreeMap::new(),
        };
        replace::with_file(&self.faults, &place, &file)
    }

    fn write_attribute(&self, place: &Place, text: &str) -> Result<(), HostError> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let io = |source| HostError::Attribute { path: place.real.clone(), source };
        let file = fs::openat(&place.dir, place.name.as_str(), flags, Mode::empty())
            .map_err(|errno| io(errno.into()))?;
        let mut file = File::from(file);
        // A crash cannot tear it: the kernel accepts a value completely or not at all.
        self.faults.step("write", &place.real).map_err(io)?;
        let written = file.write(text.as_bytes()).map_err(io)?;
        if written != text.len() {
            return Err(io(std::io::ErrorKind::WriteZero.into()));
        }
        Ok(())
    }

    /// Reads what exists at `path`: a regular file, a link (not followed) or nothing.
    pub fn read_file(&self, path: &str) -> Result<State, HostError> {
        let place = self.find(path, false)?;
        let expected = "a regular file, a link or nothing";
        let Some(stat) = place.stat()? else { return Ok(State::Absent) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                let (to, mtime) = (place.link_text()?, Some(mtime(&stat)));
                let context = place.link_context();
                return Ok(State::Link { to, uid: stat.st_uid, gid: stat.st_gid, mtime, context });
            }
            FileType::RegularFile => {}
            _ => return Err(wrong_kind(&place.real, stat.st_mode, expected)),
        }
        let Some(file) = place.open_to_read()? else { return Ok(State::Absent) };
        let stat = fs::fstat(&file).map_err(|e| HostError::io("stat", path, e))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(wrong_kind(&place.real, stat.st_mode, expected));
        }
        if stat.st_nlink > 1 && !is_kept_by_us(&place, &stat) {
            // Replacing one of its names would separate it from the others, and a rollback could not join
            // them again.
            let found = "a file with several names (hard links)";
            return Err(HostError::Kind { path: place.real, found, expected: "a file with one name" });
        }
        let xattrs = xattrs(&file, path)?;
        Ok(State::File(FileState {
            bytes: read_bounded(file, path, FILE_BYTES_MAX)?,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            mtime: Some(mtime(&stat)),
            xattrs,
        }))
    }

    /// Names in the directory at `path`, sorted, with links followed; empty if it does not exist. More than
    /// `names_max` are an error.
    pub fn list(&self, path: &str, names_max: usize) -> Result<Vec<String>, HostError> {
        let place = self.find(path, true)?;
        let is_directory = |s: &fs::Stat| FileType::from_raw_mode(s.st_mode) == FileType::Directory;
        if place.has_no_directory() || !place.stat()?.as_ref().is_some_and(is_directory) {
            return Ok(Vec::new());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = fs::openat(&place.dir, place.name.as_str(), flags, Mode::empty())
            .and_then(fs::Dir::new)
            .map_err(|e| HostError::io("open the directory", path, e))?;
        let mut names = Vec::new();
        for entry in dir {
            let entry = entry.map_err(|e| HostError::io("list", path, e))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if names.len() == names_max {
                let what = format!("more than {names_max} names; expected fewer, check the directory");
                return Err(HostError::io("list", path, std::io::Error::other(what)));
            }
            names.push(String::from_utf8_lossy(name).into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Makes `path` match `to`, completely or not at all: a new file is written beside it, made durable and
    /// renamed into its place. Missing directories are created with mode 0755.
    pub fn write_file(&self, path: &str, to: &State) -> Result<(), HostError> {
        let mut place = self.find(path, false)?;
        if *to == State::Absent {
            return replace::with_nothing(&self.faults, &place);
        }
        replace::make_directories(&self.faults, &mut place)?;
        match to {
            State::File(file) => replace::with_file(&self.faults, &place, file),
            State::Link { to, uid, gid, mtime, context } => {
                replace::with_link(&self.faults, &place, to, (*uid, *gid), *mtime, context.as_deref())
            }
            State::Absent | State::Value(_) => Err(HostError::wrong_state("file", path, to)),
        }
    }

    /// Removes what an interrupted write left beside `path`. For a value file, links are followed.
    pub fn clear(&self, path: &str, is_value: bool) -> Result<(), HostError> {
        let place = self.find(path, is_value)?;
        if place.has_no_directory() { Ok(()) } else { replace::clear(&self.faults, &place) }
    }

    /// Ensures that the last change of `path` is on the disk.
    pub fn settle(&self, path: &str) -> Result<(), HostError> {
        let place = self.find(path, false)?;
        if place.has_no_directory() { Ok(()) } else { replace::settle(&self.faults, &place) }
    }

    /// Missing directories above `path`, outermost first.
    pub fn missing_directories(&self, path: &str) -> Result<Vec<String>, HostError> {
        Ok(self.find(path, false)?.missing_paths())
    }

    /// Creates the directory at `path` and those above it, with mode 0755; one that exists stays as it is.
    pub fn make_directory(&self, path: &str) -> Result<(), HostError> {
        let mut place = self.find(&format!("{path}/any"), false)?;
        replace::make_directories(&self.faults, &mut place)
    }

    /// Removes directories, the last one first, if they are empty. Returns the others.
    pub fn remove_directories(&self, paths: &[String]) -> Result<Vec<String>, HostError> {
        let mut left = Vec::new();
        for path in paths.iter().rev() {
            let place = self.find(path, false)?;
            let is_directory = |s: &fs::Stat| FileType::from_raw_mode(s.st_mode) == FileType::Directory;
            if place.stat()?.as_ref().is_some_and(is_directory)
                && !replace::remove_directory(&self.faults, &place)?
            {
                left.push(path.clone());
            }
        }
        Ok(left)
    }
}

/// True if the one other name of the file is the one that a replacement gives the old file while a boot loader may
/// still use it ([`super::early`]). A crash leaves it behind, and the next write or settling of the path removes it.
fn is_kept_by_us(place: &Place, stat: &fs::Stat) -> bool {
    let kept = fs::statat(&place.dir, replace::old_name(place).as_str(), AtFlags::SYMLINK_NOFOLLOW);
    stat.st_nlink == 2 && kept.is_ok_and(|kept| (kept.st_dev, kept.st_ino) == (stat.st_dev, stat.st_ino))
}

fn wrong_kind(path: &str, mode: u32, expected: &'static str) -> HostError {
    let found = match FileType::from_raw_mode(mode) {
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::RegularFile => "a regular file",
        _ => "a device",
    };
    HostError::Kind { path: path.to_owned(), found, expected }
}

fn mtime(stat: &fs::Stat) -> FileTime {
    FileTime { seconds: stat.st_mtime, nanoseconds: i64::try_from(stat.st_mtime_nsec).unwrap_or(0) }
}

fn read_bounded(file: OwnedFd, path: &str, bytes_max: u64) -> Result<Vec<u8>, HostError> {
    let mut bytes = Vec::new();
    let read = File::from(file).take(bytes_max + 1).read_to_end(&mut bytes);
    read.map_err(|e| HostError::io("read", path, e))?;
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if length > bytes_max {
        return Err(HostError::TooLarge { path: path.to_owned(), bytes: length, bytes_max });
    }
    Ok(bytes)
}

/// The extended attributes that may be read. File systems without any, and unreadable attributes, yield none.
fn xattrs(file: &OwnedFd, path: &str) -> Result<BTreeMap<String, Vec<u8>>, HostError> {
    let mut names = vec![0; XATTR_BYTES_MAX];
    let length = match fs::flistxattr(file, names.as_mut_slice()) {
        Ok(length) => length,
        Err(Errno::NOTSUP | Errno::PERM | Errno::ACCESS) => return Ok(BTreeMap::new()),
        Err(errno) => return Err(HostError::io("list the extended attributes", path, errno)),
    };
    let mut found = BTreeMap::new();
    let mut value = vec![0; XATTR_BYTES_MAX];
    for name in names.get(..length).unwrap_or_default().split(|byte| *byte == 0) {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        if name.is_empty() {
            continue;
        }
        if let Ok(length) = fs::fgetxattr(file, name, value.as_mut_slice()) {
            found.insert(name.to_owned(), value.get(..length).unwrap_or_default().to_vec());
        }
    }
    Ok(found)
}
