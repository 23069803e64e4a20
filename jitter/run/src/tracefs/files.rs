//! Open files of an instance. The kernel does not remove an instance while one of its files is open, so
//! removal must be able to close them all, wherever they are held.

use std::{
    fs::File,
    io,
    sync::{Arc, Mutex, PoisonError},
};

/// A file that can be closed from elsewhere.
///
/// Its user holds the lock for the length of one call that does not block. The other side takes it only when
/// the instance is removed.
#[derive(Debug, Clone)]
pub(super) struct SharedFile(Arc<Mutex<Option<File>>>);

impl SharedFile {
    pub(super) fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(Some(file))))
    }

    /// Uses the file; fails if it has been closed.
    pub(super) fn with<T>(&self, action: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(file) => action(file),
            None => Err(io::Error::new(io::ErrorKind::NotConnected, "the trace instance was removed")),
        }
    }

    pub(super) fn close(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}
