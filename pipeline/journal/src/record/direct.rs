//! Writes past the page cache.
//!
//! A recorder writes each byte once, and nobody reads it soon. In the page cache it would cost a copy and new
//! pages, evict other pages, and delay the next sync in one large stall. With direct writes the disk reads from
//! this memory: much less CPU time, and a sync has little left to do.
//!
//! ```text
//! blocks in multiples of 64 bytes --copied--> staging, aligned to pages --whole pages--> disk
//!                                               ^--- the last, partial page stays ---/
//! ```
//!
//! The disk accepts only whole pages. The page in which the last block ends is padded with zeros, which it
//! contains anyway, and written again with what follows. Its first bytes are the same then, so a power cut in
//! between leaves them intact on a disk whose sectors are written atomically; otherwise the block's check
//! reveals it.

use super::storage::{self, Storage, StoredFile};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

/// Alignment of memory, offsets and lengths: the largest that common disks and file systems need.
const PAGE: usize = 4096;
/// Bytes that are collected for one write while more are available.
const STAGING_BYTES: usize = 1 << 20;

/// System files, written past the page cache where the file system supports it.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectDisk;

impl Storage for DirectDisk {
    type File = DirectFile;

    fn create(&self, path: &Path) -> io::Result<DirectFile> {
        let options = |flags: OFlags| {
            let mut options = OpenOptions::new();
            let flags = i32::try_from(flags.bits()).unwrap_or(0);
            options.write(true).create_new(true).mode(storage::FILE_MODE).custom_flags(flags);
            options
        };
        match options(OFlags::DIRECT).open(path) {
            // Some file systems refuse only after creating the file.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                std::fs::remove_file(path).ok();
                options(OFlags::empty()).open(path).map(DirectFile::new)
            }
            opened => opened.map(DirectFile::new),
        }
    }
}

/// A file that is written sequentially.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    staging: Staging,
    /// File offset of the staging's first byte.
    start: u64,
    /// File offset up to which the system has the data.
    written: u64,
}

impl DirectFile {
    fn new(file: File) -> Self {
        Self { file, staging: Staging::new(), start: 0, written: 0 }
    }

    /// Writes this many bytes of the staging, which must be whole pages.
    fn write_pages(&self, bytes: usize) -> io::Result<()> {
        let mut done = 0;
        while done < bytes {
            let pages = self.staging.pages().get(done..bytes).unwrap_or_default();
            let at = self.start + crate::bytes::wide(done);
            match self.file.write_at(pages, at) {
                // A partial page is written again, because the next write must start with a page too.
                Ok(written) if written >= PAGE => done += written - written % PAGE,
                Ok(_) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidInput && self.is_direct() => {
                    // This disk needs larger pages.
                    fcntl_setfl(&self.file, fcntl_getfl(&self.file)? - OFlags::DIRECT)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn is_direct(&self) -> bool {
        fcntl_getfl(&self.file).is_ok_and(|flags| flags.contains(OFlags::DIRECT))
    }
}

impl StoredFile for DirectFile {
    fn allocate(&mut self, bytes: u64) -> io::Result<()> {
        self.file.allocate(bytes)
    }

    fn write_at(&mut self, mut bytes: &[u8], offset: u64) -> io::Result<()> {
        if offset != self.start + crate::bytes::wide(self.staging.filled) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not after the last write"));
        }
        loop {
            bytes = self.staging.take(bytes);
            if bytes.is_empty() {
                return Ok(());
            }
            self.write_pages(STAGING_BYTES)?;
            self.start += crate::bytes::wide(STAGING_BYTES);
            self.written = self.start;
            self.staging.filled = 0;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let end = self.start + crate::bytes::wide(self.staging.filled);
        if end == self.written {
            return Ok(());
        }
        let bytes = self.staging.fill_page();
        self.write_pages(bytes)?;
        self.written = end;
        self.start += crate::bytes::wide(self.staging.keep_last_page());
        Ok(())
    }

    fn written_to(&self) -> Option<u64> {
        Some(self.written)
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.file.truncate(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        StoredFile::sync(&mut self.file)
    }
}

/// Page-aligned memory, so that a disk can read it.
#[derive(Debug)]
struct Staging {
    bytes: Vec<u8>,
    /// Offset of its first page.
    first: usize,
    filled: usize,
}

impl Staging {
    fn new() -> Self {
        // Written once, so that no page fault occurs later.
        let bytes = vec![1; STAGING_BYTES + PAGE];
        let first = bytes.as_ptr().align_offset(PAGE).min(PAGE);
        Self { bytes, first, filled: 0 }
    }

    fn pages(&self) -> &[u8] {
        self.bytes.get(self.first..self.first + STAGING_BYTES).unwrap_or_default()
    }

    fn pages_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.first..self.first + STAGING_BYTES).unwrap_or_default()
    }

    /// Takes what fits, and returns the rest.
    fn take<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let (now, rest) = bytes.split_at(bytes.len().min(STAGING_BYTES - self.filled));
        let from = self.filled;
        crate::bytes::put(self.pages_mut(), from, now);
        self.filled += now.len();
        rest
    }

    /// Pads the last page with zeros. Returns the resulting number of bytes.
    fn fill_page(&mut self) -> usize {
        let (from, to) = (self.filled, self.filled.next_multiple_of(PAGE));
        self.pages_mut().get_mut(from..to).unwrap_or_default().fill(0);
        to
    }

    /// Drops the whole pages, and returns their number of bytes.
    fn keep_last_page(&mut self) -> usize {
        let whole = self.filled - self.filled % PAGE;
        let filled = self.filled;
        self.pages_mut().copy_within(whole..filled, 0);
        self.filled -= whole;
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use tempfile::TempDir;

    /// Writes pieces of these lengths, with flushes as given, and compares the file with them.
    fn written_as_given(pieces: &[(usize, bool)]) {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("x");
        let mut file = DirectDisk.create(&path).unwrap();
        let mut wanted: Vec<u8> = Vec::new();
        for (length, is_flushed) in pieces {
            let piece: Vec<u8> =
                (wanted.len()..wanted.len() + length).map(|at| u8::try_from(at % 251).unwrap()).collect();
            file.write_at(&piece, wanted.len() as u64).unwrap();
            wanted.extend(piece);
            if *is_flushed {
                file.flush().unwrap();
                assert_eq!(file.written_to(), Some(wanted.len() as u64));
                let there = fs::read(&path).unwrap();
                assert_eq!(there[..wanted.len()], wanted);
                assert!(there[wanted.len()..].iter().all(|byte| *byte == 0));
            }
            let written = usize::try_from(file.written_to().unwrap()).unwrap();
            assert_eq!(
                fs::read(&path).unwrap()[..written],
                wanted[..written],
                "what it reports as written is in the file"
            );
        }
        file.flush().unwrap();
        file.truncate(wanted.len() as u64).unwrap();
        assert_eq!(fs::read(&path).unwrap(), wanted);
    }

    #[test]
    fn pieces_of_all_lengths_are_written_in_sequence() {
        let long = STAGING_BYTES;
        written_as_given(&[
            (PAGE, true),
            (64, true),
            (64, true),
            (long, false),
            (3 * long + 64, true),
            (0, true),
        ]);
        written_as_given(&[(long, false), (long, true), (long - 64, false), (64, true), (64, false)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn any_pieces_do(pieces in proptest::collection::vec((0_usize..300_000, any::<bool>()), 0..12)) {
            written_as_given(&pieces);
        }
    }

    #[test]
    fn a_hole_and_an_existing_file_are_refused() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("x");
        let mut file = DirectDisk.create(&path).unwrap();
        assert_eq!(file.write_at(b"x", 1).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(DirectDisk.create(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
