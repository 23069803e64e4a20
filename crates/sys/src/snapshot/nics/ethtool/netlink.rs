//! Queries to the `ethtool` family of generic netlink (kernel Documentation/networking/ethtool-netlink.rst).

use super::message::{self, Attributes, NESTED};
use rustix::{
    fd::{AsRawFd, OwnedFd},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto, socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
};
use std::time::Duration;

/// Time limit of a query; the kernel answers at once unless a driver hangs.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time limit of a change: a driver may reinitialize its card.
const CHANGE_PATIENCE: Duration = Duration::from_secs(60);
/// Maximum size of the kernel's buffer for an answer.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Packets that may arrive before the answer; the socket is in no group, so there should be none.
const STRAY_PACKETS_MAX: usize = 16;

/// The family that lists the others.
const CONTROLLER: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// The first attribute of every request: the interface.
const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
/// Request flag: do not report the change.
const FLAG_OMIT_REPLY: u32 = 2;

/// Numbers of the requests sent directly by this crate (linux/ethtool_netlink.h).
pub(super) mod request {
    pub(in super::super) const FEATURES: u8 = 11;
    pub(in super::super) const SET_FEATURES: u8 = 12;
    pub(in super::super) const RINGS: u8 = 15;
    pub(in super::super) const CHANNELS: u8 = 17;
    pub(in super::super) const COALESCING: u8 = 19;
    pub(in super::super) const TIMESTAMPING: u8 = 25;
}

/// Why a change was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) errno: Errno,
    /// The driver's explanation; empty if none.
    pub(super) text: String,
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self { errno, text: String::new() }
    }
}

/// A socket to the family.
#[derive(Debug)]
pub(super) struct Connection {
    socket: OwnedFd,
    family: u16,
    sequence: u32,
}

impl Connection {
    /// Opens a socket and looks the family up; `ENOENT` on kernels before 5.6.
    pub(super) fn open() -> Result<Self, Errno> {
        let protocol = Some(netlink::GENERIC);
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        let mut connection = Self { socket, family: CONTROLLER, sequence: 0 };
        let name = message::attribute(CTRL_ATTR_FAMILY_NAME, b"ethtool\0");
        let answer = connection.exchange(CTRL_CMD_GETFAMILY, &name)?;
        let family =
            Attributes(&answer).value_of(CTRL_ATTR_FAMILY_ID).and_then(|value| value.first_chunk().copied());
        connection.family = family.map(u16::from_ne_bytes).ok_or(Errno::BADMSG)?;
        Ok(connection)
    }

    /// Returns the attributes that answer a query about an interface.
    pub(super) fn ask(&mut self, interface: &str, request: u8) -> Result<Vec<u8>, Errno> {
        let name = message::attribute(HEADER_DEV_NAME, &[interface.as_bytes(), &[0]].concat());
        self.exchange(request, &message::attribute(HEADER | NESTED, &name))
    }

    /// Changes an interface, and waits until it is done.
    pub(super) fn set(&mut self, interface: &str, request: u8, attributes: &[u8]) -> Result<(), Refusal> {
        explain_errors(&self.socket);
        set_socket_timeout(&self.socket, Timeout::Recv, Some(CHANGE_PATIENCE))?;
        let name = message::attribute(HEADER_DEV_NAME, &[interface.as_bytes(), &[0]].concat());
        let flags = message::attribute(HEADER_FLAGS, &FLAG_OMIT_REPLY.to_ne_bytes());
        let header = message::attribute(HEADER | NESTED, &[name, flags].concat());
        self.sequence += 1;
        let attributes = [header.as_slice(), attributes].concat();
        let request = message::acknowledged(self.family, request, self.sequence, &attributes);
        sendto(&self.socket, &request, SendFlags::empty(), &netlink::SocketAddrNetlink::new(0, 0))?;
        let mut buffer = vec![0; ANSWER_BYTES_MAX];
        for _ in 0..STRAY_PACKETS_MAX {
            let (received, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            let end = message::end_of(self.sequence, buffer.get(..received).unwrap_or_default());
            if let Some(end) = end {
                return end.map_err(|(errno, text)| Refusal { errno, text });
            }
        }
        Err(Errno::BADMSG.into())
    }

    fn exchange(&mut self, command: u8, attributes: &[u8]) -> Result<Vec<u8>, Errno> {
        self.sequence += 1;
        let request = message::request(self.family, command, self.sequence, attributes);
        let kernel = netlink::SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &request, SendFlags::empty(), &kernel)?;
        let mut buffer = vec![0; ANSWER_BYTES_MAX];
        for _ in 0..STRAY_PACKETS_MAX {
            let (received, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            if let Some(answer) =
                message::answer_to(self.sequence, buffer.get(..received).unwrap_or_default())
            {
                return answer.map(<[u8]>::to_vec);
            }
        }
        Err(Errno::BADMSG)
    }
}

/// Makes the kernel add the driver's explanation to its errors. Kernels before 4.12 have none.
fn explain_errors(socket: &OwnedFd) {
    let is_on: libc::c_int = 1;
    for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
        let length = libc::socklen_t::try_from(size_of_val(&is_on)).unwrap_or(0);
        // SAFETY: the value is alive through the call and as long as the length says; the call only reads it. The
        // descriptor is open, since it is borrowed.
        unsafe {
            libc::setsockopt(socket.as_raw_fd(), libc::SOL_NETLINK, option, (&raw const is_on).cast(), length)
        };
    }
}
