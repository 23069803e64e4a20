//! Keeping memory where it is while samplers run.
//!
//! What a run takes per CPU, allocated and touched before it begins: the histogram (265 KiB), the series (24 bytes a
//! second, 2 MiB at most, less from 65 CPUs on), what is kept of the worst and the first (2 KiB as it is by
//! default), with a companion the ring (1 MiB, less from 65 CPUs on: 64 KiB on 1,024), with raw files a buffer
//! (16 KiB), and some pages of stack. With
//! all of it, ten minutes on 1,024 CPUs take about 360 MiB and a day about 480 MiB; a test measures it.

use rustix::mm::{MlockAllFlags, mlockall, munlockall};

/// Gives large blocks mappings of their own from now on, so that a sampler's are touched by it first and lie on its
/// node. glibc does so by default, until a large block was freed; then it raises the bound by itself.
pub fn map_large_blocks() {
    #[cfg(target_env = "gnu")]
    for (option, value) in [
        // glibc's own first value. Setting it stops glibc from raising it.
        (libc::M_MMAP_THRESHOLD, 128 << 10),
        // glibc's own value, back from that of `keep_memory` in an earlier run.
        (libc::M_MMAP_MAX, 65_536),
    ] {
        set_allocator(option, value);
    }
}

/// Tells the C library's allocator to give no memory back to the kernel from now on, for the rest of the process:
/// taking pages out of an address space interrupts every CPU that runs a thread of it, so each sampler. Called when
/// the samplers have their memory, which so comes in mappings of its own, touched by them first.
///
/// Only glibc can be told. Allocators of other C libraries may still give memory back.
pub fn keep_memory() {
    #[cfg(target_env = "gnu")]
    for (option, value) in [
        // No mapping for a large block: freeing it would unmap it, and growing it would move it by mremap.
        (libc::M_MMAP_MAX, 0),
        // -1: no trimming of the top of the heap when much of it is free.
        (libc::M_TRIM_THRESHOLD, -1),
        // The heap grows in steps of 4 MiB, so that few calls are needed; the pages come when they are used.
        (libc::M_TOP_PAD, 4 << 20),
    ] {
        set_allocator(option, value);
    }
}

#[cfg(target_env = "gnu")]
fn set_allocator(option: libc::c_int, value: libc::c_int) {
    // SAFETY: mallopt takes two numbers, holds the allocator's own lock and touches no memory of ours. Its options
    // are hints: a value that it refuses leaves the one before.
    unsafe { libc::mallopt(option, value) };
}

/// All memory of the process locked while this lives.
#[derive(Debug)]
pub struct Locked(());

impl Locked {
    /// Locks what is resident now and what becomes so later (`MCL_ONFAULT`: nothing is read in for it), code and
    /// stacks included: a page that the kernel takes away would come back by a fault, an interruption of our own
    /// making. For the process as a whole, so a caller that has locked memory itself must lock it again afterwards.
    ///
    /// # Errors
    /// A sentence that says why not, and what to do.
    pub fn new() -> Result<Self, String> {
        mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT).map(|()| Self(())).map_err(|error| {
            format!(
                "The memory of the samplers could not be locked ({error}): a page fault of their own would count as \
                 an interruption. Run as root, or raise the limit on locked memory (ulimit -l)."
            )
        })
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // Unlocking has no failure that could be acted on.
        let _ = munlockall();
    }
}
