//! One master per run folder.

use super::MasterError;
use crate::address::RunFolder;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
};

/// The run folder, held by this process as long as the value lives.
#[derive(Debug)]
pub(super) struct Held {
    // Keeps the lock.
    _file: File,
}

/// Makes the folder, for its owner alone, and takes its lock.
pub(super) fn hold(folder: &RunFolder) -> Result<Held, MasterError> {
    let failed = |path: &std::path::Path, doing: &'static str| {
        let path = path.display().to_string();
        move |source| MasterError::Folder { path, doing, source }
    };
    for path in [folder.path().to_owned(), folder.path().join("log")] {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(failed(&path, "make the folder"))?;
    }
    let path = folder.lock();
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(failed(&path, "open the lock"))?;
    if let Err(errno) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if errno != Errno::WOULDBLOCK {
            return Err(failed(&path, "take the lock")(errno.into()));
        }
        let mut pid = String::new();
        file.read_to_string(&mut pid).ok();
        let path = folder.path().display().to_string();
        return Err(MasterError::Taken { path, pid: pid.trim().to_owned() });
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "{}", std::process::id()))
        .map_err(failed(&path, "write its process id into"))?;
    // A master that was killed leaves its socket behind.
    match fs::remove_file(folder.socket()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failed(&folder.socket(), "remove the socket of a master that is gone,")(error))
        }
        _ => Ok(Held { _file: file }),
    }
}
