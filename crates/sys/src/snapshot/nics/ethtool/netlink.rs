//! Questions to the `ethtool` family of generic netlink (kernel Documentation/networking/ethtool-netlink.rst).

use super::message::{self, Attributes, NESTED};
use rustix::{
    fd::OwnedFd,
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto, socket_with,
        sockopt::{Timeout, set_socket_timeout},
    },
};
use std::time::Duration;

/// What one answer may take; the kernel answers at once unless a driver hangs.
const PATIENCE: Duration = Duration::from_secs(1);
/// The kernel builds an answer in a buffer of this size at most.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Packets that may arrive before the answer; the socket is in no group, so that nothing else should.
const STRAY_PACKETS_MAX: usize = 16;

/// The family that knows the others.
const CONTROLLER: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// The first attribute of every request: which interface.
const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;

/// The questions, with the numbers of their commands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Request {
    Features = 11,
    Rings = 15,
    Channels = 17,
    Coalescing = 19,
    Timestamping = 25,
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

    /// The attributes that answer a question about an interface.
    pub(super) fn ask(&mut self, interface: &str, request: Request) -> Result<Vec<u8>, Errno> {
        let name = message::attribute(HEADER_DEV_NAME, &[interface.as_bytes(), &[0]].concat());
        self.exchange(request as u8, &message::attribute(HEADER | NESTED, &name))
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
