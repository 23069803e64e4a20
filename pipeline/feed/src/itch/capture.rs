//! Captures (pcap in both byte orders, with micro- and nanoseconds, and pcapng): the datagrams of MoldUDP64 in their
//! packets, whose link layer is any that carries IP.

use super::{FileError, RecordedMessages, mold};
use crate::{Head, array};
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use pcap_parser::{
    Block, Linktype, PcapBlockOwned, PcapHeader, PcapNGSlice, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_header,
};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

/// First bytes of captures: pcap with micro- and nanoseconds in both byte orders, and pcapng.
const CAPTURES: [u32; 5] = [0xa1b2_c3d4, 0xd4c3_b2a1, 0xa1b2_3c4d, 0x4d3c_b2a1, 0x0a0d_0d0a];

/// Most lines of a capture; datagrams of others are foreign.
const LINES_MAX: usize = 1024;

/// Returns true if a line has messages: it may have heartbeats only.
pub fn has_messages(datagrams: &[MoldDatagram<'_>]) -> bool {
    datagrams.iter().any(|datagram| datagram.head.count() > 0)
}

/// Returns true if a file is a capture, by its first bytes.
pub fn is_capture(bytes: &[u8]) -> bool {
    CAPTURES.contains(&u32::from_be_bytes(array(bytes, 0)))
}

/// A datagram with a head of MoldUDP64.
#[derive(Debug, Clone, Copy)]
pub struct MoldDatagram<'a> {
    pub head: Head,
    /// Payload of the UDP datagram, including the head.
    pub payload: &'a [u8],
}

/// The name of a session, and the group and port to which it is sent.
pub type Line = ([u8; 10], SocketAddr);

/// The datagrams of a capture.
#[derive(Debug, Default)]
pub struct Capture<'a> {
    /// Those of each line, in the order of arrival.
    pub lines: BTreeMap<Line, Vec<MoldDatagram<'a>>>,
    /// Findings about the file, other than its datagrams.
    pub read: RecordedMessages,
    packets: u64,
}

impl<'a> Capture<'a> {
    /// Reads a capture up to its end, or the place at which it is cut off or damaged.
    pub fn read(bytes: &'a [u8]) -> Result<Self, FileError> {
        let mut capture = Self::default();
        let is_whole = if let Ok((rest, head)) = parse_pcap_header(bytes) {
            capture.classic(rest, &head)
        } else {
            let blocks = PcapNGSlice::from_slice(bytes).map_err(|_| {
                FileError("the header of the capture is damaged or cut off\nhint: capture again".to_owned())
            })?;
            capture.next_generation(blocks)
        };
        capture.read.whole_before = (!is_whole).then_some(capture.packets);
        match capture.read.unread_link {
            _ if capture.lines.values().any(|line| has_messages(line)) => Ok(capture),
            Some(link) => Err(FileError(format!(
                "packets of link type {link} cannot be read\nhint: capture on Ethernet, or on any interface"
            ))),
            None => Err(FileError(format!(
                "none of its {} packets has messages of MoldUDP64, and {} are cut short\nhint: capture whole packets of a feed of ITCH (tcpdump -s 0)",
                capture.packets, capture.read.cut
            ))),
        }
    }

    /// Returns whether its end was reached, as the next one does.
    fn classic(&mut self, mut rest: &'a [u8], head: &PcapHeader) -> bool {
        let parse = if head.is_bigendian() { parse_pcap_frame_be } else { parse_pcap_frame };
        // The upper half describes the checksums of frames.
        let link = Linktype(head.network.0 & 0xffff);
        while !rest.is_empty() {
            let Ok((next, packet)) = parse(rest) else { return false };
            rest = next;
            self.packet(link, packet.data, packet.origlen);
        }
        true
    }

    fn next_generation(&mut self, blocks: PcapNGSlice<'a>) -> bool {
        let mut links: Vec<Linktype> = Vec::new();
        let size = |length: u32| usize::try_from(length).unwrap_or(usize::MAX);
        // Packets are padded.
        let captured = |data: &'a [u8], length| data.get(..size(length)).unwrap_or(data);
        for block in blocks {
            let Ok(PcapBlockOwned::NG(block)) = block else { return false };
            let link = |at: u32| links.get(size(at)).copied().unwrap_or(Linktype::ETHERNET);
            match block {
                Block::SectionHeader(_) => links.clear(),
                Block::InterfaceDescription(interface) => links.push(interface.linktype),
                Block::EnhancedPacket(packet) => {
                    self.packet(link(packet.if_id), captured(packet.data, packet.caplen), packet.origlen);
                }
                Block::SimplePacket(packet) => {
                    self.packet(link(0), captured(packet.data, packet.origlen), packet.origlen);
                }
                _ => {}
            }
        }
        true
    }

    /// Enters a packet, which had `length` bytes before it was captured.
    fn packet(&mut self, link: Linktype, packet: &'a [u8], length: u32) {
        self.packets += 1;
        let ether = |at| EtherType(u16::from_be_bytes(array(packet, at)));
        let ip = |at: usize| match packet.get(at) {
            Some(0x60..=0x6f) => EtherType::IPV6,
            _ => EtherType::IPV4,
        };
        let (kind, start) = match link {
            Linktype::ETHERNET => (ether(12), 14),
            Linktype::LINUX_SLL => (ether(14), 16),
            Linktype::LINUX_SLL2 => (ether(0), 20),
            Linktype::NULL | Linktype::LOOP => (ip(4), 4),
            // The numbers are those of raw IP on BSD.
            Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 | Linktype(12 | 14) => (ip(0), 0),
            Linktype(other) => {
                self.read.unread_link = Some(other);
                return;
            }
        };
        let sliced = LaxSlicedPacket::from_ether_type(kind, packet.get(start..).unwrap_or_default());
        let is_cut = u32::try_from(packet.len()).is_ok_and(|captured| captured < length);
        let to = match &sliced.net {
            Some(LaxNetSlice::Ipv4(ip)) => IpAddr::from(ip.header().destination()),
            Some(LaxNetSlice::Ipv6(ip)) => IpAddr::from(ip.header().destination()),
            _ => IpAddr::from([0; 4]),
        };
        let Some(TransportSlice::Udp(udp)) = sliced.transport else {
            // Other protocols and fragments are no datagrams of a feed. The protocol of a short packet may be unknown.
            self.read.cut += u64::from(is_cut && sliced.transport.is_none());
            return;
        };
        let payload = udp.payload();
        let key = (array(payload, 0), SocketAddr::new(to, udp.destination_port()));
        match mold::decode(payload) {
            Ok((head, _)) if self.lines.len() < LINES_MAX || self.lines.contains_key(&key) => {
                self.lines.entry(key).or_default().push(MoldDatagram { head, payload });
            }
            Err(_) if is_cut => self.read.cut += 1,
            _ => self.read.foreign += 1,
        }
    }
}
