//! Writes to pages: userfaultfd(2) with write protection (linux/userfaultfd.h).

use super::{PAGE_BYTES, WatchError};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    ioctl::{Setter, Updater, opcode},
};
use std::{io, ops::Range, os::fd::OwnedFd, time::Duration};

const GROUP: u8 = 0xaa;
const API: u64 = 0xaa;
const FEATURE_PAGEFAULT_FLAG_WP: u64 = 1;
const FEATURE_THREAD_ID: u64 = 1 << 8;
const FEATURE_EXACT_ADDRESS: u64 = 1 << 11;
/// Linux 5.19: also of memory that processes share.
const FEATURE_WP_SHARED: u64 = 1 << 12;
const REGISTER_MODE_WP: u64 = 1 << 1;
const WRITEPROTECT_MODE_WP: u64 = 1;
const EVENT_PAGEFAULT: u8 = 0x12;
/// Bytes of a message (struct uffd_msg).
const MESSAGE_BYTES: usize = 32;
/// Maximum number of messages read at once.
const MESSAGES_MAX: usize = 16;

/// Linux 6.7: writes are noted and not reported; pages that were never touched count too.
const FEATURE_WP_UNPOPULATED: u64 = 1 << 13;
const FEATURE_WP_ASYNC: u64 = 1 << 15;

const UFFDIO_API: rustix::ioctl::Opcode = opcode::read_write::<Api>(GROUP, 0x3f);
const UFFDIO_REGISTER: rustix::ioctl::Opcode = opcode::read_write::<Register>(GROUP, 0x00);
const UFFDIO_WAKE: rustix::ioctl::Opcode = opcode::read::<PageRange>(GROUP, 0x02);
const UFFDIO_WRITEPROTECT: rustix::ioctl::Opcode = opcode::read_write::<Protect>(GROUP, 0x06);

#[repr(C)]
struct Api {
    version: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct PageRange {
    start: u64,
    bytes: u64,
}

#[repr(C)]
struct Register {
    area: PageRange,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct Protect {
    area: PageRange,
    mode: u64,
}

/// One write that waits until its page is released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    pub tid: u32,
    /// First byte that it writes.
    pub address: u64,
}

impl Write {
    /// The page that it writes to.
    pub fn page(self) -> u64 {
        self.address & !(PAGE_BYTES - 1)
    }
}

/// Pages of another process whose first write is reported, and waits.
///
/// The program runs on when the page is released, or when this descriptor is closed, which the kernel also does for a
/// process that was killed.
#[derive(Debug)]
pub struct PageWatch(OwnedFd);

impl PageWatch {
    /// Prepares a userfaultfd of another process. No other descriptor of it may be left, or the program would hang if
    /// this process died.
    ///
    /// # Errors
    /// [`WatchError`] if the kernel reports no exact addresses or threads.
    pub fn new(fd: OwnedFd) -> Result<Self, WatchError> {
        let features = FEATURE_PAGEFAULT_FLAG_WP | FEATURE_THREAD_ID | FEATURE_EXACT_ADDRESS;
        let shared = Self::with(&fd, features | FEATURE_WP_SHARED);
        shared.or_else(|_| Self::with(&fd, features)).map_err(|_| {
            WatchError::new(
                "cannot watch writes: this kernel's userfaultfd reports no exact addresses\nhint: use Linux 5.18 or later",
            )
        })?;
        Ok(Self(fd))
    }

    /// Prepares one that only notes which pages were written, of any memory, for [`super::WrittenPages`].
    ///
    /// # Errors
    /// `INVAL` before Linux 6.7.
    pub fn noting(fd: OwnedFd) -> io::Result<Self> {
        Self::with(&fd, FEATURE_PAGEFAULT_FLAG_WP | FEATURE_WP_UNPOPULATED | FEATURE_WP_ASYNC)?;
        Ok(Self(fd))
    }

    fn with(fd: &OwnedFd, features: u64) -> io::Result<()> {
        let mut api = Api { version: API, features, ioctls: 0 };
        // SAFETY: the opcode takes a struct uffdio_api, which the kernel reads and writes during the call.
        unsafe { rustix::ioctl::ioctl(fd, Updater::<UFFDIO_API, _>::new(&mut api)) }?;
        Ok(())
    }

    /// Prepares memory for watching. Nothing is reported yet.
    ///
    /// # Errors
    /// The kernel's: among others `INVAL` for memory of a file, `BUSY` for memory that the program itself watches.
    pub fn register(&self, range: &Range<u64>) -> io::Result<()> {
        let mut register = Register { area: area(range), mode: REGISTER_MODE_WP, ioctls: 0 };
        // SAFETY: the opcode takes a struct uffdio_register, which the kernel reads and writes during the call. It
        // changes no memory of this process, and none of the other's contents.
        unsafe { rustix::ioctl::ioctl(&self.0, Updater::<UFFDIO_REGISTER, _>::new(&mut register)) }?;
        Ok(())
    }

    /// Reports the next write to each page of a range.
    ///
    /// # Errors
    /// The kernel's, if the memory is no longer mapped or the program has ended.
    pub fn arm(&self, range: &Range<u64>) -> io::Result<()> {
        self.protect(range, WRITEPROTECT_MODE_WP)
    }

    /// Lets writes to a range continue, and reports no more of them. Memory that is no longer mapped counts as done.
    pub fn release(&self, range: &Range<u64>) {
        if self.protect(range, 0).is_err() {
            // Part of it is unmapped. Writers fault again and get what the mapping now gives them.
            // SAFETY: the opcode takes a struct uffdio_range, which the kernel reads during the call.
            let _ = unsafe { rustix::ioctl::ioctl(&self.0, Setter::<UFFDIO_WAKE, _>::new(area(range))) };
        }
    }

    fn protect(&self, range: &Range<u64>, mode: u64) -> io::Result<()> {
        loop {
            let mut protect = Protect { area: area(range), mode };
            // SAFETY: the opcode takes a struct uffdio_writeprotect, which the kernel reads during the call. It takes
            // and gives the permission to write, which the writer cannot notice besides by its time.
            let done = unsafe {
                rustix::ioctl::ioctl(&self.0, Updater::<UFFDIO_WRITEPROTECT, _>::new(&mut protect))
            };
            match done {
                // The program is changing its mappings.
                Err(Errno::AGAIN) => {}
                other => return Ok(other?),
            }
        }
    }

    /// Waits until a write is reported; `false` if there was none.
    pub fn wait(&self, longest: Duration) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        let timeout = Timespec::try_from(longest).ok();
        poll(&mut fds, timeout.as_ref()).is_ok_and(|count| count > 0)
    }

    /// Reads the writes that wait, without waiting for more.
    pub fn writes(&self, into: &mut Vec<Write>) {
        let mut bytes = [0_u8; MESSAGE_BYTES * MESSAGES_MAX];
        while let Ok(count) = rustix::io::read(&self.0, &mut bytes) {
            let messages = bytes[..count].chunks_exact(MESSAGE_BYTES);
            into.extend(messages.filter(|message| message[0] == EVENT_PAGEFAULT).map(write_of));
            if count < bytes.len() {
                return;
            }
        }
    }
}

fn area(range: &Range<u64>) -> PageRange {
    PageRange { start: range.start, bytes: range.end.saturating_sub(range.start) }
}

/// The fields of struct uffd_msg's page fault: flags at 8, address at 16, thread at 24.
fn write_of(message: &[u8]) -> Write {
    let address = message[16..24].try_into().map_or(0, u64::from_ne_bytes);
    let tid = message[24..28].try_into().map_or(0, u32::from_ne_bytes);
    Write { tid, address }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        sync::atomic::{AtomicU64, Ordering},
        thread,
    };

    #[test]
    fn a_write_is_reported_with_its_thread_and_address_and_waits() {
        // SAFETY: the descriptor watches memory of this test alone.
        let fd = unsafe {
            rustix::mm::userfaultfd(
                rustix::mm::UserfaultfdFlags::CLOEXEC | rustix::mm::UserfaultfdFlags::NONBLOCK,
            )
        };
        let Ok(fd) = fd else {
            eprintln!("skipped: a_write_is_reported: no permission for userfaultfd");
            return;
        };
        let Ok(watch) = PageWatch::new(fd) else {
            eprintln!("skipped: a_write_is_reported: kernel before 5.18");
            return;
        };
        let words: Vec<AtomicU64> = (0..2048).map(|_| AtomicU64::new(1)).collect();
        let first = words.iter().position(|word| std::ptr::from_ref(word).addr() % 4096 == 0).unwrap();
        let page = std::ptr::from_ref(&words[first]).addr() as u64;
        let range = page..page + PAGE_BYTES;
        watch.register(&range).unwrap();
        watch.arm(&range).unwrap();
        let mut seen = Vec::new();
        let tid = thread::scope(|scope| {
            let writer = scope.spawn(|| {
                // Relaxed: joined below.
                words[first + 5].store(9, Ordering::Relaxed);
                rustix::thread::gettid()
            });
            assert!(watch.wait(Duration::from_secs(10)));
            watch.writes(&mut seen);
            watch.release(&range);
            writer.join().unwrap()
        });
        let tid = tid.as_raw_nonzero().get().cast_unsigned();
        assert_eq!(seen, [Write { tid, address: page + 40 }]);
        assert_eq!(seen[0].page(), page);
    }
}
