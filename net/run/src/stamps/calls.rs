//! System calls of time stamping, and the control messages that they return.

use super::super::calls::Wait;
use std::{
    io, mem,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
};

/// Transmission: handed to the device, and handed to the queueing discipline. Reception: by the driver. Both by the
/// kernel's clock, and by the NIC's own where it stamps packets. All numbered, and without the packet.
const STAMPING: libc::c_uint = libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | SOF_TIMESTAMPING_TX_SCHED
    | libc::SOF_TIMESTAMPING_RX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | SOF_TIMESTAMPING_OPT_ID
    | SOF_TIMESTAMPING_OPT_TSONLY
    | libc::SOF_TIMESTAMPING_TX_HARDWARE
    | libc::SOF_TIMESTAMPING_RX_HARDWARE
    | libc::SOF_TIMESTAMPING_RAW_HARDWARE
    | SOF_TIMESTAMPING_OPT_TX_SWHW;
const SOF_TIMESTAMPING_OPT_ID: libc::c_uint = 1 << 7;
const SOF_TIMESTAMPING_TX_SCHED: libc::c_uint = 1 << 8;
const SOF_TIMESTAMPING_OPT_TSONLY: libc::c_uint = 1 << 11;
/// A departure is stamped by the kernel and by the NIC, in two entries of the error queue.
const SOF_TIMESTAMPING_OPT_TX_SWHW: libc::c_uint = 1 << 14;

/// Origin of an entry of the error queue that is a time stamp.
const SO_EE_ORIGIN_TIMESTAMPING: u8 = 4;
/// Kinds of departures (`SCM_TSTAMP_*`).
const SENT: u32 = 0;
const QUEUED: u32 = 1;

/// Entries of the error queue that one call returns: every departure of two messages.
const ENTRIES: usize = 6;
/// Room for the control messages of one entry: three time stamps, and an extended error with an address.
const CONTROL_BYTES: usize = 256;
const NS_PER_S: u64 = 1_000_000_000;

/// Time stamp of a message's departure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// The kernel's number of the message: counted, or the position of its last byte in a stream.
    pub number: u32,
    /// True if it was handed to the queueing discipline, false if to the device.
    pub is_queued: bool,
    pub at: At,
}

/// Time stamps of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct At {
    /// The kernel's, by the real-time clock.
    pub ns: Option<u64>,
    /// The NIC's, by its own clock.
    pub nic_ns: Option<u64>,
}

/// Bytes aligned as control messages.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct ControlBuffer([u8; CONTROL_BYTES]);

/// Switches the time stamps of a socket on or off.
pub fn set_stamps(socket: BorrowedFd<'_>, is_on: bool) -> io::Result<()> {
    let flags = if is_on { STAMPING.cast_signed() } else { 0 };
    super::super::calls::set_option(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, flags)
}

/// Receives from a socket, with the time when the packet arrived.
pub fn receive(socket: BorrowedFd<'_>, into: &mut [u8], wait: Wait) -> io::Result<(usize, At)> {
    let mut control = ControlBuffer([0; CONTROL_BYTES]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let mut message = message(&raw mut part, &raw mut control);
    let flags = if wait == Wait::Not { libc::MSG_DONTWAIT } else { 0 };
    // SAFETY: the message points to one part of `into` and to `control`, all alive and writable during the call and as
    // long as stated; the descriptor is borrowed, so it is open.
    let received = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let bytes = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let mut arrived = At::default();
    for_each(&message, |level, kind, data| {
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            arrived = stamps(data);
        }
    });
    Ok((bytes, arrived))
}

/// Memory to read an error queue with.
pub struct ErrorQueue {
    controls: Box<[ControlBuffer; ENTRIES]>,
}

impl std::fmt::Debug for ErrorQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ErrorQueue").finish_non_exhaustive()
    }
}

impl ErrorQueue {
    /// Allocates memory for one call.
    pub fn new() -> Self {
        Self { controls: Box::new([ControlBuffer([0; CONTROL_BYTES]); ENTRIES]) }
    }

    /// Passes every departure in the queue of a socket to `note`.
    pub fn drain(&mut self, socket: BorrowedFd<'_>, mut note: impl FnMut(Sent)) {
        loop {
            let read = self.read(socket, &mut note);
            if read < ENTRIES {
                return;
            }
        }
    }

    /// One call. Returns the number of entries.
    fn read(&mut self, socket: BorrowedFd<'_>, note: &mut impl FnMut(Sent)) -> usize {
        let mut heads = self.controls.each_mut().map(|control| libc::mmsghdr {
            msg_hdr: message(ptr::null_mut(), ptr::from_mut(control)),
            msg_len: 0,
        });
        let count = u32::try_from(ENTRIES).unwrap_or(0);
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: `heads` has as many entries as stated; each has no data and points to a control buffer of its own,
        // which is alive and writable during the call. No time limit is given.
        let read = unsafe {
            libc::recvmmsg(socket.as_raw_fd(), heads.as_mut_ptr(), count, flags as _, ptr::null_mut())
        };
        let read = usize::try_from(read).unwrap_or(0);
        for head in heads.iter().take(read) {
            let (mut at, mut error) = (At::default(), None);
            for_each(&head.msg_hdr, |level, kind, data| match (level, kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => at = stamps(data),
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                    error = extended_error(data);
                }
                _ => {}
            });
            if let Some((kind, number)) = error.filter(|(kind, _)| *kind <= QUEUED && at != At::default()) {
                note(Sent { number, is_queued: kind != SENT, at });
            }
        }
        read
    }
}

/// The head of a message with at most one part and room for control messages.
fn message(part: *mut libc::iovec, control: *mut ControlBuffer) -> libc::msghdr {
    // SAFETY: a msghdr is plain data, for which all zeros are valid: null pointers and no lengths.
    let mut head: libc::msghdr = unsafe { mem::zeroed() };
    head.msg_iov = part;
    head.msg_iovlen = usize::from(!part.is_null()) as _;
    head.msg_control = control.cast();
    head.msg_controllen = CONTROL_BYTES as _;
    head
}

/// Passes level, kind and data of every control message that the kernel returned.
fn for_each(message: &libc::msghdr, mut take: impl FnMut(i32, i32, &[u8])) {
    // SAFETY: the kernel filled the control buffer, which is aligned for its heads and alive, and set its length.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR return a complete head within the buffer, or null. The data after it is
        // as long as the head says, which the kernel wrote and the buffer holds.
        unsafe {
            let head = &*next;
            let from = libc::CMSG_DATA(next);
            let length = (head.cmsg_len as usize).saturating_sub(from.offset_from_unsigned(next.cast()));
            take(head.cmsg_level, head.cmsg_type, std::slice::from_raw_parts(from, length));
            next = libc::CMSG_NXTHDR(message, next);
        }
    }
}

/// The kernel's and the NIC's of `struct scm_timestamping`; the second of its three is no longer used.
fn stamps(data: &[u8]) -> At {
    At { ns: stamp(data), nic_ns: data.get(32..).and_then(stamp) }
}

/// Seconds and nanoseconds; both are zero if there is none.
fn stamp(data: &[u8]) -> Option<u64> {
    let word = |at: usize| {
        let bytes = data.get(at..)?.first_chunk()?;
        u64::try_from(i64::from_ne_bytes(*bytes)).ok()
    };
    let ns = word(0)?.checked_mul(NS_PER_S)?.checked_add(word(8)?)?;
    (ns > 0).then_some(ns)
}

/// The kind and number of a departure in a `struct sock_extended_err`.
fn extended_error(data: &[u8]) -> Option<(u32, u32)> {
    let word = |at: usize| Some(u32::from_ne_bytes(*data.get(at..)?.first_chunk()?));
    let origin = *data.get(4)?;
    (origin == SO_EE_ORIGIN_TIMESTAMPING).then_some((word(8)?, word(12)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_data_is_read_by_its_layout() {
        let mut data = [0_u8; 48];
        data[..8].copy_from_slice(&2_i64.to_ne_bytes());
        data[8..16].copy_from_slice(&5_i64.to_ne_bytes());
        assert_eq!(stamps(&data), At { ns: Some(2_000_000_005), nic_ns: None });
        data[32..40].copy_from_slice(&3_i64.to_ne_bytes());
        assert_eq!(stamps(&data), At { ns: Some(2_000_000_005), nic_ns: Some(3_000_000_000) });
        data[..16].fill(0);
        assert_eq!(stamps(&data), At { ns: None, nic_ns: Some(3_000_000_000) }, "a departure by the NIC");
        assert_eq!((stamps(&[0; 48]), stamps(&data[..15])), (At::default(), At::default()));
        let mut error = [0_u8; 16];
        error[4] = SO_EE_ORIGIN_TIMESTAMPING;
        error[8..12].copy_from_slice(&QUEUED.to_ne_bytes());
        error[12..].copy_from_slice(&77_u32.to_ne_bytes());
        assert_eq!(extended_error(&error), Some((QUEUED, 77)));
        error[4] = 2;
        assert_eq!((extended_error(&error), extended_error(&error[..12])), (None, None));
    }
}
