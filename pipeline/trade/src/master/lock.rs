//! Ensures one master per run folder.

use lowlat_ipc::file_lock::FileLock;
use lowlat_node::{
    Refusal,
    address::{RunFolder, holder, is_name},
    private,
};
use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
};
use std::{
    fs::{self, File},
    io::{self, Write},
    os::fd::OwnedFd,
};

/// The run folder, locked by this process as long as the value lives.
#[derive(Debug)]
pub(super) struct LockedFolder {
    log: OwnedFd,
    _lock: FileLock,
}

impl LockedFolder {
    /// Opens the log of a process for appending.
    pub(super) fn log(&self, folder: &RunFolder, name: &str) -> Result<File, Refusal> {
        let path = folder.log(name);
        if !is_name(name) {
            return Err(private::refused(&path, "open", io::ErrorKind::InvalidFilename));
        }
        private::file(&self.log, &path, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)
    }
}

/// Creates the folder with private permissions, and locks it.
pub(super) fn hold(folder: &RunFolder) -> Result<LockedFolder, Refusal> {
    let directory = private::make(folder.path())?;
    let path = folder.lock();
    let mut file = private::file(&directory, &path, OFlags::RDWR | OFlags::CREATE)?;
    if let Err(errno) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if errno != Errno::WOULDBLOCK {
            return Err(private::refused(&path, "lock", errno));
        }
        let pid = holder(&file).map_or_else(|| "with an unknown id".to_owned(), |pid| pid.to_string());
        let words = format!(
            "cannot lock run folder {}: process {pid} is its master\nhint: end it, or use another name",
            folder.path().display()
        );
        return Err(Refusal::path(words, false));
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(|error| private::refused(&path, "write the process id to", error))?;
    // After the lock: a folder of another master is untouched.
    let log = private::make_inside(&directory, &folder.path().join("log"))?;
    // A killed master leaves its socket behind.
    match fs::remove_file(folder.socket()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(private::refused(&folder.socket(), "remove the previous master's socket,", error))
        }
        _ => Ok(LockedFolder { log, _lock: FileLock::new(file) }),
    }
}
