//! Files that lowlat writes for its user: reports, documents, plans, captures, exports.
//!
//! Every such file is created here. Its directory is opened first and held, so that a path that changes afterwards
//! leads nowhere else. The file is written under a random name that no other process can predict, then renamed. A link
//! in the last place is never followed, and [`walk`] says which links before it are.

mod error;
#[cfg(test)]
mod tests;
mod walk;

pub use error::{OutputCause, OutputError};

use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags},
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Who may read a file, and whether it is a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The owner alone: the file holds orders, or what a host should not show.
    Private,
    /// What the umask leaves of 0644: others may read, and never write.
    Shared,
    /// What the umask leaves of 0755.
    Program,
}

impl Access {
    fn mode(self) -> Mode {
        Mode::from_raw_mode(match self {
            Self::Private => 0o600,
            Self::Shared => 0o644,
            Self::Program => 0o755,
        })
    }
}

/// A directory that is held open.
#[derive(Debug, Clone)]
pub struct OutputDirectory {
    dir: Arc<OwnedFd>,
    path: PathBuf,
}

impl OutputDirectory {
    /// Opens an existing directory. An empty path is the working directory.
    ///
    /// # Errors
    /// [`OutputError`] when it cannot be opened, or a link on the way is not trusted.
    pub fn open(path: &Path) -> Result<Self, OutputError> {
        walk::directory(path, false)
            .map(|dir| Self { dir: Arc::new(dir), path: path.to_owned() })
            .map_err(|cause| OutputError { path: path.to_owned(), cause })
    }

    /// Opens a directory and creates it first if it is missing, with those above it.
    ///
    /// # Errors
    /// As [`OutputDirectory::open`].
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        walk::directory(path, true)
            .map(|dir| Self { dir: Arc::new(dir), path: path.to_owned() })
            .map_err(|cause| OutputError { path: path.to_owned(), cause })
    }

    /// A file in this directory. Nothing is created or checked yet.
    pub fn file(&self, name: &OsStr, access: Access) -> OutputFile {
        let path = self.path.join(name);
        OutputFile { place: Place::Entry { dir: Arc::clone(&self.dir), name: name.to_owned() }, path, access }
    }
}

/// A file to be written.
#[derive(Debug)]
pub struct OutputFile {
    place: Place,
    path: PathBuf,
    access: Access,
}

#[derive(Debug)]
enum Place {
    /// A name in a directory.
    Entry { dir: Arc<OwnedFd>, name: OsString },
    /// A descriptor of this process: /dev/stdout and its like.
    Descriptor(PathBuf),
}

/// What has the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    File,
    /// A named pipe or a character device, which is written into.
    Stream,
}

impl OutputFile {
    /// Finds the directory of `path`. Creates nothing.
    ///
    /// # Errors
    /// [`OutputError`] when there is no such directory, or a link on the way to it is not trusted.
    pub fn new(path: &Path, access: Access) -> Result<Self, OutputError> {
        if is_descriptor(path) {
            return Ok(Self { place: Place::Descriptor(path.to_owned()), path: path.to_owned(), access });
        }
        let failed = |cause| OutputError { path: path.to_owned(), cause };
        // `file_name` looks past a slash at the end.
        let is_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let Some(name) = path.file_name().filter(|_| !is_directory) else {
            return Err(failed(OutputCause::NoName));
        };
        let above = path.parent().unwrap_or(Path::new(""));
        let dir = walk::directory(above, false).map_err(failed)?;
        let place = Place::Entry { dir: Arc::new(dir), name: name.to_owned() };
        Ok(Self { place, path: path.to_owned(), access })
    }

    /// The path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether something has this name already.
    pub fn exists(&self) -> bool {
        match &self.place {
            Place::Entry { dir, name } => {
                !matches!(fs::statat(dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
            }
            Place::Descriptor(_) => true,
        }
    }

    /// Whether a regular file has this name, which writing replaces.
    pub fn replaces(&self) -> bool {
        matches!(self.found(), Ok(Found::File))
    }

    /// Checks that the file can be written, and leaves nothing behind. For use before a long run.
    ///
    /// # Errors
    /// [`OutputError`] when it cannot.
    pub fn check(&self) -> Result<(), OutputError> {
        // A named pipe is not opened: its reader would take the closing for the end.
        if matches!(self.place, Place::Entry { .. }) && self.found()? != Found::Stream {
            drop(self.create()?);
        }
        Ok(())
    }

    /// Starts to write. The name leads to the new file once [`Unfinished::finish`] is called.
    ///
    /// # Errors
    /// [`OutputError`] when no file can be created, or something other than a file, pipe or device has the name.
    pub fn create(&self) -> Result<Unfinished<'_>, OutputError> {
        let found = self.found()?;
        match &self.place {
            Place::Descriptor(path) => {
                let file = descriptor(path).map_err(|error| self.failed(error))?;
                Ok(Unfinished { output: self, file, temporary: None })
            }
            Place::Entry { dir, name } if found == Found::Stream => {
                let file = open_stream(dir, name).map_err(|cause| self.because(cause))?;
                Ok(Unfinished { output: self, file, temporary: None })
            }
            Place::Entry { dir, .. } => {
                let (file, name) = temporary(dir, self.access).map_err(|error| self.failed(error))?;
                Ok(Unfinished { output: self, file, temporary: Some(name) })
            }
        }
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// [`OutputError`] when that fails; then the name leads to what it led to before.
    pub fn write(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let mut unfinished = self.create()?;
        unfinished.file.write_all(bytes).map_err(|error| self.failed(error))?;
        unfinished.finish()
    }

    /// Writes the whole file under a name that is free.
    ///
    /// # Errors
    /// As [`OutputFile::write`]; [`OutputError::is_taken`] when the name is not free.
    pub fn write_new(&self, bytes: &[u8]) -> Result<(), OutputError> {
        if self.exists() {
            return Err(self.because(OutputCause::Taken));
        }
        let mut unfinished = self.create()?;
        unfinished.file.write_all(bytes).map_err(|error| self.failed(error))?;
        unfinished.finish_new()
    }

    /// Creates the file under its own name, to be written and read again during a long run. A file of this name is
    /// removed first.
    ///
    /// # Errors
    /// [`OutputError`] when it cannot be created, or something other than a file has the name.
    pub fn create_in_place(&self) -> Result<File, OutputError> {
        let Place::Entry { dir, name } = &self.place else { return Err(self.because(OutputCause::NotAFile)) };
        match self.found()? {
            Found::Stream => return Err(self.because(OutputCause::NotAFile)),
            Found::File => self.remove()?,
            Found::Nothing => {}
        }
        create_exclusive(dir, name, self.access).map_err(|error| self.failed(error.into()))
    }

    /// Removes the file.
    ///
    /// # Errors
    /// [`OutputError`] when that fails.
    pub fn remove(&self) -> Result<(), OutputError> {
        let Place::Entry { dir, name } = &self.place else { return Ok(()) };
        fs::unlinkat(dir, name.as_os_str(), AtFlags::empty()).map_err(|error| self.failed(error.into()))
    }

    fn found(&self) -> Result<Found, OutputError> {
        let Place::Entry { dir, name } = &self.place else { return Ok(Found::Stream) };
        let stat = match fs::statat(dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            Err(error) => return Err(self.failed(error.into())),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(Found::File),
            FileType::Fifo | FileType::CharacterDevice => Ok(Found::Stream),
            FileType::Directory => Err(self.failed(Errno::ISDIR.into())),
            FileType::Symlink => {
                let to = fs::readlinkat(dir, name.as_os_str(), Vec::new()).unwrap_or_default();
                Err(self.because(OutputCause::Link { to: to.to_string_lossy().into_owned() }))
            }
            _ => Err(self.because(OutputCause::NotAFile)),
        }
    }

    fn because(&self, cause: OutputCause) -> OutputError {
        OutputError { path: self.path.clone(), cause }
    }

    fn failed(&self, error: io::Error) -> OutputError {
        self.because(OutputCause::Io(error))
    }
}

/// A file that is being written. Dropped before it is finished, it leaves nothing behind.
#[derive(Debug)]
pub struct Unfinished<'a> {
    output: &'a OutputFile,
    file: File,
    /// Its name until it is finished; none for a pipe or a device.
    temporary: Option<OsString>,
}

impl Unfinished<'_> {
    /// The file, for a writer that owns what it writes to.
    ///
    /// # Errors
    /// [`OutputError`] when the descriptor cannot be duplicated.
    pub fn writer(&self) -> Result<File, OutputError> {
        self.file.try_clone().map_err(|error| self.output.failed(error))
    }

    /// Makes the file durable and gives it its name, in place of the file that had it.
    ///
    /// # Errors
    /// [`OutputError`] when that fails; then the name leads to what it led to before.
    pub fn finish(self) -> Result<(), OutputError> {
        self.settle(|dir, from, to| fs::renameat(dir, from, dir, to))
    }

    /// Makes the file durable and gives it its name, unless something has the name.
    ///
    /// # Errors
    /// As [`Unfinished::finish`]; [`OutputError::is_taken`] when something has the name.
    pub fn finish_new(self) -> Result<(), OutputError> {
        self.settle(rename_new)
    }

    fn settle(
        mut self,
        rename: impl FnOnce(&OwnedFd, &OsStr, &OsStr) -> Result<(), Errno>,
    ) -> Result<(), OutputError> {
        let Place::Entry { dir, name } = &self.output.place else { return Ok(()) };
        let Some(temporary) = self.temporary.clone() else { return Ok(()) };
        self.file.sync_all().map_err(|error| self.output.failed(error))?;
        // A name that became a link, a pipe or a directory meanwhile is replaced or refused by rename, never followed.
        rename(dir, &temporary, name).map_err(|error| match error {
            Errno::EXIST => self.output.because(OutputCause::Taken),
            error => self.output.failed(error.into()),
        })?;
        self.temporary = None;
        sync_directory(dir).map_err(|error| self.output.failed(error.into()))
    }
}

impl Write for Unfinished<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let (Some(name), Place::Entry { dir, .. }) = (&self.temporary, &self.output.place) {
            // A leftover that cannot be removed harms nothing.
            let _ = fs::unlinkat(dir, name.as_os_str(), AtFlags::empty());
        }
    }
}

/// Makes writing beyond the process's limit on file sizes an error. By default the kernel ends the process, and the
/// results that are still to be printed with it.
pub fn report_size_limit() {
    // SAFETY: SIG_IGN installs no handler, so nothing runs in a signal's context, and SIGXFSZ is a signal that may be
    // ignored.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Whether a path names a descriptor of this process.
fn is_descriptor(path: &Path) -> bool {
    let number = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    match (path.parent().and_then(Path::to_str), path.file_name()) {
        (Some("/dev"), Some(name)) => name == "stdout" || name == "stderr",
        (Some("/dev/fd" | "/proc/self/fd"), Some(name)) => number(name),
        _ => false,
    }
}

/// Stdout and stderr are duplicated, so that what else is printed there follows. Other descriptors are opened again.
fn descriptor(path: &Path) -> io::Result<File> {
    match path.to_str() {
        Some("/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1") => Ok(rustix::io::dup(io::stdout())?.into()),
        Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => Ok(rustix::io::dup(io::stderr())?.into()),
        _ => Ok(fs::open(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC, Mode::empty())?.into()),
    }
}

/// Opens a pipe or a device, and checks that it is one: the name may lead elsewhere by now.
fn open_stream(dir: &OwnedFd, name: &OsStr) -> Result<File, OutputCause> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::openat(dir, name, flags, Mode::empty()).map_err(|e| OutputCause::Io(e.into()))?;
    let stat = fs::fstat(&file).map_err(|e| OutputCause::Io(e.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo | FileType::CharacterDevice => Ok(file.into()),
        _ => Err(OutputCause::NotAFile),
    }
}

fn create_exclusive(dir: &OwnedFd, name: &OsStr, access: Access) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(dir, name, flags, access.mode()).map(File::from)
}

/// A new file with a random name.
fn temporary(dir: &OwnedFd, access: Access) -> io::Result<(File, OsString)> {
    loop {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = OsString::from(format!(".lowlat-{:016x}.part", u64::from_ne_bytes(random)));
        match create_exclusive(dir, &name, access) {
            Ok(file) => return Ok((file, name)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Renames unless the new name is taken. File systems without such a rename get a second name instead.
fn rename_new(dir: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::linkat(dir, from, dir, to, AtFlags::empty())?;
            fs::unlinkat(dir, from, AtFlags::empty())
        }
        result => result,
    }
}

/// Makes a directory's names durable, where this user may open it and the file system can.
fn sync_directory(dir: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match fs::openat(dir, ".", flags, Mode::empty()).and_then(|opened| fs::fsync(&opened)) {
        Err(Errno::ACCESS | Errno::INVAL | Errno::NOTSUP) => Ok(()),
        result => result,
    }
}
