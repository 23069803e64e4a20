//! UDP datagrams as Ethernet frames: Ethernet II, IPv4 or IPv6 without options, UDP.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Hardware address of a NIC.
pub type Mac = [u8; 6];

/// Bytes of an Ethernet header.
pub const ETHERNET_BYTES: usize = 14;
/// Bytes of an IPv4 header without options.
const IPV4_BYTES: usize = 20;
/// Bytes of an IPv6 header.
const IPV6_BYTES: usize = 40;
/// Bytes of a UDP header.
const UDP_BYTES: usize = 8;
/// Shortest frame, without its checksum.
const FRAME_BYTES_MIN: usize = 60;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const UDP: u8 = 17;
const HOPS: u8 = 64;

/// Both ends of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Hardware address of the sender.
    pub source_mac: Mac,
    /// Hardware address of the receiver, or of the router on the way.
    pub destination_mac: Mac,
    pub source: SocketAddr,
    /// Receiver, of the same address family.
    pub destination: SocketAddr,
}

/// A datagram inside a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Datagram<'a> {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub payload: &'a [u8],
}

/// Bytes of the headers between the Ethernet header and the payload.
pub fn overhead_bytes(address: IpAddr) -> usize {
    UDP_BYTES + if address.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES }
}

/// Builds the frame of a datagram, with all checksums, padded to the shortest length of a frame.
///
/// Returns `None` if the ends are of two address families, or the payload does not fit into a packet.
pub fn build(path: &Path, payload: &[u8]) -> Option<Vec<u8>> {
    let udp_bytes = u16::try_from(UDP_BYTES + payload.len()).ok()?;
    let mut frame = Vec::with_capacity(ETHERNET_BYTES + IPV6_BYTES + UDP_BYTES + payload.len());
    frame.extend(path.destination_mac);
    frame.extend(path.source_mac);
    // Sums of the pseudo-header: addresses, protocol, length.
    let mut sum = u32::from(UDP) + u32::from(udp_bytes);
    match (path.source.ip(), path.destination.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            frame.extend(IPV4);
            frame.extend(ipv4_header(source, destination, udp_bytes)?);
            sum += sum_of(&source.octets()) + sum_of(&destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend(IPV6);
            frame.extend([0x60, 0, 0, 0]);
            frame.extend(udp_bytes.to_be_bytes());
            frame.extend([UDP, HOPS]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
            sum += sum_of(&source.octets()) + sum_of(&destination.octets());
        }
        _ => return None,
    }
    let mut header = [0; UDP_BYTES];
    let fields = [path.source.port(), path.destination.port(), udp_bytes];
    for (to, field) in header.chunks_exact_mut(2).zip(fields) {
        to.copy_from_slice(&field.to_be_bytes());
    }
    let [.., check_high, check_low] = &mut header;
    // A sum of zero is sent as its other form: zero means that there is none.
    let check = match folded(sum + fields.into_iter().map(u32::from).sum::<u32>() + sum_of(payload)) {
        0 => 0xffff,
        check => check,
    };
    [*check_high, *check_low] = check.to_be_bytes();
    frame.extend(header);
    frame.extend(payload);
    frame.resize(frame.len().max(FRAME_BYTES_MIN), 0);
    Some(frame)
}

fn ipv4_header(source: Ipv4Addr, destination: Ipv4Addr, udp_bytes: u16) -> Option<[u8; IPV4_BYTES]> {
    let [length_high, length_low] = udp_bytes.checked_add(u16::try_from(IPV4_BYTES).ok()?)?.to_be_bytes();
    let ([s0, s1, s2, s3], [d0, d1, d2, d3]) = (source.octets(), destination.octets());
    // Version 4 with 5 words; don't fragment.
    let mut header =
        [0x45, 0, length_high, length_low, 0, 0, 0x40, 0, HOPS, UDP, 0, 0, s0, s1, s2, s3, d0, d1, d2, d3];
    let [check_high, check_low] = folded(sum_of(&header)).to_be_bytes();
    header[10] = check_high;
    header[11] = check_low;
    Some(header)
}

/// Parses a frame; `None` if it holds no whole UDP datagram. Fragments, IP options and extension headers are not
/// accepted. Checksums are not verified: a sender on this host leaves them to a NIC that the frame never passes.
pub fn parse(frame: &[u8]) -> Option<Datagram<'_>> {
    let (ethernet, packet) = frame.split_first_chunk::<ETHERNET_BYTES>()?;
    let (source, destination, udp) = match ethernet {
        [.., 0x08, 0x00] => ipv4(packet)?,
        [.., 0x86, 0xdd] => ipv6(packet)?,
        _ => return None,
    };
    let (&[s0, s1, d0, d1, l0, l1, ..], _) = udp.split_first_chunk::<UDP_BYTES>()?;
    // The IP header bounds the length that UDP states; padding of the frame follows.
    let payload = udp.get(UDP_BYTES..usize::from(u16::from_be_bytes([l0, l1])))?;
    Some(Datagram {
        source: SocketAddr::new(source, u16::from_be_bytes([s0, s1])),
        destination: SocketAddr::new(destination, u16::from_be_bytes([d0, d1])),
        payload,
    })
}

fn ipv4(packet: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    let (header, _) = packet.split_first_chunk::<IPV4_BYTES>()?;
    let &[version, _, l0, l1, _, _, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = header;
    let is_fragment = f0 & 0x3f != 0 || f1 != 0;
    if version != 0x45 || protocol != UDP || is_fragment {
        return None;
    }
    let udp = packet.get(IPV4_BYTES..usize::from(u16::from_be_bytes([l0, l1])))?;
    Some((Ipv4Addr::new(s0, s1, s2, s3).into(), Ipv4Addr::new(d0, d1, d2, d3).into(), udp))
}

fn ipv6(packet: &[u8]) -> Option<(IpAddr, IpAddr, &[u8])> {
    let (&[version, _, _, _, l0, l1, next, _], addresses) = packet.split_first_chunk::<8>()?;
    let (source, rest) = addresses.split_first_chunk::<16>()?;
    let (destination, udp) = rest.split_first_chunk::<16>()?;
    if version >> 4 != 6 || next != UDP {
        return None;
    }
    let udp = udp.get(..usize::from(u16::from_be_bytes([l0, l1])))?;
    Some((Ipv6Addr::from(*source).into(), Ipv6Addr::from(*destination).into(), udp))
}

/// Sum of the bytes as big-endian words of 16 bits. Payloads of a packet cannot overflow it.
fn sum_of(bytes: &[u8]) -> u32 {
    let (words, last) = bytes.as_chunks::<2>();
    let last = last.first().map_or(0, |byte| u32::from(*byte) << 8);
    words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum::<u32>() + last
}

/// Internet checksum of a sum.
fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    u16::try_from(!sum & 0xffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(source: &str, destination: &str) -> Path {
        Path {
            source_mac: [2, 0, 0, 0, 0, 1],
            destination_mac: [2, 0, 0, 0, 0, 2],
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
        }
    }

    fn paths() -> [Path; 2] {
        [path("10.0.0.1:7", "10.0.0.2:9"), path("[fd00::1]:7", "[fd00::2]:9")]
    }

    #[test]
    fn a_frame_has_the_headers_of_its_path_and_valid_checksums() {
        let frame = build(&path("10.0.0.1:4660", "10.0.0.2:22136"), b"ab").unwrap();
        assert_eq!(frame.len(), FRAME_BYTES_MIN);
        let (headers, rest) = frame.split_at(42);
        assert_eq!(headers[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(headers[14..24], [0x45, 0, 0, 30, 0, 0, 0x40, 0, 64, 17]);
        assert_eq!(headers[34..40], [0x12, 0x34, 0x56, 0x78, 0, 10]);
        assert_eq!(rest[..2], *b"ab");
        // A receiver adds everything, checksums included, and gets all ones.
        assert_eq!(folded(sum_of(&headers[14..34])), 0);
        let pseudo = sum_of(&headers[26..34]) + 17 + 10;
        assert_eq!(folded(pseudo + sum_of(&headers[34..]) + sum_of(b"ab")), 0);
    }

    #[test]
    fn datagrams_of_every_size_are_read_back() {
        for path in paths() {
            for bytes in [0, 1, 17, 18, 19, 1_452] {
                let payload = vec![0x5a; bytes];
                let frame = build(&path, &payload).unwrap();
                assert!(frame.len() >= FRAME_BYTES_MIN);
                let expected =
                    Datagram { source: path.source, destination: path.destination, payload: &payload };
                assert_eq!(parse(&frame), Some(expected));
            }
        }
        assert_eq!(build(&path("10.0.0.1:7", "[fd00::2]:9"), &[]), None);
        assert_eq!(build(&paths()[0], &vec![0; 65_536]), None);
    }

    #[test]
    fn lengths_beyond_the_frame_fragments_and_options_are_refused() {
        for path in paths() {
            let frame = build(&path, &[1; 100]).unwrap();
            for cut in 0..frame.len() {
                assert_eq!(parse(&frame[..cut]), None, "{cut}");
            }
            let is_refused = |at: usize, value: u8| {
                let mut frame = frame.clone();
                frame[at] = value;
                parse(&frame).is_none()
            };
            let changes: &[(usize, u8)] = if path.source.is_ipv4() {
                // Another type, options, a longer packet, a fragment, TCP, a longer datagram, one without a header.
                &[(13, 1), (14, 0x46), (16, 9), (20, 0x20), (21, 1), (23, 6), (38, 9), (39, 7)]
            } else {
                &[(13, 0), (14, 0x40), (18, 9), (20, 44), (58, 9), (59, 7)]
            };
            for &(at, value) in changes {
                assert!(is_refused(at, value), "{at}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(frame in proptest::collection::vec(0u8..=255, 0..100)) {
            let _ = parse(&frame);
        }
    }
}
