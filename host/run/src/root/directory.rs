//! Plain file access with limits: regular files only, never blocking on a pipe or device.

use super::{Entry, FILE_BYTES_MAX};
use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Opens a regular file. `O_NONBLOCK` keeps a FIFO in a hostile tree from hanging the open.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    Ok(file)
}

/// Reads a file up to the limit.
pub(super) fn read_file(file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn list(path: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

pub(super) fn entry(path: &Path) -> io::Result<Entry> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        Ok(Entry::Link(fs::read_link(path)?.to_string_lossy().into_owned()))
    } else if metadata.is_dir() {
        Ok(Entry::Directory)
    } else {
        Ok(Entry::File)
    }
}
