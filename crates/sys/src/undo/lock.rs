//! One process at a time.

use super::{HostError, UndoError};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
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

/// Takes the lock of the log in `dir`. The kernel gives it back when the process ends, however it ends; the file
/// stays and only says who has it.
pub(super) fn take(dir: &Path) -> Result<Lock, UndoError> {
    let path = dir.join("lock");
    let shown = path.display().to_string();
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let mut file = file.map_err(|e| HostError::io("open the lock", &shown, e))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(UndoError::Locked { path: shown, holder: holder(file) }),
        Err(errno) => return Err(HostError::io("lock", &shown, errno).into()),
    }
    // Only a help to people: a full disk must not keep a rollback from starting.
    let name = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    let _ = file.set_len(0);
    let _ = writeln!(file, "process {} ({})", std::process::id(), name.trim());
    Ok(Lock(file))
}

fn holder(file: File) -> String {
    let mut text = String::new();
    let read = file.take(HOLDER_BYTES_MAX).read_to_string(&mut text);
    let text = text.trim();
    let is_known = read.is_ok() && !text.is_empty() && !text.contains(char::is_control);
    if is_known { text.to_owned() } else { "another process, which has not said its number".to_owned() }
}
