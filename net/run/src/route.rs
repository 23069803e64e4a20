//! The route of packets to a peer: interface and the next hop's hardware address, from routing netlink
//! (linux/rtnetlink.h).

use lowlat_host_run::netlink::{
    ask_route, list_route,
    message::{Attributes, attribute, text, u32_at},
};
use rustix::io::Errno;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use thiserror::Error;

const RTM_GETLINK: u16 = 18;
const RTM_GETROUTE: u16 = 26;
const RTM_GETNEIGH: u16 = 30;
/// Lengths of `struct ifinfomsg`, `rtmsg` and `ndmsg`.
const LINK_HEADER_BYTES: usize = 16;
const ROUTE_HEADER_BYTES: usize = 12;
const NEIGHBOUR_HEADER_BYTES: usize = 12;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const ARPHRD_ETHER: u16 = 1;

/// Reason why the route is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct RouteError(String);

impl RouteError {
    fn of_interface(index: u32, error: Errno) -> Self {
        Self(format!("cannot read interface {index}: {error}"))
    }
}

/// A network interface as routing netlink shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    pub index: u32,
    pub name: String,
    pub mac: [u8; 6],
    /// Largest packet in bytes, without the Ethernet header.
    pub mtu_bytes: u32,
    /// Receive queues that it was created with; fewer may be in use.
    pub rx_queues_max: u32,
    pub has_carrier: bool,
    /// Place of its XDP program; `None` without one.
    pub xdp: Option<XdpAttached>,
    is_ethernet: bool,
}

/// Place where the XDP program of an interface runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpAttached {
    Driver,
    /// In the kernel's generic path.
    Generic,
    /// On the card, or in several places.
    Other,
}

/// The route to a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Interface through which packets leave.
    pub interface: Interface,
    /// Hardware address of the peer, or of the router on the way.
    pub next_mac: [u8; 6],
}

/// Finds the route from a local address to a peer. `scope` is the interface of link-local addresses; 0 if none.
///
/// # Errors
/// [`RouteError`] with what is unknown.
pub fn way_to(own: IpAddr, peer: IpAddr, scope: u32) -> Result<Way, RouteError> {
    let (index, hop) = route(own, peer, scope)
        .map_err(|error| RouteError(format!("cannot read the route to {peer}: {error}")))?;
    let interface = interface(index)?;
    if !interface.is_ethernet {
        return Err(RouteError(format!("interface {} does not use Ethernet", interface.name)));
    }
    let next_mac =
        neighbour(index, hop).map_err(|error| RouteError::of_interface(index, error))?.ok_or_else(|| {
            RouteError(format!("the hardware address of {hop} on {} is unknown", interface.name))
        })?;
    Ok(Way { interface, next_mac })
}

/// Reads an interface.
///
/// # Errors
/// [`RouteError`] if it cannot be read.
pub fn interface(index: u32) -> Result<Interface, RouteError> {
    let mut request = [0; LINK_HEADER_BYTES];
    let [_, _, _, _, i0, i1, i2, i3, ..] = &mut request;
    [*i0, *i1, *i2, *i3] = index.to_ne_bytes();
    let answer = ask_route(RTM_GETLINK, &request).map_err(|error| RouteError::of_interface(index, error))?;
    interface_of(&answer).ok_or_else(|| RouteError::of_interface(index, Errno::BADMSG))
}

fn interface_of(answer: &[u8]) -> Option<Interface> {
    const ADDRESS: u16 = 1;
    const NAME: u16 = 3;
    const MTU: u16 = 4;
    const RX_QUEUES: u16 = 32;
    const CARRIER: u16 = 33;
    const XDP: u16 = 43;
    const XDP_ATTACHED: u16 = 2;
    let attributes = Attributes(answer.get(LINK_HEADER_BYTES..)?);
    let number = |kind| attributes.value_of(kind).and_then(|value| u32_at(value, 0));
    let kind = u16::from_ne_bytes(*answer.get(2..)?.first_chunk()?);
    let mac = attributes.value_of(ADDRESS).and_then(|mac| mac.try_into().ok());
    let attached = attributes.value_of(XDP).and_then(|xdp| Attributes(xdp).value_of(XDP_ATTACHED)?.first());
    Some(Interface {
        index: u32_at(answer, 4)?,
        name: text(attributes.value_of(NAME)?),
        mac: mac.unwrap_or_default(),
        mtu_bytes: number(MTU)?,
        rx_queues_max: number(RX_QUEUES).unwrap_or(1),
        has_carrier: attributes.value_of(CARRIER).is_some_and(|carrier| carrier == [1]),
        xdp: match attached {
            None | Some(0) => None,
            Some(1) => Some(XdpAttached::Driver),
            Some(2) => Some(XdpAttached::Generic),
            Some(_) => Some(XdpAttached::Other),
        },
        is_ethernet: kind == ARPHRD_ETHER && mac.is_some(),
    })
}

/// The interface of the route, and the next hop.
fn route(own: IpAddr, peer: IpAddr, scope: u32) -> Result<(u32, IpAddr), Errno> {
    const DESTINATION: u16 = 1;
    const SOURCE: u16 = 2;
    const INTERFACE: u16 = 4;
    const GATEWAY: u16 = 5;
    const VIA: u16 = 18;
    let mut request = vec![0; ROUTE_HEADER_BYTES];
    let (family, bits) = if peer.is_ipv4() { (AF_INET, 32) } else { (AF_INET6, 128) };
    if let [at, to_bits, from_bits, ..] = request.as_mut_slice() {
        (*at, *to_bits, *from_bits) = (family, bits, bits);
    }
    request.extend(attribute(DESTINATION, &octets(peer)));
    request.extend(attribute(SOURCE, &octets(own)));
    if scope > 0 {
        request.extend(attribute(INTERFACE, &scope.to_ne_bytes()));
    }
    let answer = ask_route(RTM_GETROUTE, &request)?;
    let attributes = Attributes(answer.get(ROUTE_HEADER_BYTES..).unwrap_or_default());
    let index = attributes.value_of(INTERFACE).and_then(|value| u32_at(value, 0)).ok_or(Errno::BADMSG)?;
    // A gateway of the other family: its family in two bytes, then its address.
    let via = || address(attributes.value_of(VIA)?.get(2..)?);
    let hop = attributes.value_of(GATEWAY).and_then(address).or_else(via);
    Ok((index, hop.unwrap_or(peer)))
}

/// The hardware address of a neighbour.
fn neighbour(index: u32, hop: IpAddr) -> Result<Option<[u8; 6]>, Errno> {
    const DESTINATION: u16 = 1;
    const MAC: u16 = 2;
    let entries = list_route(RTM_GETNEIGH, &[0; NEIGHBOUR_HEADER_BYTES])?;
    Ok(entries.iter().find_map(|entry| {
        let attributes = Attributes(entry.get(NEIGHBOUR_HEADER_BYTES..)?);
        let is_meant = u32_at(entry, 4)? == index && attributes.value_of(DESTINATION)? == octets(hop);
        // An entry whose resolution failed has no address.
        if is_meant { attributes.value_of(MAC)?.try_into().ok() } else { None }
    }))
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(octets) {
        return Some(Ipv4Addr::from(octets).into());
    }
    <[u8; 16]>::try_from(octets).ok().map(|octets| Ipv6Addr::from(octets).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_loopback_is_no_ethernet() {
        let own = Ipv4Addr::LOCALHOST.into();
        let error = way_to(own, own, 0).unwrap_err();
        assert_eq!(error.to_string(), "interface lo does not use Ethernet");
        let lo = interface(1).unwrap();
        assert_eq!((lo.name.as_str(), lo.xdp, lo.mtu_bytes > 1_500), ("lo", None, true));
        assert!(interface(u32::MAX >> 1).unwrap_err().to_string().starts_with("cannot read interface"));
    }

    #[test]
    fn answers_of_any_length_are_read_or_refused() {
        let mut request = [0; LINK_HEADER_BYTES];
        request[4] = 1;
        let answer = ask_route(RTM_GETLINK, &request).unwrap();
        for cut in 0..answer.len() {
            let _ = interface_of(&answer[..cut]);
        }
        assert_eq!(interface_of(&answer), interface(1).ok());
    }
}
