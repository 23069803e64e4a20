//! Recorded messages: captures of MoldUDP64 packets (pcap in both byte orders, with micro- and nanoseconds, and pcapng),
//! and plain files as Nasdaq publishes them, where each message is behind its length.

use super::mold;
use crate::{
    bytes::array,
    sequence::{Counts, Tracker},
};
use etherparse::{SlicedPacket, TransportSlice};
use pcap_parser::{
    Block, Linktype, PcapBlockOwned, PcapHeader, PcapNGSlice, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_header, traits::PcapNGPacketBlock,
};
use thiserror::Error;

/// First bytes of captures: pcap with micro- and nanoseconds in both byte orders, and pcapng.
const CAPTURES: [[u8; 4]; 5] = [
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

/// Why a file is not read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FileError {
    /// A capture is damaged.
    #[error("the capture is damaged or cut off behind {blocks} packets and other blocks")]
    Capture {
        /// Blocks read before.
        blocks: usize,
    },
    /// A plain file ends in the middle of a message.
    #[error("the file is cut off in the message at byte {at}")]
    Cut {
        /// Start of the message.
        at: usize,
    },
    /// The link type of a capture.
    #[error("packets of link type {0} cannot be read; capture on Ethernet, or any interface")]
    Link(i32),
}

/// Whether a file is a capture or a plain file of ITCH, by its first bytes.
pub fn recorded(bytes: &[u8]) -> bool {
    // A plain file starts with a system event of 12 bytes.
    CAPTURES.contains(&array(bytes, 0)) || array(bytes, 0) == [0, 12, b'S']
}

/// Messages of a file.
#[derive(Debug, Clone, Copy)]
pub struct Messages<'a>(pub &'a [u8]);

/// What was read of a file beside its messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordedMessages {
    /// The sequence of a capture.
    pub counts: Counts,
    /// UDP datagrams of a capture that are not of the format.
    pub foreign: u64,
}

impl Messages<'_> {
    /// Gives each message in order, until one is refused with false.
    pub fn each(self, take: &mut dyn FnMut(&[u8]) -> bool) -> Result<RecordedMessages, FileError> {
        if CAPTURES.contains(&array(self.0, 0)) {
            return capture(self.0, take);
        }
        let mut at = 0;
        while at < self.0.len() {
            let length = usize::from(u16::from_be_bytes(array(self.0, at)));
            let message = self.0.get(at + 2..at + 2 + length).ok_or(FileError::Cut { at })?;
            // A length of 0 marks the end of a session.
            if !message.is_empty() && !take(message) {
                break;
            }
            at += 2 + length;
        }
        Ok(RecordedMessages::default())
    }
}

/// Follows the packets of a capture.
struct Capture<'t> {
    take: &'t mut dyn FnMut(&[u8]) -> bool,
    tracker: Tracker,
    foreign: u64,
}

fn capture(bytes: &[u8], take: &mut dyn FnMut(&[u8]) -> bool) -> Result<RecordedMessages, FileError> {
    let mut capture = Capture { take, tracker: Tracker::default(), foreign: 0 };
    if let Ok((rest, head)) = parse_pcap_header(bytes) {
        capture.classic(rest, &head)?;
    } else {
        capture.next_generation(bytes)?;
    }
    Ok(RecordedMessages { counts: *capture.tracker.counts(), foreign: capture.foreign })
}

impl Capture<'_> {
    fn classic(&mut self, mut rest: &[u8], head: &PcapHeader) -> Result<(), FileError> {
        let parse = if head.is_bigendian() { parse_pcap_frame_be } else { parse_pcap_frame };
        for blocks in 0.. {
            if rest.is_empty() {
                break;
            }
            let (next, packet) = parse(rest).map_err(|_| FileError::Capture { blocks })?;
            rest = next;
            if !self.packet(head.network, packet.data)? {
                break;
            }
        }
        Ok(())
    }

    fn next_generation(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let blocks = PcapNGSlice::from_slice(bytes).map_err(|_| FileError::Capture { blocks: 0 })?;
        let mut links = Vec::new();
        for (blocks, block) in blocks.enumerate() {
            let Ok(PcapBlockOwned::NG(block)) = block else { return Err(FileError::Capture { blocks }) };
            let link = |at: u32| {
                let link = usize::try_from(at).ok().and_then(|at| links.get(at));
                link.copied().unwrap_or(Linktype::ETHERNET)
            };
            let may_go_on = match &block {
                Block::SectionHeader(_) => {
                    links.clear();
                    true
                }
                Block::InterfaceDescription(interface) => {
                    links.push(interface.linktype);
                    true
                }
                Block::EnhancedPacket(packet) => self.packet(link(packet.if_id), packet.packet_data())?,
                Block::SimplePacket(packet) => self.packet(link(0), packet.packet_data())?,
                _ => true,
            };
            if !may_go_on {
                break;
            }
        }
        Ok(())
    }

    /// Gives the messages of a packet. Returns false if one was refused.
    fn packet(&mut self, link: Linktype, packet: &[u8]) -> Result<bool, FileError> {
        let sliced = match link {
            Linktype::ETHERNET => SlicedPacket::from_ethernet(packet),
            Linktype::LINUX_SLL => SlicedPacket::from_linux_sll(packet),
            Linktype::RAW | Linktype::IPV4 | Linktype::IPV6 => SlicedPacket::from_ip(packet),
            Linktype(other) => return Err(FileError::Link(other)),
        };
        // Other protocols, fragments and damaged packets are no datagrams of a feed.
        let Ok(SlicedPacket { transport: Some(TransportSlice::Udp(datagram)), .. }) = sliced else {
            return Ok(true);
        };
        let Ok((head, mut messages)) = mold::decode(datagram.payload()) else {
            self.foreign += 1;
            return Ok(true);
        };
        let skipped = self.tracker.enter(&head, 0);
        for _ in 0..skipped {
            messages.next();
        }
        Ok(messages.all(&mut *self.take))
    }
}

#[cfg(test)]
mod tests;
