//! The socket of a feed: joins the group, and receives datagrams with the kernel's stamps.

use super::{FeedAddress, refused};
use lowlat_node::{Refusal, Wait};
use nix::{
    cmsg_space, libc,
    sys::{
        socket::{ControlMessageOwned, MsgFlags, TimestampingFlag, Timestamps, recvmsg, setsockopt, sockopt},
        time::TimeSpec,
    },
};
use rustix::net::netdevice::name_to_index;
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::{
    io::{self, IoSliceMut},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    os::fd::AsRawFd,
    time::Duration,
};

/// Longest sleep in a call, so that md handles messages of its master.
const SLEEP: Duration = Duration::from_millis(20);
/// Time that the adaptive mode polls the NIC's queue before it sleeps, us.
const BUSY_POLL_US: u32 = 50;
/// Longest datagram that is received whole; longer ones are of another format.
const BYTES_MAX: usize = 2048;

/// Options of a feed's socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverOptions {
    pub address: FeedAddress,
    /// Name or address of the interface on which it joins the group; `None`: that of the route.
    pub interface: Option<String>,
    /// Size of the socket's receive buffer.
    pub buffer_bytes: usize,
    /// Waiting mode: spins, sleeps, or polls the NIC before it sleeps.
    pub wait: Wait,
}

#[derive(Debug, Clone, Copy)]
pub struct Packet<'a> {
    pub bytes: &'a [u8],
    /// The kernel's receive stamp in CLOCK_REALTIME, ns; 0 if there is none.
    pub stamp_ns: u64,
    /// The kernel's counter of datagrams that it dropped because the socket's buffer was full.
    pub drops: u32,
    /// It arrived over the loopback interface.
    pub is_loopback: bool,
}

/// A feed's socket. It is held for a whole run: opening a socket with time stamps interrupts every CPU.
#[derive(Debug)]
pub struct FeedSocket {
    socket: Socket,
    flags: MsgFlags,
    bytes: Box<[u8; BYTES_MAX]>,
    control: Vec<u8>,
    drops: u32,
    /// Number of lo; 0 if there is none.
    loopback: u32,
}

impl FeedSocket {
    /// Opens it, and joins the group.
    pub fn open(options: &ReceiverOptions) -> Result<Self, Refusal> {
        let hint = "check the group, the interface (--feed-interface) and that no other program has the port";
        let doing = format!("receive the feed {}", options.address);
        Self::try_open(options).map_err(refused(doing, hint))
    }

    fn try_open(options: &ReceiverOptions) -> io::Result<Self> {
        let to = options.address.to;
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
        // Several programs may receive a group.
        socket.set_reuse_address(to.ip().is_multicast())?;
        // Without the right to exceed the host's limit, that limit applies.
        if setsockopt(&socket, sockopt::RcvBufForce, &options.buffer_bytes).is_err() {
            socket.set_recv_buffer_size(options.buffer_bytes)?;
        }
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        if to.is_ipv4() {
            setsockopt(&socket, sockopt::Ipv4PacketInfo, &true)?;
        } else {
            setsockopt(&socket, sockopt::Ipv6RecvPacketInfo, &true)?;
        }
        let loopback = name_to_index(&socket, "lo").unwrap_or(0);
        let flags =
            TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE | TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE;
        setsockopt(&socket, sockopt::Timestamping, &flags)?;
        if options.wait == Wait::Adaptive {
            // Refused without CAP_NET_ADMIN if it exceeds net.core.busy_read: it then only sleeps.
            socket.set_busy_poll(BUSY_POLL_US).ok();
        }
        socket.set_read_timeout(Some(SLEEP))?;
        socket.bind(&to.into())?;
        join(&socket, to, options.interface.as_deref())?;
        let flags = if options.wait == Wait::Fast { MsgFlags::MSG_DONTWAIT } else { MsgFlags::empty() };
        Ok(Self {
            socket,
            flags,
            bytes: Box::new([0; BYTES_MAX]),
            control: cmsg_space!(Timestamps, [TimeSpec; 2], u32, libc::in6_pktinfo),
            drops: 0,
            loopback,
        })
    }

    /// Receives a datagram. Returns `None` if none arrived: at once in a spinning socket, else after some
    /// milliseconds. Allocates nothing.
    #[inline]
    pub fn receive(&mut self) -> io::Result<Option<Packet<'_>>> {
        let mut slices = [IoSliceMut::new(self.bytes.as_mut_slice())];
        let received =
            recvmsg::<()>(self.socket.as_raw_fd(), &mut slices, Some(&mut self.control), self.flags);
        let (length, stamp_ns, is_loopback) = match received {
            Ok(message) => {
                let (mut stamp_ns, mut interface) = (0, u32::MAX);
                for control in message.cmsgs()? {
                    match control {
                        ControlMessageOwned::ScmTimestampsns(stamps) => stamp_ns = nanoseconds(stamps.system),
                        ControlMessageOwned::RxqOvfl(drops) => self.drops = drops,
                        ControlMessageOwned::Ipv4PacketInfo(info) => {
                            interface = info.ipi_ifindex.cast_unsigned();
                        }
                        ControlMessageOwned::Ipv6PacketInfo(info) => interface = info.ipi6_ifindex,
                        _ => {}
                    }
                }
                (message.bytes, stamp_ns, interface == self.loopback)
            }
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        let bytes = self.bytes.get(..length).unwrap_or_default();
        Ok(Some(Packet { bytes, stamp_ns, drops: self.drops, is_loopback }))
    }
}

/// A time of the kernel in nanoseconds.
pub(super) fn nanoseconds(time: TimeSpec) -> u64 {
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec()).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec()))
}

/// Joins a group; other addresses need no joining.
fn join(socket: &Socket, to: SocketAddr, interface: Option<&str>) -> io::Result<()> {
    if !to.ip().is_multicast() {
        return Ok(());
    }
    match (to.ip(), interface.map(|name| interface_of(socket, name)).transpose()?) {
        (IpAddr::V4(group), chosen) => {
            // Only what this socket joined, not what others on this host did.
            socket.set_multicast_all_v4(false)?;
            let route = InterfaceIndexOrAddress::Address(Ipv4Addr::UNSPECIFIED);
            socket.join_multicast_v4_n(&group, &chosen.unwrap_or(route))
        }
        (IpAddr::V6(group), None) => {
            let scope = if let SocketAddr::V6(to) = to { to.scope_id() } else { 0 };
            socket.join_multicast_v6(&group, scope)
        }
        (IpAddr::V6(group), Some(InterfaceIndexOrAddress::Index(index))) => {
            socket.join_multicast_v6(&group, index)
        }
        (IpAddr::V6(_), Some(InterfaceIndexOrAddress::Address(_))) => {
            Err(io::Error::other("an IPv6 group needs the name of an interface, not its IPv4 address"))
        }
    }
}

/// An interface by its name or its IPv4 address.
pub(super) fn interface_of(socket: &Socket, name: &str) -> io::Result<InterfaceIndexOrAddress> {
    if let Ok(address) = name.parse() {
        return Ok(InterfaceIndexOrAddress::Address(address));
    }
    let index = name_to_index(socket, name);
    index
        .map(InterfaceIndexOrAddress::Index)
        .map_err(|errno| io::Error::other(format!("no interface {name} ({errno})")))
}
