//! Ownership and permissions of a file.

use super::{Backend, Root, reading_of};
use lowlat_host::Reading;
use std::{fs, os::unix::fs::MetadataExt, path::Path};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// Permission bits, 0o7777 at most.
    pub mode: u32,
    /// Owner, as a user ID.
    pub uid: u32,
    pub gid: u32,
}

impl Root {
    /// Ownership of the file at `path`; links are followed. Captures do not keep it: absent there.
    pub fn ownership(&self, path: &str) -> Reading<Ownership> {
        let result = match &self.backend {
            Backend::Live => fs::metadata(Path::new(path)),
            Backend::Directory(directory) => self.resolve(path).and_then(|path| directory.metadata(&path)),
            Backend::Capture(_) => return Reading::Absent,
        };
        let of = |metadata: fs::Metadata| Ownership {
            mode: metadata.mode() & 0o7777,
            uid: metadata.uid(),
            gid: metadata.gid(),
        };
        reading_of(path, result.map(of))
    }
}
