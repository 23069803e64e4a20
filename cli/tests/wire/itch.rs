//! ITCH 5.0 from a file, and live from an exchange that publishes a file.

use super::{Exchange, free_port, lowlat, number, run, warnings};
use flate2::{Compression, write::GzEncoder};
use std::{fs, io::Write};
use tempfile::TempDir;

/// A message of ITCH behind its length, as in Nasdaq's files: type, stock, tracking number, time, and its fields.
fn message(kind: u8, locate: u8, time_us: u64, fields: &[&[u8]]) -> Vec<u8> {
    let time = (34_200_000_000_000 + time_us * 1000).to_be_bytes();
    let body = [&[kind, 0, locate, 0, 0], &time[2..], &fields.concat()].concat();
    [&u16::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat()
}

/// Three stocks, and 300 orders of each in turn, a millisecond apart: the best bid improves with each one.
fn day() -> Vec<u8> {
    let mut bytes = message(b'S', 0, 0, &[b"O"]);
    for (locate, symbol) in [(1, b"AAA     "), (2, b"BBB     "), (3, b"CCC     ")] {
        bytes.extend(message(b'R', locate, 0, &[symbol, &[b' '; 20]]));
        let reference = (1_000_000 + u64::from(locate)).to_be_bytes();
        let fields: [&[u8]; 4] = [&reference, b"S\0\0\0\x05", symbol, &900_000_u32.to_be_bytes()];
        bytes.extend(message(b'A', locate, 0, &fields));
    }
    for at in 0..300_u64 {
        for (locate, symbol) in [(1, b"AAA     "), (2, b"BBB     "), (3, b"CCC     ")] {
            let reference = (at * 10 + u64::from(locate)).to_be_bytes();
            let price = (100_000 + u32::try_from(at).unwrap() * 100).to_be_bytes();
            let fields: [&[u8]; 4] = [&reference, b"B\0\0\0\x07", symbol, &price];
            bytes.extend(message(b'A', locate, 1000 * (at + 1), &fields));
        }
    }
    bytes.extend(message(b'S', 0, 400_000, &[b"C"]));
    bytes
}

#[test]
fn a_file_of_itch_is_replayed_and_published() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("day.itch");
    fs::write(&path, day()).unwrap();
    let path = path.to_str().unwrap();
    let (document, output) = run(None, &["--ticks", path, "--symbols", "CCC,AAA"]);
    assert!(output.status.success(), "{}", warnings(&document));
    assert_eq!(
        (number(&document, "/ticks_published"), number(&document, "/parameters/strategies")),
        (600, 2)
    );

    let feed = format!("itch:127.0.0.1:{}", free_port());
    let exchange = Exchange::start(None, "127.0.0.1", &["--feed", &feed, "--itch", path]);
    let gateway = exchange.gateway.clone();
    let asked = ["--strategies", "2", "--feed", &feed, "--symbols", "CCC,AAA", "--gateway", &gateway];
    let (document, _) = run(None, &[&asked[..], &["--duration", "30s"]].concat());
    let (exchange, status) = exchange.end();
    assert!(status.success());
    assert_eq!(number(&exchange, "/published"), 908);
    let feed = |name: &str| number(&document, &format!("/wire/feed/{name}"));
    assert_eq!(feed("received") + feed("missing"), 908);
    if feed("missing") == 0 {
        assert_eq!((feed("published"), feed("unapplied")), (600, 0), "{}", warnings(&document));
    }
    assert_eq!(number(&exchange, "/orders"), number(&document, "/wire/gateway/sent"));
    assert_eq!(number(&exchange, "/quote_to_order/count"), number(&exchange, "/orders"));
}

/// A capture of the day: packets of ten messages to a group, without those at `lost`. The last group has another session.
fn capture(groups: &[u8], lost: &[usize]) -> Vec<u8> {
    let day = day();
    let (mut rest, mut messages) = (day.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (message, behind) = rest.split_at(2 + usize::from(rest[1]));
        messages.push(message);
        rest = behind;
    }
    let mut bytes =
        [&0xa1b2_c3d4_u32.to_le_bytes()[..], &[2, 0, 4, 0], &[0; 8], &[0xff; 4], &[1, 0, 0, 0]].concat();
    for (at, part) in messages.chunks(10).enumerate().filter(|(at, _)| !lost.contains(at)) {
        for group in groups {
            let sequence = u64::try_from(at * 10 + 1).unwrap().to_be_bytes();
            let count = u16::try_from(part.len()).unwrap().to_be_bytes();
            let session = if *group == 9 { b"000000002B" } else { b"000000001A" };
            let mold = [&session[..], &sequence, &count, &part.concat()].concat();
            let length = |more: usize| u16::try_from(mold.len() + more).unwrap().to_be_bytes();
            let to = [10, 0, 0, 1, 239, 1, 1, *group, 4, 210, 19, 136];
            let head = [&[0; 12][..], &[8, 0, 0x45, 0], &length(28), &[0, 0, 0, 0, 64, 17, 0, 0], &to];
            let frame = [&head.concat()[..], &length(8), &[0, 0], &mold].concat();
            let size = u32::try_from(frame.len()).unwrap().to_le_bytes();
            bytes.extend([&[0; 8][..], &size, &size, &frame].concat());
        }
    }
    bytes
}

#[test]
fn a_gap_in_a_capture_ends_with_findings_and_channels_are_chosen() {
    let folder = TempDir::new().unwrap();
    let with = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let fast = ["--speed", "x1000", "--symbols", "CCC,AAA"];
    let replay = |path: &str, more: &[&str]| run(None, &[&["--ticks", path], &fast[..], more].concat());

    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&capture(&[1, 2], &[])).unwrap();
    let (document, output) = replay(&with("lines.pcap.gz", &packed.finish().unwrap()), &[]);
    assert!(output.status.success(), "{}", warnings(&document));
    assert_eq!(number(&document, "/ticks_published"), 600);
    assert!(warnings(&document).contains(": 908 messages arrived more than once; each is used once."));

    let (document, output) = replay(&with("gap.pcap", &capture(&[1], &[7, 8])), &[]);
    assert_eq!(output.status.code(), Some(1));
    let finding = document["findings"][0].as_str().unwrap();
    assert!(
        finding.ends_with("20 messages are missing in 1 gaps (first 71 to 90), so quotes may be wrong."),
        "{finding}"
    );

    let path = with("two.pcap", &capture(&[1, 9], &[]));
    let output = lowlat(None, &["pipeline", "run", "--ticks", &path]).output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert!(
        talk.contains("it has 2 channels:") && talk.contains("hint: choose one with --channel"),
        "{talk}"
    );
    let (document, output) = replay(&path, &["--channel", "000000002B"]);
    assert!(output.status.success(), "{}", warnings(&document));
    assert_eq!(number(&document, "/ticks_published"), 600);

    let feed = format!("itch:127.0.0.1:{}", free_port());
    let asked =
        ["pipeline", "exchange", "--feed", &feed, "--speed", "x1000", "--itch", &path, "--channel", ":5000"];
    let output = lowlat(None, &asked).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "both have this port");
    let asked = [&asked[..9], &["239.1.1.9"]].concat();
    let output = lowlat(None, &asked).output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(number(&document, "/published"), 908);
}
