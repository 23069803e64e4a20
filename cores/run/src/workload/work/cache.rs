//! Copies that need the second-level cache.

use crate::{
    cache::link,
    workload::{Kind, Scale, Workload, WorkloadJob},
};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::{hint, io, ptr, slice};

pub const BASE: Workload = Workload {
    name: "cache-base",
    about: "copies follow and change links in memory of three quarters of a second-level cache",
    unit: "blocks",
    kind: Kind::Processes { per_copy: 1, make: |scale| Ok(CacheWalk::of(scale, false).job()) },
};
pub const PEAK: Workload = Workload {
    name: "cache-peak",
    about: "cache-base in huge pages",
    unit: "blocks",
    kind: Kind::Processes { per_copy: 1, make: |scale| Ok(CacheWalk::of(scale, true).job()) },
};

/// Bytes of a line; each holds one link.
const LINE_BYTES: usize = 64;
const LINKS: usize = 1_024;
/// Memory if the size of the second-level cache is unknown.
const BYTES_DEFAULT: usize = 1 << 20;
/// Size of a huge page, and so of the memory at least.
const HUGE_BYTES: usize = 2 << 20;

struct CacheWalk {
    lines: usize,
    is_peak: bool,
}

/// A line with the place of the next one and a counter.
#[repr(C, align(64))]
struct Line {
    next: u32,
    count: u32,
}

impl CacheWalk {
    fn job(self) -> WorkloadJob {
        Box::new(move |_, _, pace| {
            let lines = self.map()?;
            link(lines, |line| &mut line.next, |place| u32::try_from(place).unwrap_or(0));
            let mut at = 0_usize;
            pace.count(|| {
                for _ in 0..LINKS {
                    let Some(line) = hint::black_box(&mut *lines).get_mut(at) else { break };
                    line.count = line.count.wrapping_add(1);
                    at = line.next as usize;
                }
                Ok(())
            })
        })
    }

    fn of(scale: Scale<'_>, is_peak: bool) -> Self {
        let l2 = scale.topology.l2s().find_map(|cache| cache.size_bytes.known().copied());
        let bytes = l2.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(BYTES_DEFAULT) / 4 * 3;
        Self { lines: (bytes / LINE_BYTES).max(2), is_peak }
    }

    /// Memory of this process, which ends with it.
    fn map(&self) -> io::Result<&'static mut [Line]> {
        let bytes = (self.lines * size_of::<Line>()).next_multiple_of(HUGE_BYTES) + HUGE_BYTES;
        let flags = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let start = unsafe { mmap_anonymous(ptr::null_mut(), bytes, flags.0, flags.1) }?;
        let skipped = start.addr().next_multiple_of(HUGE_BYTES) - start.addr();
        // SAFETY: the mapping has a huge page more than the lines need, so the aligned start and the lines are inside.
        let first = unsafe { start.byte_add(skipped) };
        let advice = if self.is_peak { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: within the mapping; advice changes no content. A kernel without huge pages refuses, and then the pages
        // are small.
        let _ = unsafe { madvise(first, bytes - HUGE_BYTES, advice) };
        // SAFETY: mapped for as long as the process lives, zeroed, aligned to a huge page, and known to nobody else.
        Ok(unsafe { slice::from_raw_parts_mut(first.cast::<Line>(), self.lines) })
    }
}
