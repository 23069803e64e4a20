//! Captures of every kind: link layers, lines, sessions, order, cuts and damage.

use super::*;
use std::net::{IpAddr, SocketAddr};

/// A datagram that a test sends.
#[derive(Clone, Copy)]
struct Sent<'a> {
    session: &'a str,
    to: &'a str,
    sequence: u64,
    messages: &'a [Vec<u8>],
}

const A: &str = "239.1.1.1:5000";
const B: &str = "239.1.1.2:5001";
const V6: &str = "[ff15::7]:6000";

fn sent<'a>(session: &'a str, to: &'a str, sequence: u64, messages: &'a [Vec<u8>]) -> Sent<'a> {
    Sent { session, to, sequence, messages }
}

impl Sent<'_> {
    /// Wraps it in UDP and IP.
    fn packet(self) -> Vec<u8> {
        let mut mold = format!("{:>10}", self.session).into_bytes();
        mold.extend(self.sequence.to_be_bytes());
        mold.extend(u16::try_from(self.messages.len()).unwrap().to_be_bytes());
        for message in self.messages {
            mold.extend(u16::try_from(message.len()).unwrap().to_be_bytes());
            mold.extend(message);
        }
        let length = |more: usize| u16::try_from(mold.len() + more).unwrap().to_be_bytes();
        let to: SocketAddr = self.to.parse().unwrap();
        let mut bytes = match to.ip() {
            IpAddr::V4(group) => {
                let start = [&[0x45, 0][..], &length(28), &[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1]].concat();
                [start, group.octets().to_vec()].concat()
            }
            IpAddr::V6(group) => {
                let start = [&[0x60, 0, 0, 0][..], &length(8), &[17, 64], &[0xfe; 16]].concat();
                [start, group.octets().to_vec()].concat()
            }
        };
        bytes.extend([4, 210]);
        bytes.extend(to.port().to_be_bytes());
        bytes.extend(length(8));
        bytes.extend([0, 0]);
        bytes.extend(mold);
        bytes
    }

    /// On Ethernet, behind tags of VLANs.
    fn frame(self, tags: usize) -> Vec<u8> {
        let packet = self.packet();
        let mut bytes = vec![0; 12];
        (0..tags).for_each(|_| bytes.extend([0x81, 0, 0, 9]));
        bytes.extend(kind_of(&packet));
        bytes.extend(packet);
        bytes
    }
}

fn kind_of(packet: &[u8]) -> [u8; 2] {
    if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] }
}

/// A capture of a link type; each packet with its length before it was captured.
fn pcap_of(link: u32, packets: &[(Vec<u8>, usize)]) -> Vec<u8> {
    let mut bytes = [&0xa1b2_c3d4_u32.to_le_bytes()[..], &[2, 0, 4, 0], &[0; 8], &[0xff; 4]].concat();
    bytes.extend(link.to_le_bytes());
    for (packet, length) in packets {
        let lengths = [packet.len(), *length].map(|length| u32::try_from(length).unwrap().to_le_bytes());
        bytes.extend([&[0; 8], lengths.as_flattened(), packet].concat());
    }
    bytes
}

fn pcap(link: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let packets: Vec<_> = packets.iter().map(|packet| (packet.clone(), packet.len())).collect();
    pcap_of(link, &packets)
}

fn ethernet(sent: &[Sent<'_>]) -> Vec<u8> {
    pcap(1, &sent.iter().map(|sent| sent.frame(0)).collect::<Vec<_>>())
}

/// Messages that differ: additions of orders, numbered from `first`.
fn adds(first: u64, count: u64) -> Vec<Vec<u8>> {
    (first..first + count).map(|at| add(7, at, b'B', 1, 5)).collect()
}

fn read_of(bytes: &[u8], channel: Option<&str>) -> Result<(Vec<Vec<u8>>, RecordedMessages), FileError> {
    let mut found = Vec::new();
    let read = Messages { bytes, channel }.each(&mut |message| {
        found.push(message.to_vec());
        true
    })?;
    Ok((found, read))
}

#[test]
fn every_link_layer_that_carries_ip_is_read() {
    let messages = adds(1, 4);
    for to in [A, V6] {
        let sent = sent("day", to, 1, &messages);
        let (packet, kind) = (sent.packet(), kind_of(&sent.packet()));
        let behind = |head: &[u8]| [head, &packet].concat();
        let is_v6 = to == V6;
        let family: u8 = if is_v6 { 30 } else { 2 };
        let layers = [
            (1, sent.frame(0)),
            (1, sent.frame(1)),
            (1, sent.frame(2)),
            (0x5400_0001, sent.frame(0)),
            (113, behind(&[&[0; 14][..], &kind].concat())),
            (276, behind(&[&kind[..], &[0; 18]].concat())),
            (0, behind(&[family, 0, 0, 0])),
            (108, behind(&[0, 0, 0, family])),
            (101, packet.clone()),
            (12, packet.clone()),
            (14, packet.clone()),
            (if is_v6 { 229 } else { 228 }, packet.clone()),
        ];
        for (link, frame) in layers {
            // Frames are padded.
            let (found, read) = read_of(&pcap(link, &[[frame, vec![0; 3]].concat()]), None).unwrap();
            assert_eq!((found, read.doubts()), (messages.clone(), Vec::new()), "{link} {to}");
        }
    }
    let usb = pcap(189, &[sent("day", A, 1, &messages).frame(0)]);
    let error = read_of(&usb, None).unwrap_err();
    assert!(error.to_string().starts_with("packets of link type 189 cannot be read\nhint: "));
}

/// Each interface of pcapng has its link type, and each section its byte order and its interfaces.
#[test]
fn interfaces_of_pcapng_differ() {
    let messages = adds(1, 4);
    let packets: Vec<_> =
        (0..4_u64).map(|at| sent("day", A, at + 1, &messages[usize::try_from(at).unwrap()..][..1])).collect();
    let sll2 = |sent: Sent<'_>| [&[8, 0][..], &[0; 18], &sent.packet()].concat();
    let section = |is_big: bool, first: &[u8], second: &[u8]| {
        let int = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let short = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let block = |kind: u32, body: &[u8]| {
            let padding = body.len().next_multiple_of(4) - body.len();
            let length = int(u32::try_from(12 + body.len() + padding).unwrap());
            [&int(kind)[..], &length, body, &vec![0; padding], &length].concat()
        };
        let interface = |link: u16| block(1, &[&short(link)[..], &[0; 6]].concat());
        let packet = |at: u32, packet: &[u8]| {
            let length = int(u32::try_from(packet.len()).unwrap());
            block(6, &[&int(at)[..], &[0; 8], &length, &length, packet].concat())
        };
        let version = [short(1), short(0)].concat();
        [
            block(0x0a0d_0d0a, &[&int(0x1a2b_3c4d)[..], &version, &[0xff; 8]].concat()),
            interface(1),
            interface(276),
            packet(0, first),
            packet(1, second),
        ]
        .concat()
    };
    for order in [[false, true], [true, false], [true, true]] {
        let bytes = [
            section(order[0], &packets[0].frame(0), &sll2(packets[1])),
            section(order[1], &packets[2].frame(1), &sll2(packets[3])),
        ]
        .concat();
        let (found, read) = read_of(&bytes, None).unwrap();
        assert_eq!((found, read.doubts()), (messages.clone(), Vec::new()), "{order:?}");
    }
}

#[test]
fn channels_are_told_apart_and_chosen() {
    let (first, second) = (adds(1, 6), adds(100, 4));
    let bytes = ethernet(&[
        sent("1A", A, 1, &first[..3]),
        sent("2B", B, 1_000_000, &second[..2]),
        sent("1A", A, 4, &first[3..]),
        sent("2B", B, 1_000_002, &second[2..]),
    ]);
    let error = read_of(&bytes, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "it has 2 channels:
  1A@239.1.1.1:5000: 2 packets, 6 messages
  2B@239.1.1.2:5001: 2 packets, 4 messages
hint: choose one with --channel: SESSION, GROUP, GROUP:PORT, :PORT or SESSION@GROUP:PORT"
    );
    for (wanted, expected) in [
        ("1A", &first),
        ("239.1.1.1", &first),
        ("239.1.1.1:5000", &first),
        (":5000", &first),
        ("1A@239.1.1.1:5000", &first),
        ("2B", &second),
        (" 2B ", &second),
        (":5001", &second),
    ] {
        let (found, read) = read_of(&bytes, Some(wanted)).unwrap();
        assert_eq!((&found, read.gaps(), read.doubts()), (expected, None, Vec::new()), "{wanted}");
    }
    for wanted in ["", "3C", "1A@239.1.1.2:5001", "239.1.1.1:5001"] {
        assert_eq!(read_of(&bytes, Some(wanted)).unwrap_err(), error, "{wanted}");
    }
}

#[test]
fn many_channels_are_listed_in_part() {
    let messages = adds(1, 1);
    let sessions: Vec<_> = (0..30).map(|at| format!("S{at}")).collect();
    let datagrams: Vec<_> = sessions.iter().map(|session| sent(session, A, 1, &messages)).collect();
    let error = read_of(&ethernet(&datagrams), None).unwrap_err().to_string();
    assert!(error.starts_with("it has 30 channels:\n") && error.lines().count() == 22, "{error}");
}

#[test]
fn lines_of_a_session_fill_each_other() {
    let messages = adds(1, 40);
    let packet = |to, first: usize, count: usize| {
        sent("1A", to, u64::try_from(first).unwrap() + 1, &messages[first..first + count])
    };
    // A lacks numbers 11 to 15; B is late and packed otherwise.
    let mut datagrams: Vec<_> = [0, 5, 15, 20, 25, 30, 35].map(|first| packet(A, first, 5)).to_vec();
    datagrams.extend([0, 8, 16, 24, 32].map(|first| packet(B, first, 8)));
    let (found, read) = read_of(&ethernet(&datagrams), None).unwrap();
    assert_eq!((found, read.gaps()), (messages.clone(), None));
    assert_eq!(read.doubts(), ["35 messages arrived more than once; each is used once"]);
    // The line that the user names is read without the other.
    let (found, read) = read_of(&ethernet(&datagrams), Some(A)).unwrap();
    assert_eq!((found.len(), read.counts.doubled), (35, 0));
    assert_eq!(
        read.gaps().unwrap(),
        "5 messages are missing in 1 gaps (first 11 to 15), so quotes may be wrong"
    );
}

/// Parts of a market may share the name of their session: their messages differ.
#[test]
fn lines_whose_messages_differ_are_channels() {
    let (one, two) = (adds(1, 9), adds(100, 9));
    let datagrams = [
        sent("1A", A, 1, &one),
        sent("1A", B, 1, &two),
        sent("1A", "239.1.1.3:1", 1, &one),
        sent("1A", "239.1.1.4:1", 1, &two),
    ];
    let error = read_of(&ethernet(&datagrams), None).unwrap_err().to_string();
    let expected = "it has 2 channels:
  1A@239.1.1.1:5000 and 239.1.1.3:1: 2 packets, 18 messages
  1A@239.1.1.2:5001 and 239.1.1.4:1: 2 packets, 18 messages\n";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(read_of(&ethernet(&datagrams), Some(B)).unwrap().0, two);
    // Far apart in their numbers, too.
    let datagrams = [sent("1A", A, 1, &one), sent("1A", B, 1_000_000, &two)];
    assert!(read_of(&ethernet(&datagrams), None).unwrap_err().to_string().starts_with("it has 2 channels"));
}

#[test]
fn packets_that_arrive_out_of_order_are_put_in_order() {
    let messages = adds(1, 600);
    let in_order: Vec<_> = (0..200)
        .map(|at| sent("1A", A, at * 3 + 501, &messages[usize::try_from(at).unwrap() * 3..][..3]))
        .collect();
    for depth in [2, 7, 64, 200] {
        let datagrams: Vec<_> = in_order.chunks(depth).flat_map(|part| part.iter().rev().copied()).collect();
        let (found, read) = read_of(&ethernet(&datagrams), None).unwrap();
        assert_eq!((found, read.gaps(), read.doubts()), (messages.clone(), None, Vec::new()), "{depth}");
    }
}

#[test]
fn a_damaged_sequence_number_is_reported_and_ignored() {
    let messages = adds(1, 9);
    let packet = |sequence, at: usize| sent("1A", A, sequence, &messages[at..at + 3]);
    for damaged in [1 << 63, (1 << 63) + 4, u64::MAX, 1 << 40, 1 << 24, 4 + (1 << 20)] {
        for place in 0..4 {
            let mut datagrams = vec![packet(1, 0), packet(4, 3), packet(7, 6)];
            datagrams.insert(place, packet(damaged, 0));
            // The last one cannot be distinguished from a gap unless the jump is too large.
            if place == 3 && damaged < 1 << 32 {
                datagrams.push(packet(7, 6));
            }
            let (found, read) = read_of(&ethernet(&datagrams), None).unwrap();
            assert_eq!(
                (found, read.gaps(), read.implausible),
                (messages.clone(), None, 1),
                "{damaged} {place}"
            );
            assert!(read.doubts()[0].starts_with("1 packets have a sequence number far from"));
        }
        // In place of a good one: its messages are missing.
        let datagrams = [packet(1, 0), packet(damaged, 3), packet(7, 6)];
        let (found, read) = read_of(&ethernet(&datagrams), None).unwrap();
        assert_eq!((found.len(), read.counts.missing, read.implausible), (6, 3, 1), "{damaged}");
    }
    // A number that is too low, and a long pause, after which the numbers go on.
    let datagrams = [packet(1_000_000, 0), packet(1_000_003, 3), packet(5, 3), packet(1_000_006, 6)];
    let (found, read) = read_of(&ethernet(&datagrams), None).unwrap();
    assert_eq!((found, read.gaps(), read.implausible), (messages.clone(), None, 1));
    let datagrams = [packet(1, 0), packet(1_000_001, 3), packet(1_000_004, 6)];
    let (_, read) = read_of(&ethernet(&datagrams), None).unwrap();
    assert_eq!((read.counts.missing, read.implausible), (999_997, 0));
}

/// The end of the session and heartbeats reveal what is missing behind the last message.
#[test]
fn a_gap_at_the_end_is_seen() {
    let messages = adds(1, 3);
    let datagrams = [sent("1A", A, 1, &messages), sent("1A", A, 6, &[])];
    let (found, read) = read_of(&ethernet(&datagrams), None).unwrap();
    assert_eq!((found, read.counts.missing), (messages, 2));
}

#[test]
fn a_cut_costs_the_last_packet_only() {
    let messages = adds(1, 6);
    let frames = [sent("1A", A, 1, &messages[..3]).frame(0), sent("1A", A, 4, &messages[3..]).frame(1)];
    let block = |kind: u32, body: &[u8]| {
        let padding = body.len().next_multiple_of(4) - body.len();
        let length = u32::try_from(12 + body.len() + padding).unwrap().to_le_bytes();
        [&kind.to_le_bytes(), &length, body, &vec![0; padding], &length].concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let mut next = [block(0x0a0d_0d0a, &section), block(1, &[1, 0, 0, 0, 0, 0, 0, 0])].concat();
    for frame in &frames {
        let length = u32::try_from(frame.len()).unwrap().to_le_bytes();
        next.extend(block(3, &[&length[..], frame].concat()));
    }
    let classic = pcap(1, &frames);
    // Offsets at which the two packets end, in either file.
    let files = [
        (&classic, [24 + 16 + frames[0].len(), classic.len()]),
        (&next, [next.len() - 16 - frames[1].len().next_multiple_of(4), next.len()]),
    ];
    for (bytes, ends) in files {
        for length in 4..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= length).count();
            let result = read_of(&bytes[..length], None);
            let Ok((found, read)) = result else {
                assert_eq!(whole, 0, "{length}: {result:?}");
                continue;
            };
            assert_eq!(found, messages[..whole * 3], "{length}");
            assert_eq!(read.gaps(), None);
            let is_whole = ends.contains(&length);
            assert_eq!(read.whole_before, (!is_whole).then_some(u64::try_from(whole).unwrap()), "{length}");
            assert_eq!(read.doubts().len(), usize::from(!is_whole));
        }
    }
}

/// A capture with a limit of bytes for each packet: those above it are left out, and their messages are missing.
#[test]
fn packets_that_were_captured_in_part_are_left_out() {
    let messages = adds(1, 9);
    let frames: Vec<_> = [0, 3, 6]
        .map(|at: usize| sent("1A", A, u64::try_from(at).unwrap() + 1, &messages[at..at + 3]).frame(0))
        .to_vec();
    let with = |kept: usize| {
        let cut = (frames[1][..kept].to_vec(), frames[1].len());
        pcap_of(1, &[(frames[0].clone(), frames[0].len()), cut, (frames[2].clone(), frames[2].len())])
    };
    for kept in 0..frames[1].len() {
        let (found, read) = read_of(&with(kept), None).unwrap();
        assert_eq!((found.len(), read.counts.missing, read.cut, read.foreign), (6, 3, 1, 0), "{kept}");
        assert_eq!(read.doubts(), ["1 packets are cut short and left out"]);
    }
    let all: Vec<_> = frames.iter().map(|frame| (frame[..60].to_vec(), frame.len())).collect();
    let error = read_of(&pcap_of(1, &all), None).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("none of its 3 packets has messages of MoldUDP64, and 3 are cut short\n")
    );
}

proptest! {
    /// Whatever is lost, doubled, delayed or damaged: no message is given twice or out of order, and the counts add up.
    #[test]
    fn hostile_lines_do_no_harm(
        packets in proptest::collection::vec((0_u64..200, 1_usize..5, any::<bool>(), proptest::option::of(any::<u64>())), 1..60),
    ) {
        let messages = adds(1, 210);
        let datagrams: Vec<_> = packets.iter().map(|(first, count, is_b, damage)| {
            let at = usize::try_from(*first).unwrap();
            sent("1A", if *is_b { B } else { A }, damage.unwrap_or(first + 1), &messages[at..at + count])
        }).collect();
        if let Ok((found, read)) = read_of(&ethernet(&datagrams), None) {
            prop_assert_eq!(u64::try_from(found.len()).unwrap(), read.counts.delivered);
            prop_assert!(read.counts.missing <= 3 * crate::sequence::JUMP_MAX);
            if packets.iter().all(|packet| packet.3.is_none()) {
                prop_assert!(found.is_sorted_by(|a, b| a[11..19] < b[11..19]));
                prop_assert_eq!(read.implausible, 0);
            }
        }
    }
}
