//! Files that lowlat writes for its user: reports, documents, plans, captures, exports.
//!
//! Every such file is created here. Its directory is opened first and held open, so that a later change of
//! the path has no effect. The file is written under a random name that no other process can predict, then
//! renamed. A link as the last component is never followed; [`walk`] defines which links before it are.

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

/// Permissions of an output file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    /// Owner only: the file contains orders, or private data of a host.
    Private,
    /// 0644 minus the umask: others may read but never write.
    Shared,
    /// 0755 minus the umask.
    Program,
}

impl FileAccess {
    fn mode(self) -> Mode {
        Mode::from_raw_mode(match self {
            Self::Private => 0o600,
            Self::Shared => 0o644,
            Self::Program => 0o755,
        })
    }
}

/// Directory for output files, held open.
#[derive(Debug, Clone)]
pub struct OutputDirectory {
    dir: Arc<OwnedFd>,
    path: PathBuf,
}

impl OutputDirectory {
    /// Opens an existing directory. An empty path is the working directory.
    ///
    /// # Errors
    /// [`OutputError`] if it cannot be opened, or the path contains an untrusted link.
    pub fn open(path: &Path) -> Result<Self, OutputError> {
        Self::at(path, false)
    }

    /// Opens a directory, and first creates it and its parents if they are missing.
    ///
    /// # Errors
    /// As [`OutputDirectory::open`].
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        Self::at(path, true)
    }

    fn at(path: &Path, creates: bool) -> Result<Self, OutputError> {
        let path = path.to_owned();
        match walk::directory(&path, creates) {
            Ok(dir) => Ok(Self { dir: Arc::new(dir), path }),
            Err(cause) => Err(OutputError { path, cause }),
        }
    }

    /// Names a file in this directory. Nothing is created or checked yet.
    pub fn file(&self, name: &OsStr, access: FileAccess) -> OutputFile {
        let path = self.path.join(name);
        OutputFile { place: Place::Entry { dir: Arc::clone(&self.dir), name: name.to_owned() }, path, access }
    }
}

#[derive(Debug)]
pub struct OutputFile {
    place: Place,
    path: PathBuf,
    access: FileAccess,
}

#[derive(Debug)]
enum Place {
    /// A name in a directory.
    Entry { dir: Arc<OwnedFd>, name: OsString },
    /// A descriptor of this process, such as /dev/stdout.
    Descriptor(PathBuf),
}

/// Object that currently has the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    File,
    /// A named pipe or a character device, which is written to directly.
    Stream,
}

impl OutputFile {
    /// Opens the directory of `path`. Creates nothing.
    ///
    /// # Errors
    /// [`OutputError`] if the directory does not exist, or the path contains an untrusted link.
    pub fn new(path: &Path, access: FileAccess) -> Result<Self, OutputError> {
        if is_descriptor(path) {
            return Ok(Self { place: Place::Descriptor(path.to_owned()), path: path.to_owned(), access });
        }
        let failed = |cause| OutputError { path: path.to_owned(), cause };
        // `file_name` ignores a trailing slash.
        let is_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let Some(name) = path.file_name().filter(|_| !is_directory) else {
            return Err(failed(OutputCause::NoName));
        };
        let above = path.parent().unwrap_or(Path::new(""));
        let dir = walk::directory(above, false).map_err(failed)?;
        let place = Place::Entry { dir: Arc::new(dir), name: name.to_owned() };
        Ok(Self { place, path: path.to_owned(), access })
    }

    /// The path, as the user gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if the name is taken.
    pub fn exists(&self) -> bool {
        match &self.place {
            Place::Entry { dir, name } => {
                !matches!(fs::statat(dir, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
            }
            Place::Descriptor(_) => true,
        }
    }

    /// True if the name is taken by a regular file, which writing would replace.
    pub fn replaces(&self) -> bool {
        matches!(self.found(), Ok(Found::File))
    }

    /// Checks that the file can be written, and leaves nothing behind. Meant for use before a long run.
    ///
    /// # Errors
    /// [`OutputError`] if it cannot.
    pub fn check(&self) -> Result<(), OutputError> {
        // A named pipe is not opened: its reader would see end of file when it is closed.
        if matches!(self.place, Place::Entry { .. }) && self.found()? != Found::Stream {
            drop(self.create()?);
        }
        Ok(())
    }

    /// Starts writing. The name refers to the new file after [`Unfinished::finish`].
    ///
    /// # Errors
    /// [`OutputError`] if no file can be created, or the name is taken by something other than a file, pipe
    /// or device.
    pub fn create(&self) -> Result<Unfinished<'_>, OutputError> {
        let found = self.found()?;
        let opened = match &self.place {
            Place::Descriptor(path) => descriptor(path).map(|file| (file, None)).map_err(OutputCause::Io),
            Place::Entry { dir, name } if found == Found::Stream => {
                open_stream(dir, name).map(|file| (file, None))
            }
            Place::Entry { dir, .. } => {
                temporary(dir, self.access).map(|(file, name)| (file, Some(name))).map_err(OutputCause::Io)
            }
        };
        let (file, temporary) = opened.map_err(|cause| self.because(cause))?;
        Ok(Unfinished { output: self, file, temporary })
    }

    /// Writes the whole file.
    ///
    /// # Errors
    /// [`OutputError`] if that fails. The name then refers to the same file as before.
    pub fn write(&self, bytes: &[u8]) -> Result<(), OutputError> {
        let mut unfinished = self.create()?;
        unfinished.file.write_all(bytes).map_err(|error| self.failed(error))?;
        unfinished.finish()
    }

    /// Writes the whole file under an unused name.
    ///
    /// # Errors
    /// As [`OutputFile::write`]; [`OutputError::is_taken`] if the name is taken.
    pub fn write_new(&self, bytes: &[u8]) -> Result<(), OutputError> {
        if self.exists() {
            return Err(self.because(OutputCause::Taken));
        }
        let mut unfinished = self.create()?;
        unfinished.file.write_all(bytes).map_err(|error| self.failed(error))?;
        unfinished.finish_new()
    }

    /// Creates the file under its final name, to be written and read during a long run. An existing file of
    /// this name is removed first.
    ///
    /// # Errors
    /// [`OutputError`] if it cannot be created, or the name is taken by something other than a file.
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
    /// [`OutputError`] if that fails.
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

/// A file being written. If dropped before it is finished, it leaves nothing behind.
#[derive(Debug)]
pub struct Unfinished<'a> {
    output: &'a OutputFile,
    file: File,
    /// Its name until it is finished; `None` for a pipe or a device.
    temporary: Option<OsString>,
}

impl Unfinished<'_> {
    /// The file, for a writer that owns its output.
    ///
    /// # Errors
    /// [`OutputError`] if the descriptor cannot be duplicated.
    pub fn writer(&self) -> Result<File, OutputError> {
        self.file.try_clone().map_err(|error| self.output.failed(error))
    }

    /// Makes the file durable and renames it, replacing any existing file.
    ///
    /// # Errors
    /// [`OutputError`] if that fails. The name then refers to the same file as before.
    pub fn finish(self) -> Result<(), OutputError> {
        self.settle(|dir, from, to| fs::renameat(dir, from, dir, to))
    }

    /// Makes the file durable and renames it, unless the name is taken.
    ///
    /// # Errors
    /// As [`Unfinished::finish`]; [`OutputError::is_taken`] if the name is taken.
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
        // If the name became a link, a pipe or a directory in the meantime, rename replaces it or fails, and
        // never follows it.
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
            // A leftover that cannot be removed does no harm.
            let _ = fs::unlinkat(dir, name.as_os_str(), AtFlags::empty());
        }
    }
}

/// Puts two signals in the state that lowlat needs, whatever it inherited. Commands that it starts are not affected.
///
/// A write beyond the process's file size limit becomes an error: by default the kernel kills the process, and the
/// results not yet printed are lost. The ends of children are reported: where SIGCHLD is ignored, exit codes are lost.
pub fn set_signals() {
    extern "C" fn nothing(_: libc::c_int) {}
    // SAFETY: the handler touches nothing. Unlike SIG_IGN it ends with exec.
    unsafe {
        libc::signal(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t);
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

/// Leaves Ctrl-C to a program that this process has started and waits for: a pager ends a search by it.
pub fn leave_interrupts() {
    // SAFETY: the disposition is set of a signal that no handler of lowlat is installed for at this time; no memory is touched.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGQUIT, libc::SIG_IGN);
    }
}

/// True if a path names a descriptor of this process.
fn is_descriptor(path: &Path) -> bool {
    let number = |name: &OsStr| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
    match (path.parent().and_then(Path::to_str), path.file_name()) {
        (Some("/dev"), Some(name)) => name == "stdout" || name == "stderr",
        (Some("/dev/fd" | "/proc/self/fd"), Some(name)) => number(name),
        _ => false,
    }
}

/// Stdout and stderr are duplicated, so that other output follows in order. Other descriptors are opened
/// again.
fn descriptor(path: &Path) -> io::Result<File> {
    match path.to_str() {
        Some("/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1") => Ok(rustix::io::dup(io::stdout())?.into()),
        Some("/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2") => Ok(rustix::io::dup(io::stderr())?.into()),
        _ => Ok(fs::open(path, OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC, Mode::empty())?.into()),
    }
}

/// Opens a pipe or a device, and checks that it still is one.
fn open_stream(dir: &OwnedFd, name: &OsStr) -> Result<File, OutputCause> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::openat(dir, name, flags, Mode::empty()).map_err(|e| OutputCause::Io(e.into()))?;
    let stat = fs::fstat(&file).map_err(|e| OutputCause::Io(e.into()))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo | FileType::CharacterDevice => Ok(file.into()),
        _ => Err(OutputCause::NotAFile),
    }
}

fn create_exclusive(dir: &OwnedFd, name: &OsStr, access: FileAccess) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    fs::openat(dir, name, flags, access.mode()).map(File::from)
}

/// Creates a file with a random name.
fn temporary(dir: &OwnedFd, access: FileAccess) -> io::Result<(File, OsString)> {
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

/// Renames unless the new name is taken. On file systems without such a rename, a second name is created
/// instead.
fn rename_new(dir: &OwnedFd, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    match fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            fs::linkat(dir, from, dir, to, AtFlags::empty())?;
            fs::unlinkat(dir, from, AtFlags::empty())
        }
        result => result,
    }
}

/// Makes a directory's entries durable, if this user may open it and the file system supports it.
fn sync_directory(dir: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match fs::openat(dir, ".", flags, Mode::empty()).and_then(|opened| fs::fsync(&opened)) {
        Err(Errno::ACCESS | Errno::INVAL | Errno::NOTSUP) => Ok(()),
        result => result,
    }
}
