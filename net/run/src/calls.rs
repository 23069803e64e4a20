//! System calls of the measured path, through the C library, whose functions a preloaded library such as Onload
//! replaces.

use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

/// Request of `ioctl` that sets the parameters of busy polling of an epoll descriptor (Linux 6.9): a write of eight
/// bytes, type 0x8a, number 1. Its type differs between C libraries.
#[cfg(target_env = "musl")]
const EPIOCSPARAMS: libc::c_int = 0x4008_8a01;
#[cfg(not(target_env = "musl"))]
const EPIOCSPARAMS: libc::c_ulong = 0x4008_8a01;
/// Packets that one busy poll handles; the kernel's default.
const BUSY_POLL_BUDGET: u16 = 8;

/// The kernel's `struct epoll_params`.
#[repr(C)]
struct EpollParams {
    busy_poll_us: u32,
    busy_poll_budget: u16,
    prefer_busy_poll: u8,
    pad: u8,
}

/// Time that a call waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until the descriptor is ready.
    Sleep,
    Not,
}

pub fn receive(socket: BorrowedFd<'_>, into: &mut [u8], wait: Wait) -> io::Result<usize> {
    let flags = if wait == Wait::Not { libc::MSG_DONTWAIT } else { 0 };
    // SAFETY: the buffer is alive, writable and as long as stated; the descriptor is borrowed, so it is open.
    counted(unsafe { libc::recv(socket.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), flags) })
}

/// Reads from a pipe. It waits if the descriptor blocks.
pub fn read(pipe: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is alive, writable and as long as stated; the descriptor is borrowed, so it is open.
    counted(unsafe { libc::read(pipe.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) })
}

pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], wait: Wait) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | if wait == Wait::Not { libc::MSG_DONTWAIT } else { 0 };
    // SAFETY: the buffer is alive and as long as stated; the descriptor is borrowed, so it is open.
    counted(unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Returns how many messages the kernel has dropped because the socket was full (SK_MEMINFO_DROPS, Linux 4.12).
pub fn dropped(socket: BorrowedFd<'_>) -> Option<u32> {
    const SO_MEMINFO: i32 = 55;
    const DROPS: usize = 8;
    let mut values = [0_u32; 16];
    let mut length = libc::socklen_t::try_from(size_of_val(&values)).unwrap_or(0);
    // SAFETY: values and length are alive and writable, and the length is that of the values.
    let read = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    let count = usize::try_from(length).unwrap_or(0) / size_of::<u32>();
    values.get(DROPS).copied().filter(|_| read == 0 && count > DROPS)
}

pub fn write(pipe: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the buffer is alive and as long as stated; the descriptor is borrowed, so it is open.
    counted(unsafe { libc::write(pipe.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) })
}

/// Asks by `poll` whether a descriptor is readable.
pub fn poll_in(fd: BorrowedFd<'_>, wait: Wait) -> io::Result<bool> {
    let mut one = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: the array of one entry is alive and writable during the call.
    ready(unsafe { libc::poll(&raw mut one, 1, timeout(wait)) })
}

/// Waits until a descriptor has what its entry asks for, or the time has passed.
pub fn poll_each(entries: &mut [libc::pollfd], timeout_ms: i32) -> io::Result<()> {
    let count = libc::nfds_t::try_from(entries.len()).unwrap_or(0);
    // SAFETY: the array of so many entries is alive and writable during the call.
    match ready(unsafe { libc::poll(entries.as_mut_ptr(), count, timeout_ms) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// Makes the kernel send what is in the ring of an AF_XDP socket.
pub fn kick(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: the call reads no memory; the descriptor is borrowed, so it is open.
    let sent = unsafe { libc::send(socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT) };
    counted(sent).map(drop)
}

/// Asks by `select` whether a descriptor is readable.
pub fn select_in(fd: BorrowedFd<'_>, wait: Wait) -> io::Result<bool> {
    let fd = fd.as_raw_fd();
    if usize::try_from(fd).map_or(true, |fd| fd >= libc::FD_SETSIZE) {
        return Err(io::Error::other("select works with descriptors below 1,024 only"));
    }
    // SAFETY: an fd_set is a plain bit field, for which all zeros are valid.
    let mut readable: libc::fd_set = unsafe { std::mem::zeroed() };
    let mut none = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let until = if wait == Wait::Not { &raw mut none } else { std::ptr::null_mut() };
    // SAFETY: the descriptor is below FD_SETSIZE, so its bit is within the set; set and time are alive and writable
    // during the call, and the sets that are not given are null.
    ready(unsafe {
        libc::FD_SET(fd, &raw mut readable);
        libc::select(fd + 1, &raw mut readable, std::ptr::null_mut(), std::ptr::null_mut(), until)
    })
}

/// Creates an epoll descriptor that waits for one other to be readable.
pub fn epoll_of(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    ready(epoll)?;
    // SAFETY: the kernel just returned this descriptor, and nothing else owns it.
    let epoll = unsafe { OwnedFd::from_raw_fd(epoll) };
    let mut event = libc::epoll_event { events: libc::EPOLLIN.cast_unsigned(), u64: 0 };
    // SAFETY: the event is alive during the call, and the kernel only reads it.
    ready(unsafe {
        libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &raw mut event)
    })?;
    Ok(epoll)
}

/// Makes `epoll_wait` poll the queue of the NIC for this long before it sleeps.
pub fn epoll_busy_poll(epoll: BorrowedFd<'_>, busy_poll_us: u32, is_preferred: bool) -> io::Result<()> {
    let params = EpollParams {
        busy_poll_us,
        busy_poll_budget: BUSY_POLL_BUDGET,
        prefer_busy_poll: u8::from(is_preferred),
        pad: 0,
    };
    // SAFETY: the request takes a pointer to this structure, which is alive and laid out as the kernel's; the kernel
    // only reads it.
    ready(unsafe { libc::ioctl(epoll.as_raw_fd(), EPIOCSPARAMS, &raw const params) }).map(drop)
}

/// Asks by `epoll_wait` whether the watched descriptor is readable.
pub fn epoll_in(epoll: BorrowedFd<'_>, wait: Wait) -> io::Result<bool> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: the array of one event is alive and writable during the call.
    ready(unsafe { libc::epoll_wait(epoll.as_raw_fd(), &raw mut event, 1, timeout(wait)) })
}

/// Sets an integer option of a socket.
pub fn set_option(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<i32>()).unwrap_or(4);
    // SAFETY: the value is alive and as long as stated; the kernel only reads it.
    ready(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) })
        .map(drop)
}

/// Reads an integer option of a socket.
pub fn option(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<i32> {
    let mut value: i32 = 0;
    let mut length = libc::socklen_t::try_from(size_of::<i32>()).unwrap_or(4);
    // SAFETY: value and length are alive and writable, and the length is that of the value.
    ready(unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length)
    })?;
    Ok(value)
}

/// Size of the datagram that reports the loss of one of this size: one byte less, or 1 for an empty one.
pub fn lost_bytes(bytes: usize) -> usize {
    bytes.checked_sub(1).unwrap_or(1)
}

fn counted(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn ready(result: i32) -> io::Result<bool> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result > 0) }
}

fn timeout(wait: Wait) -> i32 {
    if wait == Wait::Not { 0 } else { -1 }
}
