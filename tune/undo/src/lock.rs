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

/// Maximum number of bytes read of the holder's text.
const HOLDER_BYTES_MAX: u64 = 256;

#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child of this process that has not yet reached its exec also has the file
        // open.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Name of the lock file.
const NAME: &str = "lock";

/// Takes the lock of the log in `dir`. The kernel releases it when the process ends for any reason; the file
/// stays and only names the holder.
pub(super) fn take(dir: &PrivateDirectory) -> Result<Lock, UndoError> {
    let shown = dir.path().join(NAME).display().to_string();
    let file = dir.file(NAME, OFlags::RDWR | OFlags::CREATE)?;
    let mut file = file.ok_or_else(|| HostError::io("open the lock", &shown, Errno::NOENT))?;
    file = hold(file, shown, FlockOperation::NonBlockingLockExclusive)?;
    // Informational only: a full disk must not prevent a rollback from starting.
    let name = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let _ = file.set_len(0);
    let _ = writeln!(file, "process {} ({})", std::process::id(), name.trim());
    Ok(Lock(file))
}

/// Prevents other processes from changing the log while it is read. `None` if no process ever took the lock;
/// none is created.
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
    if is_known { text.to_owned() } else { "another process with an unknown number".to_owned() }
}
