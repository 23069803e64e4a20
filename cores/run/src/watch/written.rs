//! Pages of a process that were written: the ioctl PAGEMAP_SCAN (Linux 6.7, linux/fs.h).

use rustix::ioctl::opcode;
use std::{fs::File, io, ops::Range, os::fd::AsRawFd};

const PAGEMAP_SCAN: libc::c_ulong = opcode::read_write::<PageScan>(b'f', 16) as libc::c_ulong;
const WP_MATCHING: u64 = 1;
const CHECK_WPASYNC: u64 = 1 << 1;
const PAGE_IS_WRITTEN: u64 = 1 << 1;
const PAGE_IS_HUGE: u64 = 1 << 6;
/// Stretches of pages that one scan reports.
const STRETCHES_MAX: usize = 512;

/// struct pm_scan_arg
#[repr(C)]
#[derive(Default)]
struct PageScan {
    bytes: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    stretches: u64,
    stretch_count: u64,
    pages_max: u64,
    inverted: u64,
    mask: u64,
    any: u64,
    returned: u64,
}

/// struct page_region
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct PageRegion {
    start: u64,
    end: u64,
    categories: u64,
}

/// The page map of a process.
#[derive(Debug)]
pub struct WrittenPages(File);

impl WrittenPages {
    /// Opens the page map of a process.
    ///
    /// # Errors
    /// The system's.
    pub fn open(pid: u32) -> io::Result<Self> {
        File::open(format!("/proc/{pid}/pagemap")).map(Self)
    }

    /// Stretches of pages that were written since the last call; in the first call, since the program's start. The
    /// range is registered with [`super::PageWatch::noting`].
    ///
    /// # Errors
    /// The kernel's, if the memory is not registered, or the program has ended.
    pub fn take(&self, range: &Range<u64>) -> io::Result<Vec<Range<u64>>> {
        self.scan(range, WP_MATCHING | CHECK_WPASYNC, PAGE_IS_WRITTEN)
    }

    /// Stretches of transparent huge pages.
    ///
    /// # Errors
    /// The kernel's: `NOTTY` before Linux 6.7.
    pub fn huge(&self, range: &Range<u64>) -> io::Result<Vec<Range<u64>>> {
        self.scan(range, 0, PAGE_IS_HUGE)
    }

    fn scan(&self, range: &Range<u64>, flags: u64, category: u64) -> io::Result<Vec<Range<u64>>> {
        let mut stretches = vec![PageRegion::default(); STRETCHES_MAX];
        let mut scan = PageScan {
            bytes: size_of::<PageScan>() as u64,
            flags,
            start: range.start,
            end: range.end,
            stretches: stretches.as_mut_ptr().expose_provenance() as u64,
            stretch_count: STRETCHES_MAX as u64,
            mask: category,
            returned: category,
            ..PageScan::default()
        };
        // SAFETY: the opcode takes a struct pm_scan_arg. The kernel writes up to `stretch_count` stretches to the vector,
        // which lives during the call and has that many, and gives and takes the permission to write of the other
        // process's pages, which it cannot notice besides by its time.
        let count = unsafe { libc::ioctl(self.0.as_raw_fd(), PAGEMAP_SCAN as _, &raw mut scan) };
        stretches.truncate(usize::try_from(count).map_err(|_| io::Error::last_os_error())?);
        Ok(stretches.into_iter().map(|of| of.start..of.end).collect())
    }
}
