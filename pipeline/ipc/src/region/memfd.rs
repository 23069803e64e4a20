//! Anonymous memory (memfd_create(2)), passed between processes as a file descriptor.

use super::{Backing, Region};
use crate::atomics::{AtomicU64, Ordering};
use rustix::{
    fs::{self, FallocateFlags, MemfdFlags, Mode, SealFlags},
    io::{self, Errno},
    mm::{self, Advice, MapFlags, MlockFlags, ProtFlags},
};
use std::{ffi::c_void, os::fd::OwnedFd, ptr::NonNull};
use thiserror::Error;

/// Page size of the reserved pool, which is tried first.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// The smallest page size of any kernel.
const PAGE_BYTES_MIN: usize = 4096;

/// Reason why memory is not available.
#[derive(Debug, Error)]
pub enum RegionError {
    /// The system refused an operation.
    #[error("cannot {doing} shared memory of {bytes} bytes: {source}{}", hint(*.source))]
    Refused {
        /// The operation, as a verb for the error text.
        doing: &'static str,
        bytes: u64,
        source: Errno,
    },
    /// The descriptor refers to something else, or its memory is too small.
    #[error("cannot map the descriptor: found {found}, expected sealed memory of a segment")]
    NotASegment {
        /// Description of what was found.
        found: String,
    },
}

impl RegionError {
    /// The system's error; `EINVAL` if no call was made.
    pub fn errno(&self) -> Errno {
        match self {
            Self::Refused { source, .. } => *source,
            Self::NotASegment { .. } => Errno::INVAL,
        }
    }
}

fn hint(errno: Errno) -> &'static str {
    match errno {
        Errno::NOMEM => "\nhint: make it smaller, or free memory",
        Errno::MFILE | Errno::NFILE => "\nhint: raise the limit on open files (ulimit -n)",
        Errno::NOENT => "\nhint: mount /proc",
        _ => "",
    }
}

/// Access of a process to a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Both read and write access.
    Write,
    /// Read only: a store ends the process with SIGSEGV.
    Read,
}

/// Mapped memory of a memfd, which other processes may map too.
///
/// What another process can do to it depends on the descriptor that it received ([`Memfd::writer_fd`],
/// [`Memfd::reader_fd`]) and on [`Memfd::seal_writes`]:
///
/// * Its size never changes: it is sealed before the first descriptor is passed on, and checked when one is
///   mapped.
/// * With a read-only descriptor a process can only read. It can reopen the memory for writing through
///   /proc/PID/fd, as any process of the same user can, unless [`Memfd::seal_writes`] was called before.
/// * With a writable descriptor, or a writable mapping, a process can store any value at any time, with
///   instructions of any size. So no value is trusted.
/// * With a writable descriptor it can also punch holes (fallocate(2), madvise(2)), unless
///   [`Memfd::seal_writes`] was called before. A hole in base pages reads as zeros, and the next access takes a
///   new page; if no memory is left for it, the OOM killer acts. A hole in pages of the reserved pool takes a
///   new page from the pool, and SIGBUS ends the process that finds the pool empty.
/// * A process that may trace this one (ptrace(2), /proc/PID/mem) can do anything. On a default host that is
///   every process of the same user.
#[derive(Debug)]
pub struct Memfd {
    pub(super) fd: OwnedFd,
    address: NonNull<c_void>,
    bytes: usize,
    is_locked: bool,
}

// SAFETY: the mapping belongs to the process, not to a thread; any thread may use the descriptor.
unsafe impl Send for Memfd {}
// SAFETY: a shared `Memfd` gives atomics, and the descriptor for system calls, which threads may make
// concurrently.
unsafe impl Sync for Memfd {}

// SAFETY: the mapping is made in `map`, stays at its address and is unmapped only in drop. Its file is at least
// as long as the mapping and is sealed against shrinking before any other process has it (`create_with`), or
// was found sealed (`open`), so no access lies beyond the end of the file. Availability of each page at each
// access is not guaranteed: see [`Memfd`]. Without a page the kernel ends the process at that access, which is
// not undefined behaviour.
unsafe impl Region for Memfd {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the address is not null, page-aligned, and that of a mapping of `bytes` bytes that lives as
        // long as `self`; it is readable, and any bytes are a valid AtomicU64. This process accesses it only as
        // atomics. Accesses by other processes are outside this process's memory model: a load of eight aligned
        // bytes is a single access on x86-64 and AArch64, so it returns some bytes, torn ones if they were
        // stored in parts, and no caller trusts them. In a read-only mapping loads do not write: they are plain
        // loads on both, whatever their ordering.
        unsafe {
            std::slice::from_raw_parts(self.address.as_ptr().cast(), self.bytes / size_of::<AtomicU64>())
        }
    }
}

impl Memfd {
    /// Creates zeroed memory of at least `bytes` bytes. All its pages exist and, if the limit on locked memory
    /// allows, are locked before this returns, so that no page fault delays the hot path. Uses huge pages of
    /// the reserved pool if it has enough, otherwise asks for transparent ones. `name` is shown in
    /// /proc/PID/maps.
    pub fn create(name: &str, bytes: u64) -> Result<Self, RegionError> {
        // A pool page for a few lines would leave none for the segments.
        if bytes < HUGE_PAGE_BYTES / 2 {
            return Self::create_usual(name, bytes);
        }
        match Self::create_with(name, bytes.next_multiple_of(HUGE_PAGE_BYTES), MemfdFlags::HUGETLB) {
            Ok(memory) => Ok(memory),
            // No pool, too few pages in it, or a kernel without one: base pages then.
            Err(_) => Self::create_usual(name, bytes),
        }
    }

    /// The same, without the reserved pool.
    pub fn create_usual(name: &str, bytes: u64) -> Result<Self, RegionError> {
        Self::create_with(name, bytes, MemfdFlags::empty())
    }

    fn create_with(name: &str, bytes: u64, pages: MemfdFlags) -> Result<Self, RegionError> {
        let refused = |doing| move |source| RegionError::Refused { doing, bytes, source };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | pages;
        let fd = fs::memfd_create(name, flags).map_err(refused("make"))?;
        // Otherwise any user with a read-only descriptor could open it again for writing.
        fs::fchmod(&fd, Mode::RUSR | Mode::WUSR).map_err(refused("protect"))?;
        fs::ftruncate(&fd, bytes).map_err(refused("set the size of"))?;
        // An access beyond the end of the file would end the process with SIGBUS.
        fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW).map_err(refused("seal the size of"))?;
        let mut memory = Self::map(fd, bytes, Access::Write)?;
        if pages.is_empty() {
            // Only a hint; smaps shows whether the kernel followed it.
            memory.advise(Advice::LinuxHugepage).ok();
        }
        let populated = memory.advise(Advice::LinuxPopulateWrite);
        memory.fill_unless(populated).map_err(refused("get the pages of"))?;
        // By default only root may lock much memory. Unlocked memory may be swapped out.
        memory.is_locked = memory.lock().is_ok();
        Ok(memory)
    }

    /// Maps memory that another process created. Its size must be sealed.
    pub fn open(fd: OwnedFd, access: Access) -> Result<Self, RegionError> {
        let not = |found: String| RegionError::NotASegment { found };
        let seals =
            fs::fcntl_get_seals(&fd).map_err(|errno| not(format!("a descriptor without seals ({errno})")))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(not("memory that its owner can still shrink".to_owned()));
        }
        let stat =
            fs::fstat(&fd).map_err(|source| RegionError::Refused { doing: "stat", bytes: 0, source })?;
        let bytes = u64::try_from(stat.st_size).unwrap_or(0);
        if bytes < crate::layout::HEADER_BYTES {
            return Err(not(format!("{bytes} bytes")));
        }
        let memory = Self::map(fd, bytes, access)?;
        let populate =
            if access == Access::Write { Advice::LinuxPopulateWrite } else { Advice::LinuxPopulateRead };
        // The pages exist already; this fills this process's page tables. Older kernels fault them in one by
        // one.
        memory.advise(populate).ok();
        Ok(memory)
    }

    fn map(fd: OwnedFd, bytes: u64, access: Access) -> Result<Self, RegionError> {
        let refused = |source| RegionError::Refused { doing: "map", bytes, source };
        let length = usize::try_from(bytes).map_err(|_| refused(Errno::NOMEM))?;
        let protection = match access {
            Access::Write => ProtFlags::READ | ProtFlags::WRITE,
            Access::Read => ProtFlags::READ,
        };
        // SAFETY: a new mapping at an address chosen by the kernel replaces none. It is unmapped in drop, and
        // references into it borrow from the value.
        let address = unsafe { mm::mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, &fd, 0) }
            .map_err(refused)?;
        let address = NonNull::new(address).ok_or_else(|| refused(Errno::NOMEM))?;
        Ok(Self { fd, address, bytes: length, is_locked: false })
    }

    fn advise(&self, advice: Advice) -> Result<(), Errno> {
        // SAFETY: the range is that of this value's mapping. The callers pass LinuxHugepage, LinuxPopulateRead
        // and LinuxPopulateWrite, which change no content.
        unsafe { mm::madvise(self.address.as_ptr(), self.bytes, advice) }
    }

    /// Handles the kernel's answer to the request to populate the pages. Before Linux 5.14 it is unsupported,
    /// and the pages are touched one by one.
    fn fill_unless(&self, populated: Result<(), Errno>) -> Result<(), Errno> {
        match populated {
            Err(Errno::INVAL) => self.fill_by_hand(),
            told => told,
        }
    }

    /// Gets every page of new memory that no other process has yet, and fills the page tables with them.
    fn fill_by_hand(&self) -> Result<(), Errno> {
        // Allocated first without touching the pages, which would end the process with SIGBUS if memory is
        // short; this call returns an error instead, also for the reserved pool. It ignores the advice of the
        // mapping: transparent huge pages only appear here if enabled for all.
        io::retry_on_intr(|| fs::fallocate(&self.fd, FallocateFlags::empty(), 0, self.bytes()))?;
        for word in self.words().iter().step_by(PAGE_BYTES_MIN / size_of::<AtomicU64>()) {
            // It is already zero. A store, because a read-modify-write without effect might be optimized away.
            word.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn lock(&self) -> Result<(), Errno> {
        // SAFETY: the range is that of this value's mapping, and locking changes no content. Its pages exist,
        // so ONFAULT locks all of them without a second walk.
        unsafe { mm::mlock_with(self.address.as_ptr(), self.bytes, MlockFlags::ONFAULT) }
    }

    /// Returns true if the creating process, this one, has locked it in memory. False if the limit on locked memory is
    /// too low (ulimit -l, LimitMEMLOCK=).
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Size of the mapping, in bytes.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(u64::MAX)
    }

    /// The kind of pages that the kernel granted; `None` if /proc/self/smaps cannot be read.
    pub fn backing(&self) -> Option<Backing> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        Backing::from_smaps(&smaps, u64::try_from(self.address.as_ptr().addr()).ok()?)
    }
}

impl Drop for Memfd {
    fn drop(&mut self) {
        // SAFETY: the range is that of the mapping made in `map`. References into it borrow from this value,
        // and so have ended.
        let unmapped = unsafe { mm::munmap(self.address.as_ptr(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of an existing mapping");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shared_populated_and_of_a_fixed_size() {
        let ours = Memfd::create("lowlat-test", 64 << 10).unwrap();
        let theirs = Memfd::open(ours.writer_fd().try_clone_to_owned().unwrap(), Access::Read).unwrap();
        ours.words()[5].store(7, Ordering::Release);
        assert_eq!(theirs.words()[5].load(Ordering::Acquire), 7);
        assert!(ours.bytes() >= 64 << 10 && theirs.bytes() == ours.bytes());
        assert!(fs::ftruncate(ours.writer_fd(), 4096).is_err(), "sealed");
        assert!(ours.backing().is_some() && !theirs.is_locked());
    }

    #[test]
    fn unsealed_or_foreign_descriptors_are_refused() {
        let file = tempfile();
        assert!(matches!(Memfd::open(file, Access::Read), Err(RegionError::NotASegment { .. })));
        let unsealed = fs::memfd_create("x", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        fs::ftruncate(&unsealed, 8192).unwrap();
        let error = Memfd::open(unsealed, Access::Read).unwrap_err().to_string();
        assert!(error.contains("still shrink"), "{error}");
        assert!(Memfd::create("x", 1 << 60).is_err());
    }

    /// Unpopulated memory with this file size.
    fn empty(bytes: u64, file_bytes: u64) -> Memfd {
        let fd = fs::memfd_create("lowlat-test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        fs::ftruncate(&fd, file_bytes).unwrap();
        fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        Memfd::map(fd, bytes, Access::Write).unwrap()
    }

    /// Bytes of the mapping that are in this process's page tables.
    fn resident_bytes(memory: &Memfd) -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let start = format!("{:x}-", memory.address.as_ptr().addr());
        let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&start));
        let rss = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        rss.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    }

    #[test]
    fn without_populate_support_pages_are_touched_one_by_one() {
        // A multiple of every base page size, and of no huge one.
        let bytes = 17 * (64 << 10);
        let memory = empty(bytes, bytes);
        assert_eq!(resident_bytes(&memory), 0);
        assert_eq!(memory.fill_unless(Err(Errno::NOMEM)), Err(Errno::NOMEM));
        assert_eq!((memory.fill_unless(Ok(())), resident_bytes(&memory)), (Ok(()), 0));
        // The error of Linux before 5.14.
        memory.fill_unless(Err(Errno::INVAL)).unwrap();
        assert_eq!(resident_bytes(&memory), bytes);
        assert!(memory.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn missing_pages_are_an_error_and_not_the_end_of_the_process() {
        // Half of it lies beyond the end of its file, which cannot grow: equivalent to no memory.
        assert_eq!(empty(64 << 10, 32 << 10).fill_by_hand(), Err(Errno::PERM));
    }

    fn tempfile() -> OwnedFd {
        std::fs::File::open("/proc/self/cmdline").unwrap().into()
    }
}
