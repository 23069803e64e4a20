//! Keeps memory in place while samplers run.
//!
//! Memory of a run per CPU, allocated and touched before it starts: the histogram (265 KiB), the series (24
//! bytes a second, 2 MiB at most, less from 65 CPUs on), the worst and first interruptions (2 KiB by default),
//! with a companion the ring (1 MiB, less from 65 CPUs on: 64 KiB on 1,024), with raw files a buffer (16 KiB),
//! and some pages of stack. With all of it, ten minutes on 1,024 CPUs take about 360 MiB and a day about 480
//! MiB; a test measures it.

use lowlat_jitter::Warning;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};

/// Gives large blocks separate mappings from now on, so that a sampler touches its blocks first and they are on
/// its node. glibc does so by default until a large block is freed; then it raises the threshold.
pub fn map_large_blocks() {
    #[cfg(target_env = "gnu")]
    for (option, value) in [
        // glibc's initial value. Setting it stops glibc from raising it.
        (libc::M_MMAP_THRESHOLD, 128 << 10),
        // glibc's default, restored after `keep_memory` of an earlier run.
        (libc::M_MMAP_MAX, 65_536),
    ] {
        set_allocator(option, value);
    }
}

/// Keeps the C library's allocator from returning memory to the kernel, for the rest of the process: removing
/// pages from an address space interrupts every CPU with a thread of it, so each sampler. Called once the
/// samplers have their memory, which is therefore in separate mappings that they touched first.
///
/// Only glibc supports this. Allocators of other C libraries may still return memory.
pub fn keep_memory() {
    #[cfg(target_env = "gnu")]
    for (option, value) in [
        // No mapping for a large block: freeing it would unmap it, and growing it would move it by mremap.
        (libc::M_MMAP_MAX, 0),
        // -1: no trimming of the top of the heap, however much of it is free.
        (libc::M_TRIM_THRESHOLD, -1),
        // The heap grows in steps of 4 MiB, so that few calls are needed; pages are faulted in on use.
        (libc::M_TOP_PAD, 4 << 20),
    ] {
        set_allocator(option, value);
    }
}

#[cfg(target_env = "gnu")]
fn set_allocator(option: libc::c_int, value: libc::c_int) {
    // SAFETY: mallopt takes two numbers, holds the allocator's own lock and touches no memory of ours. Its
    // options are hints: a rejected value leaves the previous one.
    unsafe { libc::mallopt(option, value) };
}

/// Locks all memory of the process while this lives.
#[derive(Debug)]
pub struct Locked(());

impl Locked {
    /// Locks all resident and future memory (`MCL_ONFAULT`: nothing is read in for it), including code and
    /// stacks: a page that the kernel reclaims would cause a fault later, an interruption of our own making. It
    /// applies to the whole process, so a caller that has locked memory itself must lock it again afterwards.
    ///
    /// # Errors
    /// [`Warning::MemoryNotLocked`].
    pub fn new() -> Result<Self, Warning> {
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT)
            .map(|()| Self(()))
            .map_err(|error| Warning::MemoryNotLocked { error: error.to_string() })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // A failure to unlock cannot be handled.
        let _ = munlockall();
    }
}
