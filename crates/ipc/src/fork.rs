//! Which process a value belongs to, at the price of one load.
//!
//! A forked process inherits everything that its parent has mapped, and nothing tells it so. getpid(2) would, but is a
//! system call. A page that the kernel zeroes in each forked process (MADV_WIPEONFORK, Linux 4.14) tells with a load.

use crate::atomics::{AtomicU64, Ordering};
use rustix::mm::{self, Advice, MapFlags, ProtFlags};
use std::{ffi::c_void, io, ptr::NonNull};

/// The smallest page that a kernel has; the kernel rounds up.
const PAGE_BYTES: usize = 4096;

/// Marks the process that made it. Processes forked from it find the mark gone.
///
/// Programs that share their memory (threads, vfork(2)) share the mark as well.
#[derive(Debug)]
pub struct ForkMark {
    page: NonNull<c_void>,
    pid: u32,
}

// SAFETY: the page belongs to the process, not to a thread, and is only reached as an atomic.
unsafe impl Send for ForkMark {}
// SAFETY: as above: every access through a shared reference is atomic.
unsafe impl Sync for ForkMark {}

impl ForkMark {
    /// Marks this process. Fails where the kernel is older than Linux 4.14, or has no memory.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice replaces none; it is unmapped in drop only.
        let page = unsafe {
            mm::mmap_anonymous(
                std::ptr::null_mut(),
                PAGE_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        }?;
        let page = NonNull::new(page).ok_or_else(|| io::Error::other("memory at address 0"))?;
        let mark = Self { page, pid: std::process::id() };
        // SAFETY: the range is this value's own mapping, whose content nobody relies on in a forked process.
        unsafe { mm::madvise(mark.page.as_ptr(), PAGE_BYTES, Advice::LinuxWipeOnFork) }?;
        // Relaxed: read by `is_this_process` of this process; forked ones read what the kernel wrote.
        mark.word().store(1, Ordering::Relaxed);
        Ok(mark)
    }

    /// Whether the calling process made the mark. No system call.
    #[inline]
    pub fn is_this_process(&self) -> bool {
        // Relaxed: the word is stored once, in `new`, before the mark is given to anybody.
        self.word().load(Ordering::Relaxed) != 0
    }

    /// The process that made the mark, also in processes forked from it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    #[inline]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped, readable and writable from `new` to drop, and begins on a page, so the word is
        // aligned; any bytes are a valid AtomicU64; the kernel zeroes it in a forked process before that one runs.
        unsafe { self.page.cast::<AtomicU64>().as_ref() }
    }
}

impl Drop for ForkMark {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping made in `new`; references into it borrow from this value and have ended.
        let unmapped = unsafe { mm::munmap(self.page.as_ptr(), PAGE_BYTES) };
        debug_assert!(unmapped.is_ok(), "munmap of the value's own mapping");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{WaitOptions, waitpid};

    #[test]
    fn a_thread_finds_the_mark_and_a_forked_process_does_not() {
        let mark = ForkMark::new().unwrap();
        assert!(mark.is_this_process());
        assert_eq!(mark.pid(), std::process::id());
        std::thread::scope(|scope| assert!(scope.spawn(|| mark.is_this_process()).join().unwrap()));
        // The child's first process-wide step is its exit: it loads a word and ends.
        let code = in_forked_process(|| if mark.is_this_process() { 1 } else { 7 });
        assert_eq!((code, mark.is_this_process()), (Some(7), true));
    }

    /// The exit code of a forked process that runs `work`, which may neither allocate nor lock.
    fn in_forked_process(work: impl Fn() -> i32) -> Option<i32> {
        unsafe extern "C" {
            fn fork() -> i32;
            fn _exit(code: i32) -> !;
        }
        // SAFETY: the child makes no call but `work`, which neither allocates nor locks, and _exit.
        let pid = unsafe { fork() };
        if pid == 0 {
            let code = work();
            // SAFETY: _exit runs no destructor and no handler.
            unsafe { _exit(code) };
        }
        let pid = rustix::process::Pid::from_raw(pid).expect("a process is forked");
        let (_, status) = waitpid(Some(pid), WaitOptions::empty()).unwrap().unwrap();
        status.exit_status()
    }
}
