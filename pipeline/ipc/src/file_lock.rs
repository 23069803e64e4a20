//! The lock of flock(2) on an open file, released when its holder lets go of it.

use rustix::fs::{FlockOperation, flock};
use std::fs::File;

/// A file or directory that this process has locked. Dropping the value releases the lock.
///
/// Closing the file is not enough: a child that has not yet reached its exec also has it open. In a forked process,
/// dropping the value leaves the lock with the parent.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    pid: u32,
}

impl FileLock {
    /// Owns the lock that this process has just taken on `file`.
    pub fn new(file: File) -> Self {
        Self { file, pid: std::process::id() }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            let _ = flock(&self.file, FlockOperation::Unlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_releases_it_although_a_child_has_the_file_and_a_forked_process_does_not() {
        let open = || File::open(std::env::current_exe().unwrap()).unwrap();
        let lock = |file: &File| flock(file, FlockOperation::NonBlockingLockExclusive);
        let file = open();
        // A copy of the descriptor, as a child inherits it.
        let inherited = file.try_clone().unwrap();
        lock(&file).unwrap();
        drop(FileLock { file, pid: 0 });
        assert!(lock(&open()).is_err(), "another process has the lock");
        drop(FileLock::new(inherited.try_clone().unwrap()));
        lock(&open()).unwrap();
        drop(inherited);
    }
}
