//! Ownership and permissions of a file.

use super::{Root, directory::open_file, reading_of};
use lowlat_host::Reading;
use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, MetadataExt},
};

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

/// A file held open, which is read repeatedly from its start into one buffer of fixed size.
///
/// While a run measures CPUs it must not return memory to the kernel, because that interrupts every CPU on
/// which a thread of the process runs. So anything that observes the host during a run reads this way.
#[derive(Debug)]
pub struct PolledFile {
    path: String,
    /// `None` for a file of a capture, whose bytes stay in the buffer.
    file: Option<File>,
    buffer: Vec<u8>,
    length: usize,
}

impl PolledFile {
    /// Reads the start of the file, up to the size of the buffer.
    pub fn read(&mut self) -> Reading<&[u8]> {
        if let Some(file) = &self.file {
            match fill(file, &mut self.buffer) {
                Ok(length) => self.length = length,
                Err(error) => return reading_of(&self.path, Err(error)),
            }
        }
        Reading::Known(self.buffer.get(..self.length).unwrap_or_default())
    }
}

impl Root {
    /// Opens a regular file for polling; `bytes_max` is how much of its start is read each time.
    pub fn open_to_poll(&self, path: &str, bytes_max: usize) -> Reading<PolledFile> {
        let opened = self.access(path, |place| open_file(place).map(Some), |_, _| Ok(None));
        let (path, mut buffer) = (path.to_owned(), vec![0; bytes_max]);
        match opened {
            Ok(Some(file)) => Reading::Known(PolledFile { path, file: Some(file), buffer, length: 0 }),
            Ok(None) => self.read_bytes(&path).map(|kept| {
                let length = kept.len().min(bytes_max);
                for (place, byte) in buffer.iter_mut().zip(kept) {
                    *place = byte;
                }
                PolledFile { path, file: None, buffer, length }
            }),
            Err(error) => reading_of(&path, Err(error)),
        }
    }
}

fn fill(file: &File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(rest) = buffer.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, length as u64) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    #[test]
    fn each_look_sees_the_file_as_it_is_then() {
        let tree = TestTree::of(&[("/proc/stat", "cpu0 1\n")]);
        let mut polled = tree.root().open_to_poll("/proc/stat", 8).into_known().unwrap();
        assert_eq!(polled.read(), Reading::Known(&b"cpu0 1\n"[..]));
        let tree = tree.file("/proc/stat", "cpu0 22222222\n");
        assert_eq!(polled.read(), Reading::Known(&b"cpu0 222"[..]));
        let _tree = tree.file("/proc/stat", "");
        assert_eq!(polled.read(), Reading::Known(&b""[..]));
    }

    #[test]
    fn captures_and_what_is_missing_answer_as_elsewhere() {
        let root = Root::in_memory("test", [("/proc/stat".to_owned(), b"cpu0 1".to_vec())]);
        let mut polled = root.open_to_poll("/proc/stat", 4).into_known().unwrap();
        for _ in 0..2 {
            assert_eq!(polled.read(), Reading::Known(&b"cpu0"[..]));
        }
        assert!(root.open_to_poll("/proc/other", 4).is_absent());
        assert!(Root::live().open_to_poll("/proc/no-such-file", 4).is_absent());
        assert!(matches!(Root::live().open_to_poll("/proc", 4), Reading::Unparsable(_)));
    }

    #[test]
    fn a_file_of_the_kernel_is_read_twice() {
        let mut polled = Root::live().open_to_poll("/proc/stat", 4_096).into_known().unwrap();
        for _ in 0..2 {
            assert!(polled.read().into_known().unwrap().starts_with(b"cpu "));
        }
    }
}
