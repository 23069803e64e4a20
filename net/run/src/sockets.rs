//! Data sockets of every transport.

use super::{
    control::ControlError,
    link::Wires,
    xdp::{self, XdpError},
};
use lowlat_net::{
    pingpong::{End, Scenario, Transport},
    xdp::XdpFacts,
};
use rustix::pipe::{PipeFlags, pipe_with};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

/// Creates both ends of a local transport.
pub fn local_pair(transport: Transport) -> io::Result<(Wires, Wires)> {
    let kind = match transport {
        Transport::UnixStream => Type::STREAM,
        Transport::UnixDatagram => Type::DGRAM,
        Transport::UnixSeqpacket => Type::SEQPACKET,
        Transport::Pipe => return pipes(),
        Transport::Tcp | Transport::Udp | Transport::UdpMulticast | Transport::Xdp => {
            return Err(io::Error::other(format!("{transport} is no local transport")));
        }
    };
    let (near, far) = Socket::pair(Domain::UNIX, kind, None)?;
    Ok((Wires::socket(near), Wires::socket(far)))
}

fn pipes() -> io::Result<(Wires, Wires)> {
    let (there_read, there_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (back_read, back_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (there_write, back_write) = (Arc::new(there_write), Arc::new(back_write));
    let near = Wires::Pipes {
        receive: Arc::new(back_read),
        send: Arc::clone(&there_write),
        wake: Arc::clone(&back_write),
    };
    let far = Wires::Pipes { receive: Arc::new(there_read), send: back_write, wake: there_write };
    Ok((near, far))
}

/// Sets the options of the scenario on a connected TCP socket, and makes it the data path.
pub fn tcp(socket: Socket, scenario: &Scenario) -> io::Result<Wires> {
    socket.set_read_timeout(None)?;
    socket.set_write_timeout(None)?;
    socket.set_tcp_nodelay(scenario.is_nodelay)?;
    Ok(Wires::socket(socket))
}

/// A UDP socket that is bound but does not know its peer yet.
#[derive(Debug)]
pub struct Udp {
    socket: Socket,
    /// This end's address on the control connection, with port 0.
    local: SocketAddr,
    group: Option<IpAddr>,
}

impl Udp {
    /// Binds to the address of the control connection, or joins the scenario's group on its interface.
    pub fn bind(local: SocketAddr, scenario: &Scenario) -> io::Result<Self> {
        let mut local = plain(local);
        local.set_port(0);
        let group = scenario.group.filter(|_| scenario.transport == Transport::UdpMulticast);
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        match (group, local) {
            (None, _) => socket.bind(&local.into())?,
            (Some(IpAddr::V4(group)), SocketAddr::V4(local)) => {
                socket.bind(&SocketAddr::from((group, 0)).into())?;
                socket.join_multicast_v4(&group, local.ip())?;
            }
            (Some(IpAddr::V6(group)), SocketAddr::V6(local)) => {
                socket.bind(&SocketAddr::from((group, 0)).into())?;
                socket.join_multicast_v6(&group, local.scope_id())?;
            }
            (Some(group), local) => {
                return Err(io::Error::other(format!(
                    "group {group} and address {} are of two families",
                    local.ip()
                )));
            }
        }
        Ok(Self { socket, local, group })
    }

    pub fn port(&self) -> io::Result<u16> {
        let address = self.socket.local_addr()?.as_socket();
        Ok(address.map_or(0, |address| address.port()))
    }

    /// Connects this end to the port of a peer, so that only that peer's datagrams arrive. With AF_XDP it opens sockets
    /// for them, and this one keeps the port.
    pub fn connect(
        self,
        peer: SocketAddr,
        port: u16,
        scenario: &Scenario,
        end: End,
    ) -> Result<(Wires, Option<XdpFacts>), ControlError> {
        let mut peer = plain(peer);
        peer.set_port(port);
        let Some(options) = scenario.xdp_of(end) else { return Ok((self.connect_to(peer)?, None)) };
        let mut own = self.local;
        own.set_port(self.port().map_err(XdpError::Port)?);
        let sockets = xdp::open(own, peer, scenario, options)?;
        let facts = sockets.facts().clone();
        Ok((Wires::xdp(self.socket, sockets), Some(facts)))
    }

    fn connect_to(self, peer: SocketAddr) -> io::Result<Wires> {
        let Some(group) = self.group else {
            self.socket.connect(&peer.into())?;
            return Ok(Wires::socket(self.socket));
        };
        let sender = Socket::new(Domain::for_address(self.local), Type::DGRAM, Some(Protocol::UDP))?;
        match self.local {
            SocketAddr::V4(local) => sender.set_multicast_if_v4(local.ip())?,
            SocketAddr::V6(local) => sender.set_multicast_if_v6(local.scope_id())?,
        }
        sender.bind(&SockAddr::from(self.local))?;
        sender.connect(&SocketAddr::new(group, peer.port()).into())?;
        Ok(Wires::Sockets { receive: Arc::new(self.socket.into()), send: Arc::new(sender.into()) })
    }
}

/// The address without the IPv6 form of IPv4 addresses.
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(IpAddr::V4(ip), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Wildcard addresses for a server: IPv4 and IPv6.
pub fn everywhere(port: u16) -> [SocketAddr; 2] {
    [SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))]
}

/// Listens on an address. IPv6 sockets take no IPv4 connections, so that both families can have the same port.
pub fn listen(address: SocketAddr, backlog: i32) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(socket)
}
