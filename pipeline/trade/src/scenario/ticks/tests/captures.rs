//! Files of ITCH: compressed, cut, with gaps, and with several channels.

use super::*;
use flate2::{Compression, write::GzEncoder};
use std::{collections::BTreeMap, fs, io::Write, process::Command};

/// A message with its length in front.
fn message(kind: u8, locate: u8, time_ns: u64, fields: &[&[u8]]) -> Vec<u8> {
    let body = [&[kind, 0, locate, 0, 0], &time_ns.to_be_bytes()[2..], &fields.concat()].concat();
    [&u16::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat()
}

/// The addition of an order to the book of `XYZ`.
fn add(number: u64, side: u8, price: u32) -> Vec<u8> {
    let fields: [&[u8]; 5] =
        [&number.to_be_bytes(), &[side], &7_u32.to_be_bytes(), b"XYZ     ", &price.to_be_bytes()];
    message(b'A', 1, number * 1000, &fields)
}

/// An offer, then bids that improve: all but the first message make a quote. There is no directory.
fn session(count: u64) -> Vec<Vec<u8>> {
    let bids = (1..count).map(|at| add(at, b'B', 10_000 + u32::try_from(at).unwrap()));
    [add(0, b'S', 900_000)].into_iter().chain(bids).collect()
}

/// A frame: messages in MoldUDP64, UDP, IPv4 and Ethernet.
fn frame(name: &str, group: u8, sequence: u64, messages: &[Vec<u8>]) -> Vec<u8> {
    let mut mold = format!("{name:>10}").into_bytes();
    mold.extend(sequence.to_be_bytes());
    mold.extend(u16::try_from(messages.len()).unwrap().to_be_bytes());
    mold.extend(messages.concat());
    let length = |more: usize| u16::try_from(mold.len() + more).unwrap().to_be_bytes();
    let ip =
        [&[0x45, 0][..], &length(28), &[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 239, 1, 1, group]].concat();
    let udp = [&[4, 210, 0x13, 0x88][..], &length(8), &[0, 0]].concat();
    [&[0; 12][..], &[8, 0], &ip, &udp, &mold].concat()
}

fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes =
        [&0xa1b2_c3d4_u32.to_le_bytes()[..], &[2, 0, 4, 0], &[0; 8], &[0xff; 4], &[1, 0, 0, 0]].concat();
    for frame in frames {
        let length = u32::try_from(frame.len()).unwrap().to_le_bytes();
        bytes.extend([&[0; 8], &length[..], &length, frame].concat());
    }
    bytes
}

/// Frames of two messages each.
fn frames(name: &str, group: u8, first: u64, messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let sequences = (first..).step_by(2);
    sequences.zip(messages.chunks(2)).map(|(sequence, part)| frame(name, group, sequence, part)).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn read_bytes(bytes: &[u8], channel: Option<&str>) -> Result<Ticks, Refusal> {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("ticks");
    fs::write(&path, bytes).unwrap();
    Ticks::read(&path, &[], channel)
}

/// The sentences, without the file's name.
fn said(sentences: &[String]) -> Vec<&str> {
    sentences.iter().map(|said| said.split_once(": ").unwrap().1).collect()
}

#[test]
fn compressed_files_are_read_as_others() {
    let messages = session(20);
    let csv = GOOD.as_bytes().to_vec();
    for bytes in [messages.concat(), pcap(&frames("1A", 1, 1, &messages)), csv] {
        let plain = read_bytes(&bytes, None).unwrap();
        assert_eq!(read_bytes(&gzip(&bytes), None).unwrap(), plain);
        // A file of several parts, as some programs write it.
        let (start, end) = bytes.split_at(bytes.len() / 2);
        assert_eq!(read_bytes(&[gzip(start), gzip(end)].concat(), None).unwrap(), plain);
    }
}

/// The part before a cut is used, and the cut is reported.
#[test]
fn a_cut_is_said_and_costs_what_is_behind_it() {
    let messages = session(20);
    for bytes in [messages.concat(), pcap(&frames("1A", 1, 1, &messages))] {
        let ticks = read_bytes(&bytes[..bytes.len() - 1], None).unwrap();
        let left_out = if bytes[0] == 0 { 1 } else { 2 };
        assert_eq!((ticks.count(), ticks.findings()), (19 - left_out, &[][..]));
        assert!(said(ticks.doubts())[0].starts_with("the file is cut off or damaged behind "));
        let compressed = gzip(&bytes);
        for length in 0..compressed.len() {
            match read_bytes(&compressed[..length], None) {
                Ok(ticks) => {
                    let doubts = said(ticks.doubts());
                    assert!(doubts.last().unwrap().starts_with("the compressed file is damaged ("));
                }
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.starts_with("cannot ") && error.contains("\nhint: "), "{length}: {error}");
                }
            }
        }
        assert!(read_bytes(&compressed[..compressed.len() - 1], None).unwrap().count() == 19);
    }
}

#[test]
fn a_gap_is_a_finding() {
    let messages = session(20);
    let mut frames = frames("1A", 1, 1, &messages);
    assert_eq!(read_bytes(&pcap(&frames), None).unwrap().findings(), &[] as &[String]);
    frames.remove(3);
    let ticks = read_bytes(&pcap(&frames), None).unwrap();
    assert_eq!(
        said(ticks.findings()),
        ["2 messages are missing in 1 gaps (first 7 to 8), so quotes may be wrong."]
    );
    assert_eq!((ticks.count(), ticks.doubts()), (17, &[][..]));
    assert_eq!(ticks.names(), ["XYZ"]);
}

#[test]
fn a_capture_with_several_channels_needs_a_choice() {
    let (one, two) = (session(20), session(11));
    let frames = [frames("1A", 1, 1, &one), frames("2B", 2, 1_000_000, &two)].concat();
    let error = read_bytes(&pcap(&frames), None).unwrap_err().to_string();
    let (first, rest) = error.split_once('\n').unwrap();
    assert!(
        first.starts_with("cannot read ") && first.ends_with(" as ITCH 5.0: it has 2 channels:"),
        "{error}"
    );
    assert_eq!(
        rest,
        "  1A@239.1.1.1:5000: 10 packets, 20 messages
  2B@239.1.1.2:5000: 6 packets, 11 messages
hint: choose one with --channel: SESSION, GROUP, GROUP:PORT, :PORT or SESSION@GROUP:PORT"
    );
    for (channel, expected) in [("1A", 19), ("239.1.1.2", 10)] {
        let ticks = read_bytes(&pcap(&frames), Some(channel)).unwrap();
        assert_eq!((ticks.count(), ticks.findings(), ticks.doubts()), (expected, &[][..], &[][..]));
    }
}

#[test]
fn errors_of_files_have_a_next_step() {
    let messages = session(3);
    let cases = [
        (messages[..1].concat(), "none of its messages makes a quote of these symbols, and 0 are damaged"),
        (pcap(&[]), "none of its 0 packets has messages of MoldUDP64, and 0 are cut short"),
        (pcap(&[])[..20].to_vec(), "the header of the capture is damaged or cut off"),
        (gzip(b"x")[..12].to_vec(), "\nhint: check the file with gzip -t"),
    ];
    for (bytes, expected) in cases {
        let error = read_bytes(&bytes, None).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("\nhint: "), "{error}\nexpected {expected}");
    }
}

/// Packets and messages by session and group, as tshark counts them.
#[test]
fn channels_have_the_packets_that_tshark_counts() {
    let one = session(21);
    let frames =
        [frames("1A", 1, 1, &one), frames("1A", 2, 1, &one[..10]), frames("2B", 3, 9, &one[..7])].concat();
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("three.pcap");
    fs::write(&path, pcap(&frames)).unwrap();
    let fields = ["moldudp64.session", "ip.dst", "udp.dstport", "moldudp64.count"];
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&path).args(["-d", "udp.port==5000,moldudp64", "-T", "fields"]);
    let output = match tshark.args(fields.iter().flat_map(|field| ["-e", field])).output() {
        Ok(output) if output.status.success() => output,
        other => {
            let reason = other.map_or_else(|error| error.to_string(), |output| output.status.to_string());
            eprintln!(
                "skipped: channels_have_the_packets_that_tshark_counts: tshark cannot be run ({reason})"
            );
            return;
        }
    };
    let mut counted = BTreeMap::<_, (u64, u64)>::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let [name, group, port, count] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let of = counted.entry(format!("{}@{group}:{port}", name.trim())).or_default();
        *of = (of.0 + 1, of.1 + count.parse::<u64>().unwrap());
    }
    let error = Ticks::read(&path, &[], None).unwrap_err().to_string();
    let sum = |lines: &[&str]| {
        let (packets, messages) = lines.iter().fold((0, 0), |(packets, messages), line| {
            let (more, with) = counted[*line];
            (packets + more, messages + with)
        });
        format!(": {packets} packets, {messages} messages\n")
    };
    let (a, b, other) = ("1A@239.1.1.1:5000", "1A@239.1.1.2:5000", "2B@239.1.1.3:5000");
    assert!(error.contains(&format!("{a} and 239.1.1.2:5000{}", sum(&[a, b]))), "{error} {counted:?}");
    assert!(error.contains(&format!("{other}{}", sum(&[other]))), "{error} {counted:?}");
}
