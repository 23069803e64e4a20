//! Contents of files, kept by their hash beside the log.

use super::{FILE_BYTES_MAX, HostError, State, faults::Faults, hash};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

/// Bytes of all contents together.
pub const STORE_BYTES_MAX: u64 = 256 << 20;

/// The folder of contents.
#[derive(Debug)]
pub(super) struct Store {
    dir: PathBuf,
    bytes: u64,
}

/// Makes a directory that only its owner may read: what is kept may be secret where it came from.
pub(super) fn make_private_directory(dir: &Path) -> Result<(), HostError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| HostError::io("make the directory", &dir.display().to_string(), e))
}

/// Makes names in a directory durable.
pub(super) fn sync_directory(faults: &Faults, dir: &Path) -> Result<(), HostError> {
    let path = dir.display().to_string();
    let io = |e| HostError::io("fsync the directory", &path, e);
    faults.step("fsync the directory", &path).map_err(io)?;
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(io)
}

/// Writes a file of the log's own as a whole: beside its place, durable, then moved there, durable as well.
pub(super) fn write_whole(faults: &Faults, dir: &Path, name: &str, bytes: &[u8]) -> Result<(), HostError> {
    let (to, new) = (dir.join(name), dir.join("new.tmp"));
    let path = to.display().to_string();
    let io = |doing| {
        let path = path.clone();
        move |e: io::Error| HostError::io(doing, &path, e)
    };
    faults.space("create", &path).map_err(io("create"))?;
    let options = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .map_err(io("create"));
    let mut file = options?;
    faults.write(&path, bytes, |bytes| file.write_all(bytes)).map_err(io("write"))?;
    faults.step("fsync", &path).and_then(|()| file.sync_all()).map_err(io("fsync"))?;
    faults.step("rename", &path).and_then(|()| fs::rename(&new, &to)).map_err(io("rename"))?;
    sync_directory(faults, dir)
}

impl Store {
    pub(super) fn open(log: &Path) -> Self {
        let dir = log.join("contents");
        let mut bytes = 0u64;
        // Not there yet, or not readable: then no content is found either, which is said where one is asked for.
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            bytes = bytes.saturating_add(entry.metadata().map_or(0, |m| m.len()));
        }
        Self { dir, bytes }
    }

    /// Keeps the content of `state`, if it has one. It is durable when this returns.
    pub(super) fn keep(&mut self, faults: &Faults, state: &State) -> Result<(), HostError> {
        let State::File(file) = state else { return Ok(()) };
        let name = hash::of(&file.bytes);
        if self.get(&name).is_ok() {
            return Ok(());
        }
        let length = u64::try_from(file.bytes.len()).unwrap_or(u64::MAX);
        let path = || self.dir.join(&name).display().to_string();
        if length > FILE_BYTES_MAX {
            return Err(HostError::TooLarge { path: path(), bytes: length, bytes_max: FILE_BYTES_MAX });
        }
        let bytes = self.bytes.saturating_add(length);
        if bytes > STORE_BYTES_MAX {
            let path = self.dir.display().to_string();
            return Err(HostError::TooLarge { path, bytes, bytes_max: STORE_BYTES_MAX });
        }
        make_private_directory(&self.dir)?;
        if let Some(log) = self.dir.parent() {
            sync_directory(faults, log)?;
        }
        write_whole(faults, &self.dir, &name, &file.bytes)?;
        self.bytes = bytes;
        Ok(())
    }

    /// Removes every content that `is_wanted` does not want. What cannot be removed stays, and is tried again the next
    /// time.
    pub(super) fn keep_only(&mut self, faults: &Faults, is_wanted: impl Fn(&str) -> bool) {
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            if entry.file_name().to_str().is_some_and(&is_wanted) {
                continue;
            }
            let path = entry.path();
            let length = entry.metadata().map_or(0, |m| m.len());
            let removed =
                faults.step("remove", &path.display().to_string()).and_then(|()| fs::remove_file(&path));
            if removed.is_ok() {
                self.bytes = self.bytes.saturating_sub(length);
            }
        }
    }

    /// The content of this hash, checked against it.
    pub(super) fn get(&self, name: &str) -> Result<Vec<u8>, HostError> {
        let path = self.dir.join(name);
        let shown = path.display().to_string();
        // The name comes from the log; nothing but a hash may become a path.
        if name.len() != 64 || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(HostError::Content { path: shown });
        }
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(|e| HostError::io("open the kept content", &shown, e))?;
        file.take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| HostError::io("read the kept content", &shown, e))?;
        if hash::of(&bytes) == name { Ok(bytes) } else { Err(HostError::Content { path: shown }) }
    }
}
