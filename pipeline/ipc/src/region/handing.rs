//! Descriptors of memory for other processes, each with the least access that is needed.

use super::{Memfd, RegionError};
use rustix::{
    fs::{self, Mode, OFlags, SealFlags},
    io::Errno,
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes per block in fstat(2).
const BLOCK_BYTES: u64 = 512;

impl Memfd {
    /// A descriptor for a process that writes the memory (SCM_RIGHTS).
    pub fn writer_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A new descriptor for a process that only reads the memory. Needs /proc.
    ///
    /// A copy of [`Memfd::writer_fd`] would be writable, whatever access the receiver requests when it maps it.
    /// This is another open file of the same memory, opened read-only.
    pub fn reader_fd(&self) -> Result<OwnedFd, RegionError> {
        let refused = |source| self.refused("open a read-only descriptor of", source);
        let path = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        let fd = fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(refused)?;
        let [ours, theirs] = [fs::fstat(&self.fd), fs::fstat(&fd)].map(|stat| stat.map_err(refused));
        let (ours, theirs) = (ours?, theirs?);
        if (ours.st_dev, ours.st_ino) != (theirs.st_dev, theirs.st_ino) {
            let found = "another file behind /proc/self/fd, so /proc is not the kernel's".to_owned();
            return Err(RegionError::NotASegment { found });
        }
        Ok(fd)
    }

    /// Ends write access through descriptors: existing writable mappings keep it, and no other process can get
    /// it, whatever descriptors it has or opens. Holes can no longer be punched.
    ///
    /// Returns false if the kernel lacks this seal (before Linux 5.1). For pages of the reserved pool, kernels
    /// before 5.13 have the seal but still allow new writable mappings.
    pub fn seal_writes(&self) -> Result<bool, RegionError> {
        match fs::fcntl_add_seals(&self.fd, SealFlags::FUTURE_WRITE | SealFlags::SEAL) {
            Ok(()) => Ok(true),
            Err(Errno::INVAL) => self.seal_seals().map(|()| false),
            Err(source) => Err(self.refused("seal", source)),
        }
    }

    /// Prevents further seals on memory that several processes write: with another seal, one of them could lock
    /// the others out.
    pub fn seal_seals(&self) -> Result<(), RegionError> {
        fs::fcntl_add_seals(&self.fd, SealFlags::SEAL).map_err(|source| self.refused("seal", source))
    }

    /// Returns true if every page exists. A page is missing if a process punched a hole.
    pub fn is_whole(&self) -> Result<bool, RegionError> {
        let stat = fs::fstat(&self.fd).map_err(|source| self.refused("stat", source))?;
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        Ok(blocks.saturating_mul(BLOCK_BYTES) >= self.bytes())
    }

    fn refused(&self, doing: &'static str, source: Errno) -> RegionError {
        RegionError::Refused { doing, bytes: self.bytes(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        atomics::Ordering,
        region::{Access, Backing, Region},
    };
    use rustix::{
        fs::FallocateFlags,
        io,
        mm::{self, MapFlags, ProtFlags},
    };

    const BYTES: u64 = 64 << 10;
    const RESERVED_BYTES: u64 = 2 << 20;
    const NOTHING: [&str; 0] = [];

    /// Lists the operations that a descriptor allows on its memory.
    fn can(fd: &OwnedFd, page_bytes: u64) -> Vec<&'static str> {
        let length = usize::try_from(page_bytes).unwrap();
        let writable = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping replaces none, and nothing refers to it.
        let mapped = unsafe { mm::mmap(std::ptr::null_mut(), length, writable, MapFlags::SHARED, fd, 0) };
        if let Ok(address) = mapped {
            // SAFETY: the mapping was just made and nothing refers to it.
            unsafe { mm::munmap(address, length) }.unwrap();
        }
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let tried = [
            ("map", mapped.is_ok()),
            ("write", io::pwrite(fd, &[1], 0).is_ok()),
            ("punch", fs::fallocate(fd, hole, 0, page_bytes).is_ok()),
            ("shrink", fs::ftruncate(fd, 0).is_ok()),
            ("grow", fs::ftruncate(fd, page_bytes * 4).is_ok()),
        ];
        tried.into_iter().filter_map(|(what, has_worked)| has_worked.then_some(what)).collect()
    }

    fn reopened(fd: &OwnedFd) -> OwnedFd {
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    #[test]
    fn a_reader_can_only_read() {
        let memory = Memfd::create_usual("lowlat-test", BYTES).unwrap();
        memory.words()[3].store(7, Ordering::Relaxed);
        let fd = memory.reader_fd().unwrap();
        assert_eq!(can(&fd, BYTES), NOTHING);
        let theirs = Memfd::open(fd.try_clone().unwrap(), Access::Read).unwrap();
        assert_eq!(theirs.words()[3].load(Ordering::Relaxed), 7);
        let error = Memfd::open(fd, Access::Write).unwrap_err();
        assert!(matches!(error, RegionError::Refused { source: Errno::ACCESS, .. }), "{error}");
    }

    #[test]
    fn sealed_memory_denies_writes_by_descriptors_and_keeps_mappings() {
        let memory = Memfd::create_usual("lowlat-test", BYTES).unwrap();
        let writer = Memfd::open(memory.writer_fd().try_clone_to_owned().unwrap(), Access::Write).unwrap();
        let fds = [memory.reader_fd().unwrap(), memory.writer_fd().try_clone_to_owned().unwrap()];
        // Without the seal a reader regains write access by reopening the file.
        assert_eq!(can(&reopened(&fds[0]), BYTES), ["map", "write", "punch"]);
        if !memory.seal_writes().unwrap() {
            eprintln!(
                "skipped: sealed_memory_denies_writes: this kernel has no F_SEAL_FUTURE_WRITE (Linux 5.1)"
            );
            return;
        }
        for fd in fds {
            assert_eq!(can(&fd, BYTES), NOTHING);
            assert_eq!(can(&reopened(&fd), BYTES), NOTHING);
        }
        writer.words()[5].store(9, Ordering::Relaxed);
        assert_eq!(memory.words()[5].load(Ordering::Relaxed), 9);
        assert!(matches!(memory.seal_seals(), Err(RegionError::Refused { source: Errno::PERM, .. })));
    }

    #[test]
    fn a_hole_is_detected_until_its_page_is_used() {
        let memory = Memfd::create_usual("lowlat-test", BYTES).unwrap();
        assert!(memory.is_whole().unwrap());
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fs::fallocate(memory.writer_fd(), hole, 0, 4096).unwrap();
        assert!(!memory.is_whole().unwrap());
        // Base pages: a hole reads as zeros, and does not end the process.
        assert_eq!(memory.words()[0].load(Ordering::Relaxed), 0);
    }

    #[test]
    fn no_seal_can_be_added_to_memory_of_several_writers() {
        let memory = Memfd::create_usual("lowlat-test", BYTES).unwrap();
        memory.seal_seals().unwrap();
        assert_eq!(fs::fcntl_add_seals(memory.writer_fd(), SealFlags::FUTURE_WRITE), Err(Errno::PERM));
    }

    #[test]
    fn pages_of_the_reserved_pool_are_protected_in_the_same_way() {
        let is_reserved = |memory: &Memfd| matches!(memory.backing(), Some(Backing::Reserved { .. }));
        let Some(memory) = Memfd::create("lowlat-test", RESERVED_BYTES).ok().filter(is_reserved) else {
            eprintln!("skipped: pages_of_the_reserved_pool: no free huge page (/proc/sys/vm/nr_hugepages)");
            return;
        };
        memory.words()[3].store(7, Ordering::Relaxed);
        let fd = memory.reader_fd().unwrap();
        assert_eq!(can(&fd, RESERVED_BYTES), NOTHING);
        assert!(memory.is_whole().unwrap());
        let theirs = Memfd::open(fd.try_clone().unwrap(), Access::Read).unwrap();
        if memory.seal_writes().unwrap() {
            assert!(!can(&reopened(&fd), RESERVED_BYTES).contains(&"punch"));
        }
        assert_eq!(theirs.words()[3].load(Ordering::Relaxed), 7);
    }
}
