//! Addresses of masters: the run folder and its files.
//!
//! ```text
//! FOLDER/            one per master; /run/user/UID/lowlat/NAME, /run/lowlat/NAME, or /tmp/lowlat-UID/NAME
//!   lock             locked by the master while it runs; contains its process id
//!   master.sock      where nodes join
//!   log/ROLE.log     output of the processes that the master started
//! ```
//!
//! No other user can change any of it, nor any directory above it: a folder that violates this is refused.

use crate::{Refusal, private};
use rustix::process::geteuid;
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// Longest path of a unix socket, in bytes (unix(7): sun_path, including its terminator).
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// Longest name of a master, a node or a stream, in bytes.
pub const NAME_BYTES_MAX: usize = 64;
/// Bytes read from a lock: a process id.
const LOCK_BYTES_MAX: u64 = 32;

/// True if this is a valid name of a master, a node or a stream.
pub fn is_name(name: &str) -> bool {
    let is_right = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(is_right) && !name.starts_with('.')
}

/// The run folder of one master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// The folder of the master with this name: in $XDG_RUNTIME_DIR/lowlat if that is set, else in /run/lowlat
    /// for root, else in /tmp/lowlat-UID.
    pub fn named(name: &str) -> Result<Self, Refusal> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
        let base = match runtime {
            Some(folder) => PathBuf::from(folder).join("lowlat"),
            None if geteuid().is_root() => PathBuf::from("/run/lowlat"),
            None => PathBuf::from(format!("/tmp/lowlat-{}", geteuid().as_raw())),
        };
        if !is_name(name) {
            return Err(Refusal::new(format!(
                "invalid name {name:?}: expected 1 to {NAME_BYTES_MAX} characters of a-z, A-Z, 0-9, '.', '_' and '-', not starting with '.'"
            )));
        }
        Self::at(&base.join(name))
    }

    /// The folder at this path.
    pub fn at(path: &Path) -> Result<Self, Refusal> {
        let folder = Self { path: path.to_owned() };
        let socket = folder.socket();
        let bytes = socket.as_os_str().len();
        if bytes > SOCKET_PATH_BYTES_MAX {
            return Err(Refusal::new(format!(
                "cannot use socket {}: its path has {bytes} bytes, and unix sockets allow {SOCKET_PATH_BYTES_MAX} at most\nhint: use a shorter directory or name",
                socket.display()
            )));
        }
        Ok(folder)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The socket at which nodes join.
    pub fn socket(&self) -> PathBuf {
        self.path.join("master.sock")
    }

    /// The lock held by the master.
    pub fn lock(&self) -> PathBuf {
        self.path.join("lock")
    }

    /// Opens the lock for inspection, whoever owns the folder: opens only regular files, and never blocks.
    pub fn open_lock(&self) -> Result<File, Refusal> {
        private::foreign_file(&self.lock())
    }

    /// Removes the folder with its contents, unless another user has, or could have, changed them.
    pub fn remove(&self) -> Result<(), Refusal> {
        private::open(&self.path)?;
        std::fs::remove_dir_all(&self.path).map_err(|error| private::refused(&self.path, "remove", error))
    }

    /// Log of a started process.
    pub fn log(&self, role: &str) -> PathBuf {
        self.path.join("log").join(format!("{role}.log"))
    }
}

/// The process id in a lock; `None` if it contains something else.
pub fn holder(lock: &File) -> Option<u32> {
    let mut text = String::new();
    lock.take(LOCK_BYTES_MAX).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_and_sockets_fit() {
        for name in ["", "a b", "../x", ".x", "a/b", &"x".repeat(65)] {
            assert!(!is_name(name), "{name:?}");
            let error = RunFolder::named(name).unwrap_err().to_string();
            assert!(error.starts_with(&format!("invalid name {name:?}: expected 1 to 64")), "{error}");
        }
        assert!(RunFolder::named("orders.s-1").unwrap().socket().ends_with("orders.s-1/master.sock"));
        let long = format!("/tmp/{}", "x".repeat(100));
        let error = RunFolder::at(Path::new(&long)).unwrap_err().to_string();
        assert!(error.contains("allow 107 at most") && error.contains(&long), "{error}");
    }
}
