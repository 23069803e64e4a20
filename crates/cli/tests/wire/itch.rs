//! ITCH 5.0 from a file, and live from an exchange that publishes a file.

use super::{Exchange, free_port, number, run, warnings};
use std::fs;
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
