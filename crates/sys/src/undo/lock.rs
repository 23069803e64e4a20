//! One process at a time.

use super::{HostError, PrivateDirectory, UndoError};
use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
};
use std::{
    fs::{self, File},
    io::{Read, Write},
};

/// Bytes that are read of what the holder wrote.
const HOLDER_BYTES_MAX: u64 = 256;

/// The lock, held.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would not do: a child of this process that has not yet come to its exec has the file open as well.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// The file's name.
const NAME: &str = "lock";

/// Takes the lock of the log in `dir`. The kernel gives it back when the process ends, however it ends; the file
/// stays and only says who has it.
pub(super) fn take(dir: &PrivateDirectory) -> Result<Lock, UndoError> {
    let shown = dir.path().join(NAME).display().to_string();
    let file = dir.file(NAME, OFlags::RDWR | OFlags::CREATE)?;
    let mut file = file.ok_or_else(|| HostError::io("open the lock", &shown, Errno::NOENT))?;
    file = hold(file, shown, FlockOperation::NonBlockingLockExclusive)?;
    // Only a help to people: a full disk must not keep a rollback from starting.
    let name = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let _ = file.set_len(0);
    let _ = writeln!(file, "process {} ({})", std::process::id(), name.trim());
    Ok(Lock(file))
}

/// Keeps others from changing the log while it is only read. `None` where no process ever took the lock; none is made.
pub(super) fn share(dir: &PrivateDirectory) -> Result<Option<Lock>, UndoError> {
    let shown = dir.path().join(NAME).display().to_string();
    let Some(file) = dir.file(NAME, OFlags::RDONLY)? else { return Ok(None) };
    Ok(Some(Lock(hold(file, shown, FlockOperation::NonBlockingLockShared)?)))
}

fn hold(file: File, path: String, how: FlockOperation) -> Result<File, UndoError> {
    match flock(&file, how) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(UndoError::Locked { path, holder: holder(file) }),
        Err(errno) => Err(HostError::io("lock", &path, errno).into()),
    }
}

fn holder(file: File) -> String {
    let mut text = String::new();
    let read = file.take(HOLDER_BYTES_MAX).read_to_string(&mut text);
    let text = text.trim();
    let is_known = read.is_ok() && !text.is_empty() && !text.contains(char::is_control);
    if is_known { text.to_owned() } else { "another process, which has not said its number".to_owned() }
}
