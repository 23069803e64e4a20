//! IP addresses of all interfaces, from routing netlink.

use super::ethtool::reading;
use crate::{
    Root,
    netlink::{
        self,
        message::{Attributes, u32_at},
    },
    snapshot::formats,
};
use lowlat_host::Reading;
use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Under this name captures keep the addresses.
pub(crate) const INTERFACE: &str = "addresses";

/// Addresses with their prefix, by interface.
pub(super) type Addresses = BTreeMap<String, Vec<String>>;

/// The addresses of the live host, or as a capture kept them.
pub(super) fn read(root: &Root) -> Reading<Addresses> {
    let ask = || {
        let entries = reading(netlink::list_addresses());
        entries.map(|entries| serde_json::to_vec(&by_interface(root, &entries)).unwrap_or_default())
    };
    root.interface(INTERFACE, ask)
        .and_then(|bytes| formats::from_json(&bytes, INTERFACE, "addresses as JSON"))
}

fn by_interface(root: &Root, entries: &[Vec<u8>]) -> Addresses {
    let names = names_by_index(root);
    let mut addresses = Addresses::new();
    for entry in entries {
        let Some((index, address)) = address(entry) else { continue };
        if let Some(name) = names.get(&index) {
            addresses.entry(name.clone()).or_default().push(address);
        }
    }
    addresses
}

fn names_by_index(root: &Root) -> BTreeMap<u32, String> {
    let names = root.list("/sys/class/net").into_known().unwrap_or_default();
    let index =
        |name: &String| root.read_as(&format!("/sys/class/net/{name}/ifindex"), "a number").into_known();
    names.into_iter().filter_map(|name| Some((index(&name)?, name))).collect()
}

/// Interface index and address of one entry: `struct ifaddrmsg` and attributes (linux/if_addr.h).
fn address(entry: &[u8]) -> Option<(u32, String)> {
    const HEADER_BYTES: usize = 8;
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    let prefix = *entry.get(1)?;
    let index = u32_at(entry, 4)?;
    let attributes = Attributes(entry.get(HEADER_BYTES..)?);
    // On a point-to-point link ADDRESS is the other end's.
    let value = attributes.value_of(LOCAL).or_else(|| attributes.value_of(ADDRESS))?;
    let address = match value.len() {
        4 => IpAddr::from(Ipv4Addr::from(*value.first_chunk::<4>()?)),
        16 => IpAddr::from(Ipv6Addr::from(*value.first_chunk::<16>()?)),
        _ => return None,
    };
    Some((index, format!("{address}/{prefix}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::attribute;

    #[test]
    fn addresses_are_decoded() {
        let header = |family: u8, prefix: u8| [&[family, prefix, 0, 0], &3_u32.to_ne_bytes()[..]].concat();
        let four = [header(2, 24), attribute(1, &[10, 0, 0, 2]), attribute(2, &[10, 0, 0, 1])].concat();
        assert_eq!(address(&four), Some((3, "10.0.0.1/24".to_owned())));
        let six = [header(10, 64), attribute(1, &[0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])];
        assert_eq!(address(&six.concat()), Some((3, "fe80::1/64".to_owned())));
        assert_eq!(address(&header(2, 24)), None);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..60)) {
            let _ = address(&bytes);
        }
    }
}
