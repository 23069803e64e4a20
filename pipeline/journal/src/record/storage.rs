//! Storage of data files: a disk, or in tests something that fails like disks.

use lowlat_ipc::file_lock::FileLock;
use rustix::{
    fs::{self, FallocateFlags, FlockOperation, OFlags},
    io::Errno,
};
use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::Path,
};

/// Only the recording user may read a recording: it contains orders.
pub(super) const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// Creates a directory and its missing parents. An existing one keeps its mode.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

/// Creates and syncs the files of a recording.
pub trait Storage: Send {
    type File: StoredFile;

    /// Creates a file; fails if it exists.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// Writes a small file atomically, replacing an existing one.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // A new file with an unpredictable name, readable only by its owner; removed unless it is renamed.
        let mut unfinished = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(path))?;
        unfinished.write_all(bytes)?;
        unfinished.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Ensures that the directory's files are found after a power cut.
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

pub trait StoredFile: Send {
    /// Reserves space, which reads as zeros. Not an error if unsupported.
    fn allocate(&mut self, bytes: u64) -> io::Result<()>;

    /// Writes all bytes at an offset, which must be the end of the last write. May buffer them until
    /// [`StoredFile::flush`].
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Passes buffered bytes to the system.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Offset up to which the system has the data; `None` if nothing is ever buffered.
    fn written_to(&self) -> Option<u64> {
        None
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()>;

    /// Waits until all of it is on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// System files, written through the page cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct CachedDisk;

impl Storage for CachedDisk {
    type File = File;

    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)
    }
}

impl StoredFile for File {
    fn allocate(&mut self, bytes: u64) -> io::Result<()> {
        match fs::fallocate(&*self, FallocateFlags::empty(), 0, bytes) {
            // Unsupported by the file system: the file grows as it is written.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            result => Ok(result?),
        }
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Lock of a recording's directory, which ensures a single writer and shows readers that one is running.
#[derive(Debug)]
pub struct FolderLock {
    _lock: FileLock,
}

/// Opens a directory; anything else is an error, and never blocks.
fn open_folder(folder: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::DIRECTORY.bits()).unwrap_or(0);
    OpenOptions::new().read(true).custom_flags(flags).open(folder)
}

/// Attempts to take a busy lock: a reader that checks for a writer holds it for a moment.
const TRIES: u32 = 20;

impl FolderLock {
    /// Takes the lock; `None` if another process is recording there.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let folder = open_folder(folder)?;
        for _ in 0..TRIES {
            match fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Self { _lock: FileLock::new(folder) })),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(None)
    }

    /// Returns true if a process is recording there now.
    pub fn is_taken(folder: &Path) -> bool {
        let Ok(folder) = open_folder(folder) else { return false };
        matches!(fs::flock(&folder, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
    }
}
