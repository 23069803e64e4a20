//! Ownership and permissions of a file.

use super::{Root, reading_of};
use lowlat_host::Reading;
use std::{fs, io, os::unix::fs::MetadataExt};

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
        if self.is_capture() {
            return Reading::Absent;
        }
        let result =
            self.access(path, |place| fs::metadata(place), |_, _| Err(io::ErrorKind::NotFound.into()));
        let of = |metadata: fs::Metadata| Ownership {
            mode: metadata.mode() & 0o7777,
            uid: metadata.uid(),
            gid: metadata.gid(),
        };
        reading_of(path, result.map(of))
    }
}
