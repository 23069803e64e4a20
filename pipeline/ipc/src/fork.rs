//! The process that owns a value, checked with a single load.
//!
//! A forked process inherits all mappings of its parent without any notice. getpid(2) would reveal the fork but
//! is a system call. A page that the kernel zeroes in each forked process (MADV_WIPEONFORK, Linux 4.14) reveals
//! it with a load.

use crate::atomics::{AtomicU64, Ordering};
use rustix::mm::{self, Advice, MapFlags, ProtFlags};
use std::{ffi::c_void, io, ptr::NonNull};

/// The smallest page size of any kernel; the kernel rounds up.
const PAGE_BYTES: usize = 4096;

/// A mark of the process that created it, absent in processes forked from it.
///
/// Tasks that share memory (threads, vfork(2)) share the mark too.
#[derive(Debug)]
pub struct ForkMark {
    page: NonNull<c_void>,
    pid: u32,
}

// SAFETY: the page belongs to the process, not to a thread, and is only accessed as an atomic.
unsafe impl Send for ForkMark {}
// SAFETY: as above: every access through a shared reference is atomic.
unsafe impl Sync for ForkMark {}

impl ForkMark {
    /// Marks this process. Fails on kernels older than Linux 4.14, or without memory.
    pub fn new() -> io::Result<Self> {
        // SAFETY: a new mapping at an address chosen by the kernel replaces none; only drop unmaps it.
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
        // SAFETY: the range is this value's own mapping, and nothing relies on its content in a forked process.
        unsafe { mm::madvise(mark.page.as_ptr(), PAGE_BYTES, Advice::LinuxWipeOnFork) }?;
        // Relaxed: `is_this_process` of this process reads it; forked processes read what the kernel wrote.
        mark.word().store(1, Ordering::Relaxed);
        Ok(mark)
    }

    /// Returns true if the calling process created the mark. Makes no system call.
    #[inline]
    pub fn is_this_process(&self) -> bool {
        // Relaxed: the word is stored once, in `new`, before anything else can access the mark.
        self.word().load(Ordering::Relaxed) != 0
    }

    /// The process that created the mark, also when called in a forked process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    #[inline]
    fn word(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped, readable and writable from `new` to drop, and page-aligned, so the word
        // is aligned; any bytes are a valid AtomicU64; in a forked process the kernel zeroes it before that
        // process runs.
        unsafe { self.page.cast::<AtomicU64>().as_ref() }
    }
}

impl Drop for ForkMark {
    fn drop(&mut self) {
        // SAFETY: the range is the mapping made in `new`; references into it borrow from this value and have
        // ended.
        let unmapped = unsafe { mm::munmap(self.page.as_ptr(), PAGE_BYTES) };
        debug_assert!(unmapped.is_ok(), "munmap of the value's own mapping");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{WaitOptions, waitpid};

    #[test]
    fn threads_see_the_mark_and_forked_processes_do_not() {
        let mark = ForkMark::new().unwrap();
        assert!(mark.is_this_process());
        assert_eq!(mark.pid(), std::process::id());
        std::thread::scope(|scope| assert!(scope.spawn(|| mark.is_this_process()).join().unwrap()));
        // The child only loads a word and exits.
        let code = in_forked_process(|| if mark.is_this_process() { 1 } else { 7 });
        assert_eq!((code, mark.is_this_process()), (Some(7), true));
    }

    /// Exit code of a forked process that runs `work`, which must not allocate or lock.
    fn in_forked_process(work: impl Fn() -> i32) -> Option<i32> {
        unsafe extern "C" {
            fn fork() -> i32;
            fn _exit(code: i32) -> !;
        }
        // SAFETY: the child calls only `work`, which neither allocates nor locks, and _exit.
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
