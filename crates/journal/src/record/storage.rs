//! Where data files go: a disk, or in tests something that fails as disks do.

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

/// Only the user who records may read a recording: it holds orders.
pub(super) const FILE_MODE: u32 = 0o600;
const FOLDER_MODE: u32 = 0o700;

/// Makes a folder, and those above it that are missing. One that exists keeps its mode.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

/// Makes files.
pub trait Storage: Send {
    /// What it makes.
    type File: StoredFile;

    /// A new file; it is an error when one of that name is there.
    fn create(&self, path: &Path) -> io::Result<Self::File>;

    /// Writes a small file whole or not at all, in place of one that may be there.
    fn write_whole(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Makes sure that the folder's files are found after a power cut.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// A file being written.
pub trait StoredFile: Send {
    /// Reserves room, which reads as zeros. Storage that cannot is no error.
    fn allocate(&mut self, bytes: u64) -> io::Result<()>;

    /// Writes all bytes at an offset: the one behind what was written last. It may keep them back until
    /// [`StoredFile::flush`].
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Hands over to the system what was kept back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Up to which offset the system has it; none when nothing is ever kept back.
    fn written_to(&self) -> Option<u64> {
        None
    }

    /// Gives the file its length.
    fn truncate(&mut self, bytes: u64) -> io::Result<()>;

    /// Waits until all of it is on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// Files of the system, written through the page cache.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Storage for Disk {
    type File = File;

    fn create(&self, path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)
    }

    fn write_whole(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        // A new file with a name that nobody can guess, readable by its owner alone; removed unless it is put in place.
        let mut unfinished = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(path))?;
        unfinished.write_all(bytes)?;
        unfinished.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

impl StoredFile for File {
    fn allocate(&mut self, bytes: u64) -> io::Result<()> {
        match fs::fallocate(&*self, FallocateFlags::empty(), 0, bytes) {
            // A file system without it: the file grows as it is written.
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

/// Holds a recording's folder, so that it has one writer and readers know that there is one.
#[derive(Debug)]
pub struct FolderLock {
    _folder: File,
}

/// Opens a folder; anything else of that name is an error and does not block.
fn open_folder(folder: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::DIRECTORY.bits()).unwrap_or(0);
    OpenOptions::new().read(true).custom_flags(flags).open(folder)
}

/// How often a taken lock is tried: a reader that looks whether there is a writer holds it for a moment.
const TRIES: u32 = 20;

impl FolderLock {
    /// Takes it; none when somebody else records there.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let folder = open_folder(folder)?;
        for _ in 0..TRIES {
            match fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Self { _folder: folder })),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(None)
    }

    /// Whether somebody records there at this moment.
    pub fn is_taken(folder: &Path) -> bool {
        let Ok(folder) = open_folder(folder) else { return false };
        matches!(fs::flock(&folder, FlockOperation::NonBlockingLockShared), Err(Errno::WOULDBLOCK))
    }
}
