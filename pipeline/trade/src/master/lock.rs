//! Ensures one master per run folder.

use lowlat_ipc::file_lock::FileLock;
use lowlat_node::{
    Refusal,
    address::{RunFolder, holder, is_name},
    private,
};
use rustix::{
    fs::{FlockOperation, Gid, Mode, OFlags, chmod, chown, flock, stat},
    io::Errno,
    process::geteuid,
};
use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    os::fd::OwnedFd,
    path::Path,
};

/// Longest log of a process, and what is kept of one that becomes longer.
const LOG_BYTES_MAX: u64 = 1 << 20;
const LOG_BYTES_KEPT: u64 = 256 << 10;

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
        private::file(&self.log, &path, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)
    }

    /// Keeps the last [`LOG_BYTES_KEPT`] of a log that is longer than [`LOG_BYTES_MAX`]. Its process appends, so its next
    /// line follows; a line written meanwhile may be lost.
    pub(super) fn trim_log(&self, folder: &RunFolder, name: &str) -> io::Result<()> {
        let bytes = fs::metadata(folder.log(name))?.len();
        if bytes <= LOG_BYTES_MAX {
            return Ok(());
        }
        let mut log = self.log(folder, name).map_err(io::Error::other)?;
        log.seek(SeekFrom::Start(bytes - LOG_BYTES_KEPT))?;
        let mut end = Vec::new();
        (&log).take(LOG_BYTES_KEPT).read_to_end(&mut end)?;
        log.set_len(0)?;
        log.write_all(&end)
    }
}

/// Lets a group pass through a folder, but not write in it, and nobody else.
fn share(path: &Path, group: Option<u32>) -> Result<(), Refusal> {
    let failed = |doing: &'static str| move |errno: Errno| private::refused(path, doing, errno);
    let mode = if group.is_some() { Mode::RWXU | Mode::RGRP | Mode::XGRP } else { Mode::RWXU };
    // Before the mode: a group that it had must not get into it.
    chown(path, None, group.map(Gid::from_raw)).map_err(failed("change the group of"))?;
    chmod(path, mode).map_err(failed("set the permissions of"))?;
    let Some(group) = group else { return Ok(()) };
    for level in path.ancestors().skip(1) {
        let known = stat(level).map_err(failed("inspect the folders above"))?;
        let of_group = if known.st_gid == group { Mode::XGRP } else { Mode::empty() };
        if Mode::from_raw_mode(known.st_mode).intersects(Mode::XOTH | of_group) {
            continue;
        }
        if Some(level) != path.parent() || known.st_uid != geteuid().as_raw() {
            return Err(Refusal::new(format!(
                "cannot open run folder {} to group {group}: its members cannot enter {}\nhint: set XDG_RUNTIME_DIR to a folder that they can enter, or start the run as a service",
                path.display(),
                level.display()
            )));
        }
        // The folder of all runs: others may pass through it, but cannot list it.
        chmod(level, Mode::RWXU | Mode::XGRP | Mode::XOTH).map_err(failed("open the folder above"))?;
    }
    Ok(())
}

/// Creates the folder, which only its user and a group can open, and locks it.
pub(super) fn hold(folder: &RunFolder, group: Option<u32>) -> Result<LockedFolder, Refusal> {
    let directory = private::make(folder.path())?;
    share(folder.path(), group)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_keeps_its_end_and_is_continued() {
        let home = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(&home.path().join("run")).unwrap();
        let held = hold(&folder, None).unwrap();
        let mut log = held.log(&folder, "maker").unwrap();
        let bytes = || fs::metadata(folder.log("maker")).unwrap().len();
        let whole = usize::try_from(LOG_BYTES_MAX).unwrap();
        log.write_all(&vec![b'a'; whole]).unwrap();
        held.trim_log(&folder, "maker").unwrap();
        assert_eq!(bytes(), LOG_BYTES_MAX, "it is not too long yet");
        log.write_all(b"last").unwrap();
        held.trim_log(&folder, "maker").unwrap();
        assert_eq!(bytes(), LOG_BYTES_KEPT);
        log.write_all(b" words").unwrap();
        assert!(fs::read(folder.log("maker")).unwrap().ends_with(b"alast words"));
        assert!(held.trim_log(&folder, "none").is_err());
    }
}
