//! `lowlat journal` on recordings made by the test.

use lowlat_ipc::stream::{Record, Stamp};
use lowlat_journal::record::{Options, Recorder};
use lowlat_node::records::{Order, PAYLOAD_BYTES, Quote, SCHEMA, Side, kind};
use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    process::{Command, Output},
};
use tempfile::TempDir;

const START_NS: u64 = 1_000_000_000;

/// A quote every millisecond, and an order on every tenth; `change` may replace or remove an order.
fn recording(folder: &Path, change: impl Fn(Order) -> Option<Order>) {
    let mut recorder =
        Recorder::open(folder, Options { file_bytes_max: 1 << 20, ..Options::default() }).unwrap();
    let md = recorder.add_stream("md", 1, "lowlat-trade", Some(0)).unwrap();
    let orders = recorder.add_stream("orders.alpha", 2, "lowlat-trade", Some(0)).unwrap();
    let mut sequence = 0;
    for at in 0..200_u64 {
        let generated = START_NS + at * 1_000_000;
        let quote = Quote {
            scheduled_ns: generated,
            bid: 1_234_500,
            ask: 1_234_600,
            bid_size: 3,
            ..Quote::default()
        };
        put(
            &mut recorder,
            md,
            at,
            Stamp { kind: kind::QUOTE, instrument: 7, generated, trigger: generated, ..stamp() },
            &quote.encode(),
        );
        if at % 10 == 0 {
            let order = Order {
                number: at / 10 + 1,
                scheduled_ns: generated,
                price: 1_234_600,
                quantity: 5,
                side: Side::Sell,
                ..Order::default()
            };
            if let Some(order) = change(order) {
                let stamp = Stamp {
                    kind: kind::ORDER,
                    instrument: 7,
                    generated: generated + 2_000 + at,
                    trigger: generated,
                    cause: at,
                    ..stamp()
                };
                put(&mut recorder, orders, sequence, stamp, &order.encode());
                sequence += 1;
            }
        }
    }
    recorder.stop().unwrap();
}

fn stamp() -> Stamp {
    Stamp { schema: SCHEMA, ..Stamp::default() }
}

fn put(recorder: &mut Recorder, stream: u32, sequence: u64, stamp: Stamp, payload: &[u8; PAYLOAD_BYTES]) {
    recorder.record(stream, 1, &Record { position: 128 * sequence, sequence, stamp }, payload).unwrap();
}

fn lowlat(arguments: &[&str]) -> Output {
    let mut command = Command::new(crate::common::binary());
    command.arg("journal").args(arguments).env("NO_COLOR", "1").env("COLUMNS", "80").output().unwrap()
}

fn text(output: &Output) -> (Option<i32>, String, String) {
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), words(&output.stdout), words(&output.stderr))
}

#[test]
fn an_intact_recording_is_listed_verified_and_shown() {
    let folder = TempDir::new().unwrap();
    recording(folder.path(), Some);
    let dir = folder.path().to_str().unwrap();
    let (code, out, _) = text(&lowlat(&["ls", dir]));
    assert_eq!(code, Some(0));
    assert!(out.contains("220 records of 2 streams in 1 file") && out.contains("orders.alpha"), "{out}");
    let (code, out, _) = text(&lowlat(&["verify", dir]));
    assert_eq!(code, Some(0));
    assert!(out.contains("Every byte is intact."), "{out}");
    let (code, out, _) = text(&lowlat(&["tail", dir, "-n", "3"]));
    assert_eq!((code, out.lines().count()), (Some(0), 3));
    assert!(out.contains("md 199") && out.contains("bid=123.4500"), "{out}");
    let (_, out, _) = text(&lowlat(&["tail", dir, "-n", "1", "--stream", "orders.*", "--json"]));
    let line: serde_json::Value = serde_json::from_str(out.trim()).unwrap();
    assert_eq!((&line["sequence"], &line["payload"]["side"]), (&19.into(), &"sell".into()));
    let (code, out, talk) = text(&lowlat(&["replay", dir, "--speed", "max", "--since", "1100000000"]));
    assert_eq!((code, out.lines().count()), (Some(0), 110));
    assert!(talk.contains("replayed 110 records"), "{talk}");
    let (code, _, talk) = text(&lowlat(&["tail", dir, "--stream", "nosuch"]));
    assert_eq!(code, Some(2));
    assert!(talk.contains("its streams: md, orders.alpha"), "{talk}");
}

#[test]
fn damage_is_reported_with_its_offset_and_the_remaining_records_are_read() {
    let folder = TempDir::new().unwrap();
    recording(folder.path(), Some);
    let dir = folder.path().to_str().unwrap();
    let file = folder.path().join("00000001.journal");
    let mut bytes = fs::read(&file).unwrap();
    // The price of one quote.
    let at = bytes.windows(8).position(|bytes| bytes == 1_234_500_u64.to_le_bytes()).unwrap();
    bytes[at] ^= 4;
    fs::write(&file, &bytes).unwrap();
    let (code, out, _) = text(&lowlat(&["verify", dir]));
    assert_eq!(code, Some(1));
    assert!(out.contains("00000001.journal, byte ") && out.contains(" records are still readable."), "{out}");
    let (code, out, _) = text(&lowlat(&["verify", dir, "--json"]));
    assert_eq!(code, Some(1));
    let known: serde_json::Value = serde_json::from_str(&out).unwrap();
    let offset = known["damages"][0]["offset"].as_u64().unwrap();
    assert!((offset..offset + 128).contains(&(at as u64)), "{offset}, {at}");
    let (code, out, _) = text(&lowlat(&["export", dir]));
    assert_eq!(code, Some(1));
    assert!(out.lines().count() > 20, "the orders are listed: {out}");
}

/// Orders in as many small files as they need; returns the number of files.
fn many_files(folder: &Path) -> u64 {
    let options = Options { file_bytes_max: 16 << 10, block_bytes: 4 << 10, ..Options::default() };
    let mut recorder = Recorder::open(folder, options).unwrap();
    let orders = recorder.add_stream("orders.alpha", 2, "lowlat-trade", Some(0)).unwrap();
    for sequence in 0..1_000 {
        let stamp = Stamp { kind: kind::ORDER, generated: START_NS + sequence, ..stamp() };
        put(&mut recorder, orders, sequence, stamp, &Order::default().encode());
    }
    recorder.stop().unwrap().written.files
}

#[test]
fn tail_distinguishes_missing_unreadable_and_useless_files() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().to_str().unwrap();
    let files = many_files(folder.path());
    assert!(files > 6, "{files}");
    let file = |number: u64| folder.path().join(format!("{number:08}.journal"));
    fs::remove_file(file(2)).unwrap();
    // It links to itself, so that even root cannot open it.
    fs::remove_file(file(4)).unwrap();
    symlink(file(4), file(4)).unwrap();
    fs::write(file(6), "no journal").unwrap();
    // The end of the file before it shows that it existed.
    fs::remove_file(file(files)).unwrap();
    let (code, out, _) = text(&lowlat(&["tail", dir, "-n", "1000"]));
    let expected = [
        (2, "the file is missing"),
        (4, "cannot be read: "),
        (6, "no head of a data file"),
        (files, "the file is missing"),
    ];
    let told: Vec<&str> = out.lines().filter(|line| line.contains(".journal at byte 0: ")).collect();
    assert_eq!((code, told.len()), (Some(1), expected.len()), "{out}");
    for (line, (number, words)) in told.into_iter().zip(expected) {
        assert!(line.contains(&format!("{number:08}.journal")) && line.contains(words), "{line}");
    }
    // Earlier damage is reported with the last records, and also with `--lines 0 --follow`.
    for (count, more) in [("1", &[][..]), ("0", &["--follow"])] {
        let (code, out, talk) = text(&lowlat(&[&["tail", dir, "-n", count, "--json"][..], more].concat()));
        let told: Vec<_> = out.lines().filter(|line| line.contains("file_missing")).collect();
        assert_eq!((code, told.len()), (Some(1), 1), "{out}");
        assert!(told[0].contains(&format!("{files:08}.journal")), "{out}");
        assert_eq!(talk.contains("the recording has ended"), !more.is_empty(), "{talk}");
    }
    // A directory whose files are all unreadable is not an empty recording.
    for number in 1..files {
        fs::remove_file(file(number)).ok();
        symlink(file(number), file(number)).unwrap();
    }
    let (code, _, talk) = text(&lowlat(&["tail", dir]));
    assert_eq!(code, Some(2));
    assert!(talk.contains("00000001.journal") && talk.contains("check their permissions"), "{talk}");
}

#[test]
fn exports_hold_every_record_with_its_fields() {
    let folder = TempDir::new().unwrap();
    recording(folder.path(), Some);
    let dir = folder.path().to_str().unwrap();
    for name in ["a.csv", "a.parquet"] {
        let file = folder.path().join(name);
        let (code, _, talk) = text(&lowlat(&["export", dir, "--out", file.to_str().unwrap()]));
        assert_eq!(code, Some(0), "{talk}");
        assert!(talk.contains("exported 220 records, 220 of them decoded"), "{talk}");
    }
    let csv = fs::read_to_string(folder.path().join("a.csv")).unwrap();
    assert_eq!(csv.lines().count(), 221);
    assert!(csv.contains(",123.4600,"), "{csv}");
    assert!(fs::read(folder.path().join("a.parquet")).unwrap().starts_with(b"PAR1"));
    let (code, ..) = text(&lowlat(&["export", dir, "--out", folder.path().join("a.xyz").to_str().unwrap()]));
    assert_eq!(code, Some(2));
}

/// Missing records may belong to any selection, so every selection reports them.
#[test]
fn a_selection_hides_neither_gaps_nor_records_of_other_schemas() {
    let folder = TempDir::new().unwrap();
    let mut recorder = Recorder::open(folder.path(), Options::default()).unwrap();
    let md = recorder.add_stream("md", 1, "lowlat-trade", Some(0)).unwrap();
    let mine = recorder.add_stream("mine", 2, "mine", Some(0)).unwrap();
    // A quote every millisecond. Ten are missing.
    for at in (0..40).chain(50..100) {
        let generated = START_NS + at * 1_000_000;
        let stamp = Stamp { kind: kind::QUOTE, instrument: 7, generated, ..stamp() };
        put(&mut recorder, md, at, stamp, &Quote::default().encode());
    }
    // Decoded as an answer of td it would be of instrument 0.
    let stamp = Stamp { kind: kind::ANSWER, instrument: 5, generated: START_NS + 60_000_000, ..stamp() };
    put(&mut recorder, mine, 0, stamp, &[0; PAYLOAD_BYTES]);
    recorder.stop().unwrap();
    let dir = folder.path().to_str().unwrap();
    let at = |ms: u64| (START_NS + ms * 1_000_000).to_string();
    let (code, out, talk) = text(&lowlat(&["export", dir, "--since", &at(45), "--instrument", "5"]));
    assert_eq!((code, out.lines().count()), (Some(1), 2), "{out}{talk}");
    assert!(talk.contains("md: 10 records, 40 to 49: ") && talk.contains("missing 10"), "{talk}");
    let (code, out, _) = text(&lowlat(&["tail", dir, "--since", &at(42), "--until", &at(43)]));
    assert_eq!((code, out.lines().count()), (Some(1), 1), "{out}");
    assert!(out.contains("md: 10 records, 40 to 49: "), "{out}");
    // Records follow the gap before this time, so that none of this time is missing.
    for command in ["export", "tail"] {
        let (code, out, talk) = text(&lowlat(&[command, dir, "--since", &at(51), "--kind", "quote"]));
        assert_eq!(code, Some(0), "{out}{talk}");
    }
}

#[test]
fn a_diff_lists_the_orders_that_differ() {
    let (left, right) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    recording(left.path(), Some);
    recording(right.path(), |order| match order.number {
        3 => None,
        4 => Some(Order { price: 1_000_000, ..order }),
        20 => Some(Order { number: 21, ..order }),
        _ => Some(order),
    });
    let (left, right) = (left.path().to_str().unwrap(), right.path().to_str().unwrap());
    let (code, out, _) = text(&lowlat(&["diff", left, left]));
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("Both have the same orders"), "{out}");
    let (code, out, _) = text(&lowlat(&["diff", left, right]));
    assert_eq!(code, Some(1));
    assert!(out.contains("Only on the left: 2") && out.contains("Only on the right: 1"), "{out}");
    assert!(out.contains("price 123.4600 -> 100.0000"), "{out}");
}

#[test]
fn a_directory_without_a_recording_is_a_distinct_error() {
    let folder = TempDir::new().unwrap();
    let (code, _, talk) = text(&lowlat(&["ls", folder.path().to_str().unwrap()]));
    assert_eq!(code, Some(2));
    assert!(talk.contains("holds no recording"), "{talk}");
}
