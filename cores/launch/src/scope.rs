//! Sockets that must be accelerated.

use crate::{Refusal, evidence::SocketEnds};
use std::net::IpAddr;

/// Addresses whose first bits are those of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    of: IpAddr,
    bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (ip, bits) = text.split_once('/').unwrap_or((text, ""));
        let of: IpAddr = ip.parse().ok()?;
        let most = if of.is_ipv4() { 32 } else { 128 };
        let bits = if text.contains('/') { bits.parse().ok()? } else { most };
        (bits <= most).then_some(Self { of, bits })
    }

    fn contains(&self, ip: IpAddr) -> bool {
        let shared = match (self.of, ip.to_canonical()) {
            (IpAddr::V4(of), IpAddr::V4(ip)) => (of.to_bits() ^ ip.to_bits()).leading_zeros(),
            (IpAddr::V6(of), IpAddr::V6(ip)) => (of.to_bits() ^ ip.to_bits()).leading_zeros(),
            _ => return false,
        };
        shared >= self.bits
    }
}

/// Sockets that must be accelerated: those of an interface, with a port, or with a peer. All of them if nothing is
/// named.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SocketScope {
    /// Addresses of the interfaces.
    local: Vec<IpAddr>,
    ports: Vec<u16>,
    peers: Vec<Network>,
}

impl SocketScope {
    /// Parses a list such as "ens1,5000,10.0.0.0/24". `addresses` are those of an interface, or `None` if there is no such
    /// interface.
    ///
    /// # Errors
    /// [`Refusal`] if a word is neither a port, an address nor an interface, or an interface has no address.
    pub fn parse(text: &str, addresses: impl Fn(&str) -> Option<Vec<IpAddr>>) -> Result<Self, Refusal> {
        let mut scope = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if let Ok(port) = word.parse() {
                scope.ports.push(port);
            } else if let Some(peer) = Network::parse(word) {
                scope.peers.push(peer);
            } else {
                let refused = |why: &str| {
                    Refusal(format!(
                        "cannot require acceleration of {word}: {why}\nhint: name interfaces, ports, addresses, or networks such as \
                         10.0.0.0/24"
                    ))
                };
                let of_interface = addresses(word).ok_or_else(|| refused("no such interface"))?;
                if of_interface.is_empty() {
                    return Err(refused("the interface has no known address"));
                }
                scope.local.extend(of_interface);
            }
        }
        Ok(scope)
    }

    /// Returns whether a socket must be accelerated. One that listens on all addresses serves each interface.
    pub fn contains(&self, ends: &SocketEnds) -> bool {
        let Self { local, ports, peers } = self;
        let (own, remote) = (ends.local.ip().to_canonical(), ends.remote.ip());
        let is_everywhere = own.is_unspecified() && !local.is_empty();
        local.is_empty() && ports.is_empty() && peers.is_empty()
            || is_everywhere
            || local.contains(&own)
            || [ends.local, ends.remote].iter().any(|end| ports.contains(&end.port()))
            || peers.iter().any(|peer| peer.contains(remote))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_interfaces_ports_and_peers() {
        let addresses = |name: &str| match name {
            "ens1" => Some(["10.0.0.1", "fd00::1"].map(|ip| ip.parse().unwrap()).to_vec()),
            "ens2" => Some(Vec::new()),
            _ => None,
        };
        let has = |scope: &str, local: &str, remote: &str| {
            let ends = SocketEnds { local: local.parse().unwrap(), remote: remote.parse().unwrap() };
            SocketScope::parse(scope, addresses).unwrap().contains(&ends)
        };
        let (far, log) = ("10.0.0.9:5000", "192.168.1.9:514");
        assert!(has("", "192.168.1.1:4000", log));
        assert!(has("ens1", "10.0.0.1:4000", far) && !has("ens1", "192.168.1.1:4000", log));
        assert!(has("ens1", "[fd00::1]:4000", "[fd00::2]:1") && has("ens1", "0.0.0.0:80", "0.0.0.0:0"));
        assert!(has("5000", "10.0.0.1:4000", far) && has("4000,1", "10.0.0.1:4000", far));
        assert!(has("10.0.0.0/24", "10.0.0.1:4000", far) && has("10.0.0.9", "10.0.0.1:4000", far));
        assert!(!has("10.0.0.8", "10.0.0.1:4000", far) && !has("10.0.1.0/24", "10.0.0.1:4000", far));
        assert!(has("fd00::/16", "[fd00::1]:4000", "[fd00::2]:1") && !has("::/0", "10.0.0.1:4000", far));
        assert!(has("0.0.0.0/0", "10.0.0.1:4000", far));
        for (bad, why) in
            [("ens7", "no such interface"), ("ens2", "no known address"), ("10.0.0.0/33", "no such")]
        {
            let refused = SocketScope::parse(bad, addresses).unwrap_err().to_string();
            assert!(refused.contains(why) && refused.contains("\nhint: "), "{refused}");
        }
    }
}
