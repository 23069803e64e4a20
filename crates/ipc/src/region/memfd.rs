//! Memory without a file on any disk (memfd_create(2)), passed from process to process as a file descriptor.

use super::{Backing, Region};
use crate::atomics::{AtomicU64, Ordering};
use rustix::{
    fs::{self, FallocateFlags, MemfdFlags, SealFlags},
    io::{self, Errno},
    mm::{self, Advice, MapFlags, MlockFlags, ProtFlags},
};
use std::{ffi::c_void, os::fd::OwnedFd, ptr::NonNull};
use thiserror::Error;

/// Page size of the reserved pool that is asked first.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
/// The smallest page that a kernel has.
const PAGE_BYTES_MIN: usize = 4096;

/// Why memory cannot be had.
#[derive(Debug, Error)]
pub enum RegionError {
    /// The system refused.
    #[error("cannot {doing} shared memory of {bytes} bytes: {source}{}", hint(*.source))]
    Refused {
        /// What was attempted.
        doing: &'static str,
        /// Size of the memory.
        bytes: u64,
        /// What the system said.
        source: Errno,
    },
    /// The descriptor is of something else, or too small to hold anything.
    #[error("found {found}, expected sealed memory of a segment; ask its owner for the right descriptor")]
    NotASegment {
        /// What it is.
        found: String,
    },
}

impl RegionError {
    /// What the system said; `EINVAL` where it was not asked.
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
        Errno::MFILE | Errno::NFILE => "\nhint: raise the limit of open files (ulimit -n)",
        Errno::NOENT => "\nhint: mount /proc",
        _ => "",
    }
}

/// What a process may do with a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read and write.
    Write,
    /// Read only: a store ends the process with SIGSEGV.
    Read,
}

/// Mapped memory of a memfd, which other processes may map too.
///
/// What another process can do to it depends on the descriptor that it was given ([`Memfd::writer_fd`],
/// [`Memfd::reader_fd`]) and on [`Memfd::seal_writes`]:
///
/// * Its size never changes: it is sealed before the first descriptor is passed on, and checked when one is mapped.
/// * With a read-only descriptor a process can only read. It can open the memory for writing again through
///   /proc/PID/fd, as any process of the same user can, unless [`Memfd::seal_writes`] came before.
/// * With a writable descriptor, or a writable mapping, a process can store any value at any time, with instructions of any
///   size. So no value is trusted.
/// * With a writable descriptor it can also punch holes (fallocate(2), madvise(2)), unless [`Memfd::seal_writes`] came
///   before. A hole in usual pages reads as zeros, and the next access takes a new page; where there is no memory for it,
///   the OOM killer decides. A hole in pages of the reserved pool takes a new page from the pool, and SIGBUS ends the
///   process that finds the pool empty.
/// * A process that may trace this one (ptrace(2), /proc/PID/mem) can do anything. On a usual host that is each process of
///   the same user.
#[derive(Debug)]
pub struct Memfd {
    pub(super) fd: OwnedFd,
    address: NonNull<c_void>,
    bytes: usize,
    is_locked: bool,
}

// SAFETY: the mapping belongs to the process, not to a thread; the descriptor may be used by any thread.
unsafe impl Send for Memfd {}
// SAFETY: a shared `Memfd` gives atomics, and the descriptor for system calls, which threads may make at the same time.
unsafe impl Sync for Memfd {}

// SAFETY: the mapping is made in `map`, stays at its address and is unmapped in drop only. Its file is at least as long as the
// mapping and is sealed against shrinking before any other process has it (`create_with`), or was found so (`open`), so
// that no access lies beyond the end of the file. That each page can be had at each access is not promised: see [`Memfd`]. Where
// one can't, the kernel ends the process at that access, which is no undefined behaviour.
unsafe impl Region for Memfd {
    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the address is not null, aligned to a page, and that of a mapping of `bytes` bytes which lives as long as
        // `self`; it is readable, and any bytes are a valid AtomicU64. This process reaches it as atomics only. What other
        // processes do to it is outside the memory model of this one: a load of eight aligned bytes is a single access on
        // x86-64 and AArch64, so it gives some bytes, torn ones if they were stored in parts, and no caller trusts them.
        // In a mapping that is read-only, loads do not write: they are plain loads on both, whatever their ordering.
        unsafe {
            std::slice::from_raw_parts(self.address.as_ptr().cast(), self.bytes / size_of::<AtomicU64>())
        }
    }
}

impl Memfd {
    /// New memory of at least `bytes` bytes, zeroed, every page there and, where the limit of locked memory allows it,
    /// locked before it is returned: a page fault later would be paid by whoever is fast. Huge pages of the reserved pool are taken where it has enough, else
    /// transparent ones are asked for. `name` shows in /proc/PID/maps.
    pub fn create(name: &str, bytes: u64) -> Result<Self, RegionError> {
        // A page of the pool for a few lines would leave none for the segments.
        if bytes < HUGE_PAGE_BYTES / 2 {
            return Self::create_usual(name, bytes);
        }
        match Self::create_with(name, bytes.next_multiple_of(HUGE_PAGE_BYTES), MemfdFlags::HUGETLB) {
            Ok(memory) => Ok(memory),
            // No pool, not enough in it, or a kernel without: the usual pages then.
            Err(_) => Self::create_usual(name, bytes),
        }
    }

    /// The same without the reserved pool.
    pub fn create_usual(name: &str, bytes: u64) -> Result<Self, RegionError> {
        Self::create_with(name, bytes, MemfdFlags::empty())
    }

    fn create_with(name: &str, bytes: u64, pages: MemfdFlags) -> Result<Self, RegionError> {
        let refused = |doing| move |source| RegionError::Refused { doing, bytes, source };
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | pages;
        let fd = fs::memfd_create(name, flags).map_err(refused("make"))?;
        fs::ftruncate(&fd, bytes).map_err(refused("set the size of"))?;
        // An access beyond the end of the file would end its process with SIGBUS.
        fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW).map_err(refused("seal the size of"))?;
        let mut memory = Self::map(fd, bytes, Access::Write)?;
        if pages.is_empty() {
            // Only advice; the kernel says in smaps whether it followed.
            memory.advise(Advice::LinuxHugepage).ok();
        }
        let populated = memory.advise(Advice::LinuxPopulateWrite);
        memory.fill_unless(populated).map_err(refused("get the pages of"))?;
        // Users that are not root may lock little by default. Without the lock it may go to swap, where there is any.
        memory.is_locked = memory.lock().is_ok();
        Ok(memory)
    }

    /// Maps memory that another process made. Its size must be sealed.
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
        // Pages are there already; this fills the page tables of this process. Older kernels fault them in one by one.
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
        // SAFETY: a new mapping at an address of the kernel's choice replaces none. It is unmapped in drop, and references
        // into it borrow from the value.
        let address = unsafe { mm::mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, &fd, 0) }
            .map_err(refused)?;
        let address = NonNull::new(address).ok_or_else(|| refused(Errno::NOMEM))?;
        Ok(Self { fd, address, bytes: length, is_locked: false })
    }

    fn advise(&self, advice: Advice) -> Result<(), Errno> {
        // SAFETY: the range is that of this value's mapping. The callers pass LinuxHugepage, LinuxPopulateRead and
        // LinuxPopulateWrite, which change no content.
        unsafe { mm::madvise(self.address.as_ptr(), self.bytes, advice) }
    }

    /// What the kernel said when it was told to fill the memory with pages. Before Linux 5.14 it does not know how, and it is
    /// done by hand.
    fn fill_unless(&self, populated: Result<(), Errno>) -> Result<(), Errno> {
        match populated {
            Err(Errno::INVAL) => self.fill_by_hand(),
            told => told,
        }
    }

    /// Gets every page of memory that is new and that nobody else has, and fills the page tables with them.
    fn fill_by_hand(&self) -> Result<(), Errno> {
        // First without a touch, which would end the process with SIGBUS where memory is missing; this call says so, also of
        // the reserved pool. It does not see the advice of the mapping: transparent huge pages come only unasked here.
        io::retry_on_intr(|| fs::fallocate(&self.fd, FallocateFlags::empty(), 0, self.bytes()))?;
        for word in self.words().iter().step_by(PAGE_BYTES_MIN / size_of::<AtomicU64>()) {
            // It is zero already. A store, since a change that changes nothing may be compiled to less.
            word.store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn lock(&self) -> Result<(), Errno> {
        // SAFETY: the range is that of this value's mapping, and locking changes no content. Its pages exist, so ONFAULT
        // locks all of them, without a second walk.
        unsafe { mm::mlock_with(self.address.as_ptr(), self.bytes, MlockFlags::ONFAULT) }
    }

    /// Whether this process, which made it, has locked it in memory. It did not where the limit of locked memory is too
    /// low (ulimit -l, LimitMEMLOCK=).
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Bytes mapped.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(u64::MAX)
    }

    /// Which pages the kernel really gave; none when /proc/self/smaps cannot be read.
    pub fn backing(&self) -> Option<Backing> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        Backing::from_smaps(&smaps, u64::try_from(self.address.as_ptr().addr()).ok()?)
    }
}

impl Drop for Memfd {
    fn drop(&mut self) {
        // SAFETY: the range is that of the mapping made in `map`. References into it borrow from this value, and so have
        // ended.
        let unmapped = unsafe { mm::munmap(self.address.as_ptr(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "munmap of an existing mapping");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shared_filled_and_of_a_fixed_size() {
        let ours = Memfd::create("lowlat-test", 64 << 10).unwrap();
        let theirs = Memfd::open(ours.writer_fd().try_clone_to_owned().unwrap(), Access::Read).unwrap();
        ours.words()[5].store(7, Ordering::Release);
        assert_eq!(theirs.words()[5].load(Ordering::Acquire), 7);
        assert!(ours.bytes() >= 64 << 10 && theirs.bytes() == ours.bytes());
        assert!(fs::ftruncate(ours.writer_fd(), 4096).is_err(), "sealed");
        assert!(ours.backing().is_some() && !theirs.is_locked());
    }

    #[test]
    fn what_is_no_segment_is_refused() {
        let file = tempfile();
        assert!(matches!(Memfd::open(file, Access::Read), Err(RegionError::NotASegment { .. })));
        let unsealed = fs::memfd_create("x", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        fs::ftruncate(&unsealed, 8192).unwrap();
        let error = Memfd::open(unsealed, Access::Read).unwrap_err().to_string();
        assert!(error.contains("still shrink"), "{error}");
        assert!(Memfd::create("x", 1 << 60).is_err());
    }

    /// Memory as it is before it is filled, with this size of its file.
    fn empty(bytes: u64, file_bytes: u64) -> Memfd {
        let fd = fs::memfd_create("lowlat-test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        fs::ftruncate(&fd, file_bytes).unwrap();
        fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW).unwrap();
        Memfd::map(fd, bytes, Access::Write).unwrap()
    }

    /// Bytes of the mapping that this process has in its page tables.
    fn resident_bytes(memory: &Memfd) -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let start = format!("{:x}-", memory.address.as_ptr().addr());
        let mut lines = smaps.lines().skip_while(|line| !line.starts_with(&start));
        let rss = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
        rss.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
    }

    #[test]
    fn a_kernel_that_cannot_be_asked_for_the_pages_gives_them_one_by_one() {
        // A multiple of every usual page, and of no huge one.
        let bytes = 17 * (64 << 10);
        let memory = empty(bytes, bytes);
        assert_eq!(resident_bytes(&memory), 0);
        assert_eq!(memory.fill_unless(Err(Errno::NOMEM)), Err(Errno::NOMEM));
        assert_eq!((memory.fill_unless(Ok(())), resident_bytes(&memory)), (Ok(()), 0));
        // What Linux before 5.14 says.
        memory.fill_unless(Err(Errno::INVAL)).unwrap();
        assert_eq!(resident_bytes(&memory), bytes);
        assert!(memory.words().iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn pages_that_cannot_be_had_are_an_error_and_not_the_end_of_the_process() {
        // Half of it lies behind the end of its file, which may not grow: as good as no memory.
        assert_eq!(empty(64 << 10, 32 << 10).fill_by_hand(), Err(Errno::PERM));
    }

    fn tempfile() -> OwnedFd {
        std::fs::File::open("/proc/self/cmdline").unwrap().into()
    }
}
