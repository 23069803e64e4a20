//! Directories with lowlat's own files: held open, opened without following links, and private.

use super::{Faults, HostError};
use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags, RawMode},
    io::Errno,
};
use std::{
    fs::{DirBuilder, File},
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::DirBuilderExt,
    },
    path::{Path, PathBuf},
    sync::Arc,
};

/// Name of a new file until it is renamed. Only lowlat can write to the directory, so the name need not be
/// secret.
const TEMPORARY: &str = "new.tmp";
/// Name under which missing directories above lowlat's own are prepared, and under which they are discarded.
/// Whatever has this name is a leftover.
const ASIDE: &str = ".lowlat-aside";
/// Name of the file that lists the directories above lowlat's own that lowlat created, outermost first.
const MADE: &str = "made-directories";
/// Write permission of group and others.
const OTHERS_WRITE: RawMode = 0o022;
/// Mode of a system's directories: /var, /var/lib.
const OF_SYSTEM: Mode = Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP).union(Mode::ROTH).union(Mode::XOTH);

/// A private directory of lowlat. Every access goes through the open directory and follows no link, so that
/// nothing planted in a tree can redirect lowlat, and the directory cannot be swapped in between. The files
/// may contain secrets of the host and decide what a rollback writes, so the directory must belong to root or
/// the caller, and nobody else may write to it.
#[derive(Debug, Clone)]
pub struct PrivateDirectory {
    dir: Arc<OwnedFd>,
    shown: PathBuf,
}

impl PrivateDirectory {
    /// Opens the directory `names` below `base`; `None` if it is missing. Links are followed only in `base`.
    ///
    /// # Errors
    /// A name that is a link or not a directory, or a directory that others own or may write to.
    pub fn open(base: &Path, names: &[&str]) -> Result<Option<Self>, HostError> {
        let mut at = match Self::base(base) {
            Err(HostError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened?,
        };
        for name in names {
            let Some(below) = at.enter(name)? else { return Ok(None) };
            at = below;
        }
        at.check_owner()?;
        Ok(Some(at))
    }

    /// Opens the directory, and creates what is missing with mode 0700.
    ///
    /// # Errors
    /// As [`PrivateDirectory::open`].
    pub fn create(base: &Path, names: &[&str]) -> Result<Self, HostError> {
        let io = |e| HostError::io("create the directory", &base.display().to_string(), e);
        DirBuilder::new().recursive(true).mode(0o700).create(base).map_err(io)?;
        let mut at = Self::base(base)?;
        for name in names {
            at = at.make(name)?;
        }
        at.check_owner()?;
        Ok(at)
    }

    /// The same for a directory whose parents belong to the system. Missing parents are created with mode 0755
    /// and recorded in it, all at once, so that [`PrivateDirectory::discard`] can remove exactly those.
    ///
    /// # Errors
    /// As [`PrivateDirectory::open`].
    pub fn create_with_parents(base: &Path, names: &[&str], faults: &Faults) -> Result<Self, HostError> {
        let Some((_, parents)) = names.split_last() else { return Self::create(base, names) };
        let io = |e| HostError::io("create the directory", &base.display().to_string(), e);
        DirBuilder::new().recursive(true).mode(OF_SYSTEM.as_raw_mode()).create(base).map_err(io)?;
        let mut at = Self::base(base)?;
        for (depth, name) in parents.iter().enumerate() {
            if let Some(below) = at.enter(name)? {
                at = below;
                continue;
            }
            at.remove_aside(faults)?;
            if let Err(error) = at.make_all(names.get(depth..).unwrap_or_default(), faults) {
                // The first error is more useful, and the next attempt removes the leftover.
                let _ = at.remove_aside(faults);
                return Err(error);
            }
            break;
        }
        Self::create(base, names)
    }

    /// Creates nested directories under another name, records in the last one which of them are the system's, and
    /// renames the first.
    fn make_all(&self, names: &[&str], faults: &Faults) -> Result<(), HostError> {
        let [first, .., last] = names else { return Ok(()) };
        let parents = names.split_last().map_or(&[][..], |(_, parents)| parents);
        let mut all = vec![self.clone()];
        for name in [ASIDE].iter().chain(parents.get(1..).unwrap_or_default()).chain([last]) {
            let Some(at) = all.last() else { break };
            let io = |e: io::Error| HostError::io("create the directory", &at.display(name), e);
            faults.space("mkdir", &at.display(name)).map_err(io)?;
            let below = at.make(name)?;
            let mode = if name == last { Mode::RWXU } else { OF_SYSTEM };
            fs::fchmod(&below.dir, mode).map_err(|e| io(e.into()))?;
            all.push(below);
        }
        if let Some(own) = all.pop() {
            own.write(faults, MADE, parents.join("\n").as_bytes())?;
        }
        all.iter().rev().try_for_each(|dir| dir.sync(faults))?;
        self.rename(ASIDE, first, faults)
    }

    fn rename(&self, from: &str, to: &str, faults: &Faults) -> Result<(), HostError> {
        faults.run("rename", &self.display(to), || fs::renameat(&self.dir, from, &self.dir, to))?;
        self.sync(faults)
    }

    /// Removes the directory with all that it contains, if lowlat had to create directories above it, and those
    /// too. Returns the outermost of them that it kept, because it now contains something else.
    ///
    /// # Errors
    /// Any error of the system. The next creation or removal finishes it.
    pub fn discard(base: &Path, names: &[&str], faults: &Faults) -> Result<Option<String>, HostError> {
        let Some(own) = Self::open(base, names)? else { return Ok(None) };
        let Some(made) = own.read(MADE, u64::from(u16::MAX))? else { return Ok(None) };
        let count = String::from_utf8_lossy(&made).lines().count();
        let start = names.len().saturating_sub(count + 1);
        let (outside, inside) = names.split_at(start);
        let mut above = Self::base(base)?;
        for name in outside {
            let Some(below) = above.enter(name)? else { return Ok(None) };
            above = below;
        }
        let mut at = above.clone();
        for pair in inside.windows(2) {
            let [name, next] = pair else { continue };
            let Some(below) = at.enter(name)? else { return Ok(None) };
            if below.names()? != [*next] {
                // From now on these are directories like any others.
                own.remove(faults, MADE)?;
                return Ok(inside.first().map(|first| above.display(first)));
            }
            at = below;
        }
        above.remove_aside(faults)?;
        if let [first, _, ..] = inside {
            above.rename(first, ASIDE, faults)?;
        }
        above.remove_aside(faults)?;
        Ok(None)
    }

    fn remove_aside(&self, faults: &Faults) -> Result<(), HostError> {
        if self.enter(ASIDE)?.is_none() {
            return Ok(());
        }
        // Through the open directory, which cannot be swapped.
        let through = format!("/proc/self/fd/{}/{ASIDE}", self.dir.as_raw_fd());
        faults.run("remove", &self.display(ASIDE), || std::fs::remove_dir_all(through))?;
        self.sync(faults)
    }

    fn base(path: &Path) -> Result<Self, HostError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = fs::open(path, flags, Mode::empty())
            .map_err(|e| HostError::io("open the directory", &path.display().to_string(), e))?;
        Ok(Self { dir: Arc::new(dir), shown: path.to_owned() })
    }

    /// A private directory in this one; `None` if it is missing.
    ///
    /// # Errors
    /// As [`PrivateDirectory::open`].
    pub fn sub(&self, name: &str) -> Result<Option<Self>, HostError> {
        let Some(below) = self.enter(name)? else { return Ok(None) };
        below.check_owner()?;
        Ok(Some(below))
    }

    /// The same, created if missing.
    ///
    /// # Errors
    /// As [`PrivateDirectory::open`].
    pub fn make_sub(&self, name: &str) -> Result<Self, HostError> {
        let below = self.make(name)?;
        below.check_owner()?;
        Ok(below)
    }

    fn enter(&self, name: &str) -> Result<Option<Self>, HostError> {
        let shown = self.shown.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match fs::openat(&self.dir, name, flags, Mode::empty()) {
            Ok(dir) => Ok(Some(Self { dir: Arc::new(dir), shown })),
            Err(Errno::NOENT) => Ok(None),
            // The errors of O_DIRECTORY with O_NOFOLLOW for a link and for a file.
            Err(Errno::LOOP | Errno::NOTDIR) => Err(self.not_own(name, "a directory")),
            Err(errno) => Err(HostError::io("open the directory", &shown.display().to_string(), errno)),
        }
    }

    fn make(&self, name: &str) -> Result<Self, HostError> {
        let io = |e| HostError::io("create the directory", &self.display(name), e);
        match fs::mkdirat(&self.dir, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(io(errno)),
        }
        self.enter(name)?.ok_or_else(|| io(Errno::NOENT))
    }

    fn check_owner(&self) -> Result<(), HostError> {
        let path = self.shown.display().to_string();
        let stat = fs::fstat(&self.dir).map_err(|e| HostError::io("stat", &path, e))?;
        let is_own = stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw();
        if is_own && stat.st_mode & OTHERS_WRITE == 0 {
            return Ok(());
        }
        let (uid, mode) = (stat.st_uid, stat.st_mode & 0o7777);
        Err(HostError::Unfit(format!(
            "cannot use {path}: it belongs to user {uid} with mode {mode:04o}, expected the caller or root, and no write \
             permission for others\nhint: run as user {uid}, or move the directory away"
        )))
    }

    /// Returns its path, for messages.
    pub fn path(&self) -> &Path {
        &self.shown
    }

    fn display(&self, name: &str) -> String {
        self.shown.join(name).display().to_string()
    }

    /// The place of one of lowlat's own files is taken by something else.
    fn not_own(&self, name: &str, expected: &str) -> HostError {
        let stat = fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let found = match stat.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
            Ok(FileType::Symlink) => "a symbolic link",
            Ok(FileType::RegularFile) => "a file",
            Ok(FileType::Directory) => "a directory",
            _ => "neither a file nor a directory",
        };
        HostError::Unfit(format!(
            "cannot open {}: found {found}, expected {expected}\nhint: lowlat follows no link there; remove it",
            self.display(name)
        ))
    }

    /// Opens a regular file of this directory; `None` if it is missing. Never waits for the other end of a
    /// pipe.
    pub(super) fn file(&self, name: &str, flags: OFlags) -> Result<Option<File>, HostError> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let io = |e| HostError::io("open", &self.display(name), e);
        let file = match fs::openat(&self.dir, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            // A link, and a pipe without a reader.
            Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => return Err(self.not_own(name, "a file")),
            Err(errno) => return Err(io(errno)),
        };
        let stat = fs::fstat(&file).map_err(io)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Some(File::from(file))),
            _ => Err(self.not_own(name, "a file")),
        }
    }

    /// Reads a file, at most `bytes_max` bytes; `None` if it is missing.
    ///
    /// # Errors
    /// A link, or any error of the system.
    pub fn read(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, HostError> {
        let Some(file) = self.file(name, OFlags::RDONLY)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = file.take(bytes_max).read_to_end(&mut bytes);
        read.map_err(|e| HostError::io("read", &self.display(name), e))?;
        Ok(Some(bytes))
    }

    /// Names of its files and directories, sorted.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn names(&self) -> Result<Vec<String>, HostError> {
        let io = |e| HostError::io("list", &self.shown.display().to_string(), e);
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(&self.dir).map_err(io)? {
            let entry = entry.map_err(io)?;
            if let Ok(name) = entry.file_name().to_str()
                && !matches!(name, "." | "..")
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Length of a file; 0 if it is missing.
    pub(super) fn length(&self, name: &str) -> u64 {
        let stat = fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Writes a file atomically: under another name, made durable, then renamed, made durable again.
    ///
    /// # Errors
    /// Any error of the system. The file is then either the old one or the new one.
    pub fn write(&self, faults: &Faults, name: &str, bytes: &[u8]) -> Result<(), HostError> {
        let path = self.display(name);
        let io = |doing, e: io::Error| HostError::io(doing, &path, e);
        faults.space("create", &path).map_err(|e| io("create", e))?;
        self.unlink(TEMPORARY).map_err(|e| io("remove the leftover of an earlier write to", e))?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let new = fs::openat(&self.dir, TEMPORARY, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(new.map_err(|e| io("create", e.into()))?);
        let rename = || fs::renameat(&self.dir, TEMPORARY, &self.dir, name);
        let written = faults
            .write(&path, bytes, |bytes| file.write_all(bytes))
            .map_err(|e| io("write", e))
            .and_then(|()| faults.run("fsync", &path, || file.sync_all()))
            .and_then(|()| faults.run("rename", &path, rename));
        if let Err(error) = written {
            // The first error is more useful, and the next write removes the leftover.
            let _ = faults.run("remove", &path, || self.unlink(TEMPORARY));
            return Err(error);
        }
        self.sync(faults)
    }

    /// Removes a file. A missing file is not an error.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn remove(&self, faults: &Faults, name: &str) -> Result<(), HostError> {
        faults.run("remove", &self.display(name), || self.unlink(name))
    }

    fn unlink(&self, name: &str) -> io::Result<()> {
        match fs::unlinkat(&self.dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Makes its entries durable.
    ///
    /// # Errors
    /// Any error of the system.
    pub fn sync(&self, faults: &Faults) -> Result<(), HostError> {
        faults.run("fsync the directory", &self.shown.display().to_string(), || fs::fsync(&self.dir))
    }

    /// Makes the entry of this directory in its parent durable.
    pub(super) fn sync_above(&self, faults: &Faults) -> Result<(), HostError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        faults.run("fsync the directory", &self.display(".."), || {
            fs::fsync(fs::openat(&self.dir, "..", flags, Mode::empty())?)
        })
    }
}
