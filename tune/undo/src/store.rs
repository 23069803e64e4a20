//! File contents, stored by their hash beside the log.

use super::{FILE_BYTES_MAX, HostError, PrivateDirectory, State, target::Faults};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Maximum size of all contents together.
const STORE_BYTES_MAX: u64 = 512 << 20;

/// The directory of contents, [`CONTENTS`] in the log's directory.
#[derive(Debug)]
pub(super) struct ContentStore {
    log: PrivateDirectory,
    bytes: u64,
}

/// Name of the directory of stored contents.
pub(super) const CONTENTS: &str = "contents";

impl ContentStore {
    pub(super) fn open(log: &PrivateDirectory) -> Self {
        // Missing or unreadable: then no content is found either, which is reported when one is requested.
        let dir = log.sub(CONTENTS).ok().flatten();
        let names = dir.as_ref().and_then(|dir| dir.names().ok()).unwrap_or_default();
        let lengths = names.iter().filter_map(|name| Some(dir.as_ref()?.length(name)));
        Self { bytes: lengths.fold(0, u64::saturating_add), log: log.clone() }
    }

    fn path(&self, name: &str) -> String {
        self.log.path().join(CONTENTS).join(name).display().to_string()
    }

    /// Stores the content of `state`, if any. It is durable on return.
    pub(super) fn keep(&mut self, faults: &Faults, state: &State) -> Result<(), HostError> {
        let State::File(file) = state else { return Ok(()) };
        let name = hash_of(&file.bytes);
        if self.get(&name).is_ok() {
            return Ok(());
        }
        let length = u64::try_from(file.bytes.len()).unwrap_or(u64::MAX);
        if length > FILE_BYTES_MAX {
            let path = self.path(&name);
            return Err(HostError::TooLarge { path, bytes: length, bytes_max: FILE_BYTES_MAX });
        }
        let bytes = self.bytes.saturating_add(length);
        if bytes > STORE_BYTES_MAX {
            let path = self.path("");
            return Err(HostError::TooLarge { path, bytes, bytes_max: STORE_BYTES_MAX });
        }
        let dir = self.log.make_sub(CONTENTS)?;
        self.log.sync(faults)?;
        dir.write(faults, &name, &file.bytes)?;
        self.bytes = bytes;
        Ok(())
    }

    /// Removes every content that `is_wanted` does not want. What cannot be removed stays and is tried again
    /// the next time.
    pub(super) fn keep_only(&mut self, faults: &Faults, is_wanted: impl Fn(&str) -> bool) {
        let Ok(Some(dir)) = self.log.sub(CONTENTS) else { return };
        for name in dir.names().unwrap_or_default().iter().filter(|name| !is_wanted(name)) {
            let length = dir.length(name);
            if dir.remove(faults, name).is_ok() {
                self.bytes = self.bytes.saturating_sub(length);
            }
        }
    }

    /// The content with this hash, verified.
    pub(super) fn get(&self, name: &str) -> Result<Vec<u8>, HostError> {
        let path = self.path(name);
        // The name comes from the log; only a hash may become a path.
        if name.len() != 64 || !name.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(damaged(&path));
        }
        let dir = self.log.sub(CONTENTS)?;
        let bytes = dir.map(|dir| dir.read(name, FILE_BYTES_MAX + 1)).transpose()?.flatten();
        match bytes {
            Some(bytes) if hash_of(&bytes) == name => Ok(bytes),
            Some(_) => Err(damaged(&path)),
            None => Err(HostError::io("open the stored content", &path, Errno::NOENT)),
        }
    }
}

fn damaged(path: &str) -> HostError {
    HostError::Unfit(format!(
        "{path}: the stored content is damaged (its SHA-256 differs from its name); restore it from a backup"
    ))
}

/// SHA-256 in hexadecimal: 64 letters.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Two lower-case letters per byte.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The bytes encoded by [`hex`].
pub(super) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
