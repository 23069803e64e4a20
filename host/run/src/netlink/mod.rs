//! Requests to the kernel over netlink: the families `ethtool` and `netdev` of generic netlink, and the addresses of
//! routing netlink.

pub mod message;

use message::{Attributes, Kind, NESTED};
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
/// Maximum size of one packet from the kernel.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Packets that may arrive before the answer; the socket is in no group, so there should be none.
const STRAY_PACKETS_MAX: usize = 16;
/// Packets of a listing. The largest hosts have a few thousand queues, with hundreds in each packet.
const LIST_PACKETS_MAX: usize = 4_096;

/// The family that lists the others.
const CONTROLLER: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// Request that lists addresses (linux/rtnetlink.h).
const RTM_GETADDR: u16 = 22;
/// `struct ifaddrmsg` without a filter: every family, every interface.
const EVERY_ADDRESS: [u8; 8] = [0; 8];

/// The first attribute of every request of `ethtool`: the interface.
const HEADER: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
/// Request flag: do not report the change.
const FLAG_OMIT_REPLY: u32 = 2;

/// A family of generic netlink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Settings that `ethtool` reads and sets (kernel Documentation/networking/ethtool-netlink.rst).
    Ethtool,
    /// NAPI instances, queues and XDP (kernel Documentation/netlink/specs/netdev.yaml).
    Netdev,
}

impl Family {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Ethtool => b"ethtool\0",
            Self::Netdev => b"netdev\0",
        }
    }
}

/// Reason why a change was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub errno: Errno,
    /// The driver's explanation; empty if none.
    pub text: String,
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self { errno, text: String::new() }
    }
}

/// A socket to one family.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
    family: u16,
    sequence: u32,
}

impl Connection {
    /// Opens a socket and looks the family up; `ENOENT` if the kernel lacks it.
    pub fn open(family: Family) -> Result<Self, Errno> {
        let mut connection = Self::open_controller()?;
        let name = message::attribute(CTRL_ATTR_FAMILY_NAME, family.name());
        let answer = connection.ask(CTRL_CMD_GETFAMILY, &name)?;
        let number =
            Attributes(&answer).value_of(CTRL_ATTR_FAMILY_ID).and_then(|value| value.first_chunk().copied());
        connection.family = number.map(u16::from_ne_bytes).ok_or(Errno::BADMSG)?;
        Ok(connection)
    }

    fn open_controller() -> Result<Self, Errno> {
        Ok(Self { socket: socket(Some(netlink::GENERIC))?, family: CONTROLLER, sequence: 0 })
    }

    /// Returns the attributes that answer a query of `ethtool` about an interface.
    pub fn ask_about(&mut self, interface: &str, command: u8) -> Result<Vec<u8>, Errno> {
        self.ask_more_about(interface, command, &[])
    }

    /// The same with further attributes.
    pub fn ask_more_about(
        &mut self,
        interface: &str,
        command: u8,
        attributes: &[u8],
    ) -> Result<Vec<u8>, Errno> {
        self.ask(command, &[interface_header(interface, None).as_slice(), attributes].concat())
    }

    /// Returns the attributes of each answer to a query of `ethtool` that lists several about an interface.
    pub fn list_about(&mut self, interface: &str, command: u8) -> Result<Vec<Vec<u8>>, Errno> {
        self.list(command, &interface_header(interface, None))
    }

    /// Returns the attributes of the one answer to a request.
    pub fn ask(&mut self, command: u8, attributes: &[u8]) -> Result<Vec<u8>, Errno> {
        self.send(Kind::Query, command, attributes)?;
        let sequence = self.sequence;
        self.until(STRAY_PACKETS_MAX, |packet| {
            message::answer_to(sequence, packet).map(|answer| answer.map(<[u8]>::to_vec))
        })
    }

    /// Returns the attributes of each answer to a request that lists several.
    pub fn list(&mut self, command: u8, attributes: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
        self.send(Kind::List, command, attributes)?;
        self.listed(message::GENERIC_HEADER_BYTES)
    }

    /// Changes an interface through `ethtool`, and waits until it is done.
    pub fn set_of(&mut self, interface: &str, command: u8, attributes: &[u8]) -> Result<(), Refusal> {
        let header = interface_header(interface, Some(FLAG_OMIT_REPLY));
        self.set(command, &[header.as_slice(), attributes].concat())
    }

    /// Sends a request that changes something, and waits until it is done.
    pub fn set(&mut self, command: u8, attributes: &[u8]) -> Result<(), Refusal> {
        explain_errors(&self.socket);
        set_socket_timeout(&self.socket, Timeout::Recv, Some(CHANGE_PATIENCE))?;
        self.send(Kind::Change, command, attributes)?;
        let sequence = self.sequence;
        let end = self.until(STRAY_PACKETS_MAX, |packet| message::end_of(sequence, packet).map(Ok))?;
        end.map_err(|(errno, text)| Refusal { errno, text })
    }

    fn send(&mut self, kind: Kind, command: u8, attributes: &[u8]) -> Result<(), Errno> {
        self.sequence += 1;
        let body = [&[command, 1, 0, 0], attributes].concat();
        let request = message::request(kind, self.family, self.sequence, &body);
        sendto(&self.socket, &request, SendFlags::empty(), &netlink::SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    /// Receives packets until `find` returns a result for one of them.
    fn until<T>(
        &self,
        packets_max: usize,
        mut find: impl FnMut(&[u8]) -> Option<Result<T, Errno>>,
    ) -> Result<T, Errno> {
        let mut buffer = vec![0; ANSWER_BYTES_MAX];
        for _ in 0..packets_max {
            let (received, _) = recv(&self.socket, &mut buffer[..], RecvFlags::empty())?;
            if let Some(found) = find(buffer.get(..received).unwrap_or_default()) {
                return found;
            }
        }
        Err(Errno::BADMSG)
    }

    /// Receives a listing to its end; each entry without its first `skipped` bytes.
    fn listed(&self, skipped: usize) -> Result<Vec<Vec<u8>>, Errno> {
        let mut entries = Vec::new();
        self.until(LIST_PACKETS_MAX, |packet| {
            message::entries_of(self.sequence, packet, |entry| {
                entries.push(entry.get(skipped..).unwrap_or_default().to_vec());
            })
        })?;
        Ok(entries)
    }
}

/// Lists all IP addresses of the host: for each, `struct ifaddrmsg` and its attributes.
pub fn list_addresses() -> Result<Vec<Vec<u8>>, Errno> {
    list_route(RTM_GETADDR, &EVERY_ADDRESS)
}

/// Lists entries of routing netlink: for each, its header and its attributes.
pub fn list_route(kind: u16, header: &[u8]) -> Result<Vec<Vec<u8>>, Errno> {
    let connection = route_request(Kind::List, kind, header)?;
    connection.listed(0)
}

/// Returns the one answer of routing netlink to a request: its header and its attributes.
pub fn ask_route(kind: u16, request: &[u8]) -> Result<Vec<u8>, Errno> {
    let connection = route_request(Kind::Query, kind, request)?;
    let mut answer = Vec::new();
    connection.until(STRAY_PACKETS_MAX, |packet| {
        let end = message::entries_of(connection.sequence, packet, |entry| answer = entry.to_vec());
        // An answer that is not part of a listing has no end.
        end.or_else(|| (!answer.is_empty()).then_some(Ok(())))
    })?;
    Ok(answer)
}

fn route_request(kind: Kind, family: u16, body: &[u8]) -> Result<Connection, Errno> {
    let connection = Connection { socket: socket(None)?, family, sequence: 1 };
    let request = message::request(kind, family, connection.sequence, body);
    sendto(&connection.socket, &request, SendFlags::empty(), &netlink::SocketAddrNetlink::new(0, 0))?;
    Ok(connection)
}

/// Opens a netlink socket; no protocol is NETLINK_ROUTE.
fn socket(protocol: Option<rustix::net::Protocol>) -> Result<OwnedFd, Errno> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, protocol)?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    Ok(socket)
}

/// The attribute that names the interface of a request of `ethtool`.
fn interface_header(interface: &str, flags: Option<u32>) -> Vec<u8> {
    let name = message::attribute(HEADER_DEV_NAME, &[interface.as_bytes(), &[0]].concat());
    let flags = flags.map(|flags| message::attribute(HEADER_FLAGS, &flags.to_ne_bytes()));
    message::attribute(HEADER | NESTED, &[name, flags.unwrap_or_default()].concat())
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
