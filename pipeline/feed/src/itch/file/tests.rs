//! Files of a writer that shares no code with the readers; layouts as Nasdaq publishes them.

use super::*;
use crate::{
    itch::{Books, LEVELS_MAX, Symbols, parse},
    quotes::FeedQuote,
};
use proptest::prelude::*;

mod captures;

/// A message: type, locate, tracking number 0, time, and its fields.
fn message(kind: u8, locate: u16, time_ns: u64, fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(locate.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(&time_ns.to_be_bytes()[2..]);
    for field in fields {
        bytes.extend(*field);
    }
    bytes
}

fn directory(locate: u16, symbol: &str) -> Vec<u8> {
    let symbol = format!("{symbol:8}");
    message(
        b'R',
        locate,
        1,
        &[
            symbol.as_bytes(),
            b"Q",
            b" ",
            &[0, 0, 0, 100],
            b"N",
            b"C",
            b"  ",
            b"P",
            b"N",
            b" ",
            b"1",
            b"N",
            &[0; 4],
            b"N",
        ],
    )
}

fn add(locate: u16, reference: u64, side: u8, shares: u32, price: u32) -> Vec<u8> {
    let fields: [&[u8]; 5] =
        [&reference.to_be_bytes(), &[side], &shares.to_be_bytes(), b"TEST    ", &price.to_be_bytes()];
    message(b'A', locate, 2, &fields)
}

fn reduce(kind: u8, locate: u16, reference: u64, shares: u32) -> Vec<u8> {
    let (reference, shares) = (reference.to_be_bytes(), shares.to_be_bytes());
    match kind {
        b'D' => message(kind, locate, 3, &[&reference]),
        b'X' => message(kind, locate, 3, &[&reference, &shares]),
        b'E' => message(kind, locate, 3, &[&reference, &shares, &[0; 8]]),
        _ => message(b'C', locate, 3, &[&reference, &shares, &[0; 8], b"Y", &777_u32.to_be_bytes()]),
    }
}

fn replace(locate: u16, old: u64, new: u64, shares: u32, price: u32) -> Vec<u8> {
    let fields: [&[u8]; 4] =
        [&old.to_be_bytes(), &new.to_be_bytes(), &shares.to_be_bytes(), &price.to_be_bytes()];
    message(b'U', locate, 4, &fields)
}

fn day() -> Vec<Vec<u8>> {
    let attributed = [&add(7, 3, b'S', 50, 10_200)[..], b"ABCD"].concat();
    vec![
        message(b'S', 0, 0, &[b"O"]),
        directory(7, "TEST"),
        directory(9, "OTHER"),
        add(7, 1, b'B', 100, 10_000),
        [b"F", &attributed[1..]].concat(),
        add(9, 2, b'B', 1, 5),
        add(7, 4, b'B', 30, 10_000),
        reduce(b'E', 7, 1, 40),
        reduce(b'C', 7, 1, 10),
        reduce(b'X', 7, 4, 10),
        replace(7, 3, 5, 60, 10_100),
        message(b'H', 7, 5, &[b"TEST    T    "]),
        message(b'P', 7, 6, &[&[0; 8], b"B", &[0; 4], b"TEST    ", &10_050_u32.to_be_bytes(), &[0; 8]]),
        reduce(b'D', 7, 5, 0),
        add(7, 6, b'S', 5, 10_300),
        reduce(b'D', 7, 99, 0),
        message(b'S', 0, 9, &[b"C"]),
    ]
}

fn quotes(messages: &[Vec<u8>], symbols: Symbols) -> (Vec<FeedQuote>, u64) {
    let mut books = Books::new(symbols);
    let made = messages.iter().filter_map(|bytes| books.apply(&parse(bytes).unwrap())).collect();
    (made, books.unapplied())
}

#[test]
fn messages_have_the_published_sizes_and_make_quotes() {
    let lengths: Vec<_> = day().iter().map(|bytes| (char::from(bytes[0]), bytes.len())).collect();
    for expected in [
        ('S', 12),
        ('R', 39),
        ('A', 36),
        ('F', 40),
        ('E', 31),
        ('C', 36),
        ('X', 23),
        ('D', 19),
        ('U', 35),
        ('P', 44),
    ] {
        assert!(lengths.contains(&expected), "{expected:?} in {lengths:?}");
    }
    let (made, unapplied) = quotes(&day(), Symbols::First(1));
    let of = |bid: i64, bid_size, ask: i64, ask_size, last| FeedQuote {
        instrument: 0,
        bid_size,
        ask_size,
        bid,
        ask,
        last,
    };
    let expected = [
        of(10_000, 100, 10_200, 50, 10_100),
        of(10_000, 130, 10_200, 50, 10_100),
        of(10_000, 90, 10_200, 50, 10_000),
        of(10_000, 80, 10_200, 50, 777),
        of(10_000, 70, 10_200, 50, 777),
        of(10_000, 70, 10_100, 60, 777),
        of(10_000, 70, 10_100, 60, 10_050),
        of(10_000, 70, 0, 0, 10_050),
        of(10_000, 70, 10_300, 5, 10_050),
    ];
    assert_eq!(made, expected);
    assert_eq!(unapplied, 1, "the deletion of an order that does not exist");
    let both = Symbols::only(&["OTHER".to_owned(), "TEST".to_owned()]).unwrap();
    assert_eq!(quotes(&day(), both).0[0].instrument, 1);
    assert_eq!(Symbols::only(&["TOO LONG A NAME".to_owned()]), None);
}

/// A side without orders is published as none; before both sides were there, nothing is.
#[test]
fn a_side_that_vanishes_withdraws_its_price() {
    let messages = [
        directory(7, "TEST"),
        add(7, 1, b'B', 100, 10_000),
        add(7, 2, b'S', 50, 10_200),
        reduce(b'D', 7, 1, 0),
        add(7, 3, b'S', 20, 10_100),
        reduce(b'X', 7, 2, 50),
        reduce(b'X', 7, 3, 20),
        add(7, 4, b'B', 5, 9_900),
        add(7, 5, b'S', 5, 10_000),
    ];
    let (quotes, unapplied) = quotes(&messages, Symbols::First(1));
    let found: Vec<_> = quotes.iter().map(|of| (of.bid, of.bid_size, of.ask, of.ask_size, of.last)).collect();
    let expected = [
        (10_000, 100, 10_200, 50, 10_100),
        (0, 0, 10_200, 50, 10_100),
        (0, 0, 10_100, 20, 10_100),
        (0, 0, 0, 0, 10_100),
        (9_900, 5, 0, 0, 10_100),
        (9_900, 5, 10_000, 5, 9_950),
    ];
    assert_eq!((found.as_slice(), unapplied), (&expected[..], 0));
}

/// Without a directory, stocks are known by the first message that names their symbol.
#[test]
fn symbols_come_from_orders_and_trades() {
    let attributed = [&add(9, 3, b'S', 50, 10_200)[..], b"ABCD"].concat();
    let price = 10_050_u32.to_be_bytes();
    let trade = message(b'P', 3, 6, &[&[0; 8], b"B", &[0; 4], b"PTRADE  ", &price, &[0; 8]]);
    let cross = message(b'Q', 4, 6, &[&[0; 8], b"QCROSS  ", &price, &[0; 8], b"O"]);
    assert_eq!(cross.len(), 40);
    let messages = [
        trade,
        cross,
        // Of an order that was added before.
        reduce(b'D', 7, 99, 0),
        add(7, 1, b'B', 100, 10_000),
        [b"F", &attributed[1..]].concat(),
        add(3, 10, b'B', 1, 10_000),
        add(3, 11, b'S', 1, 10_100),
    ];
    for symbols in
        [Symbols::First(10), Symbols::only(&["PTRADE", "QCROSS", "TEST"].map(str::to_owned)).unwrap()]
    {
        let mut books = Books::new(symbols);
        let quotes: Vec<_> =
            messages.iter().filter_map(|bytes| books.apply(&parse(bytes).unwrap())).collect();
        assert_eq!(books.symbols().collect::<Vec<_>>(), ["PTRADE", "QCROSS", "TEST"]);
        assert_eq!((quotes.len(), quotes[1].instrument, quotes[1].last), (2, 0, 10_050));
        assert_eq!(books.unapplied(), 0);
    }
    let mut books = Books::new(Symbols::First(1));
    for bytes in &messages {
        books.apply(&parse(bytes).unwrap());
    }
    assert_eq!(books.symbols().collect::<Vec<_>>(), ["PTRADE"]);
}

#[test]
fn books_are_bounded() {
    let orders = (0..u64::try_from(LEVELS_MAX).unwrap() + 10)
        .map(|at| add(7, at, b'B', 1, 1000 + u32::try_from(at).unwrap()));
    let messages: Vec<_> =
        [directory(7, "TEST"), add(7, 1 << 40, b'S', 1, 9000)].into_iter().chain(orders).collect();
    let (quotes, unapplied) = quotes(&messages, Symbols::First(1));
    assert_eq!((quotes.len(), unapplied), (LEVELS_MAX + 10, 10));
}

/// A packet of MoldUDP64 in UDP, IPv4 and Ethernet.
fn packet(sequence: u64, messages: &[Vec<u8>], port: u16) -> Vec<u8> {
    let mut mold = b"SESSION001".to_vec();
    mold.extend(sequence.to_be_bytes());
    mold.extend(u16::try_from(messages.len()).unwrap().to_be_bytes());
    for message in messages {
        mold.extend(u16::try_from(message.len()).unwrap().to_be_bytes());
        mold.extend(message);
    }
    let length = |more: usize| u16::try_from(mold.len() + more).unwrap().to_be_bytes();
    let mut bytes = [0; 12].to_vec();
    bytes.extend([8, 0, 0x45, 0]);
    bytes.extend(length(28));
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 239, 1, 1, 1]);
    bytes.extend(1234_u16.to_be_bytes());
    bytes.extend(port.to_be_bytes());
    bytes.extend(length(8));
    bytes.extend([0, 0]);
    bytes.extend(mold);
    bytes
}

fn packets() -> Vec<Vec<u8>> {
    let day = day();
    let mut made = vec![
        packet(1, &day[..5], 1),
        packet(6, &day[5..10], 1),
        packet(4, &day[3..7], 1),
        packet(11, &day[10..], 1),
    ];
    made.push(vec![0; 14]);
    made
}

fn classic(is_big: bool, magic: u32) -> Vec<u8> {
    let int = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut bytes = int(magic).to_vec();
    bytes.extend(if is_big { [0, 2, 0, 4] } else { [2, 0, 4, 0] });
    bytes.extend([0, 0, 65_535, 1].map(int).as_flattened());
    for packet in packets() {
        let length = u32::try_from(packet.len()).unwrap();
        bytes.extend([1, 2, length, length].map(int).as_flattened());
        bytes.extend(packet);
    }
    bytes
}

fn next_generation() -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let padding = body.len().next_multiple_of(4) - body.len();
        let length = u32::try_from(12 + body.len() + padding).unwrap().to_le_bytes();
        [&kind.to_le_bytes(), &length, body, &vec![0; padding], &length].concat()
    };
    let mut bytes =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
    bytes.extend(block(1, &[1, 0, 0, 0, 0, 0, 0, 0]));
    for packet in packets() {
        let length = u32::try_from(packet.len()).unwrap().to_le_bytes();
        bytes.extend(block(6, &[&[0; 12], &length[..], &length, &packet].concat()));
    }
    bytes
}

fn plain() -> Vec<u8> {
    let with_length =
        |message: &Vec<u8>| [&u16::try_from(message.len()).unwrap().to_be_bytes()[..], message].concat();
    day().iter().flat_map(with_length).collect()
}

fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, Result<RecordedMessages, FileError>) {
    let mut found = Vec::new();
    let result = Messages { bytes, channel: None }.each(&mut |message| {
        found.push(message.to_vec());
        true
    });
    (found, result)
}

#[test]
fn every_kind_of_file_gives_the_same_messages() {
    for (name, bytes) in [
        ("plain", plain()),
        ("little, micro", classic(false, 0xa1b2_c3d4)),
        ("big, micro", classic(true, 0xa1b2_c3d4)),
        ("little, nano", classic(false, 0xa1b2_3c4d)),
        ("big, nano", classic(true, 0xa1b2_3c4d)),
        ("pcapng", next_generation()),
    ] {
        assert!(recorded(&bytes), "{name}");
        let (messages, result) = read(&bytes);
        assert_eq!(messages, day(), "{name}");
        let counts = result.unwrap().counts;
        let expected = if name == "plain" { (0, 0) } else { (4, 4) };
        assert_eq!((counts.doubled, counts.datagrams), expected, "{name}");
        let (part, result) = read(&bytes[..bytes.len() - 1]);
        assert!(result.unwrap().whole_before.is_some() && part.len() >= day().len() - 1, "{name}");
    }
    assert!(!recorded(b"time_ns,instrument") && !recorded(b""));
}

#[test]
fn a_plain_file_may_start_and_end_anywhere() {
    let (bytes, all) = (plain(), day());
    let mut start = 0;
    for at in 0..all.len() {
        let rest = &bytes[start..];
        assert!(recorded(rest), "{at}");
        assert_eq!(read(rest).0, all[at..]);
        start += 2 + all[at].len();
    }
    let mut ends = vec![0];
    ends.extend(all.iter().scan(0, |end, message| {
        *end += 2 + message.len();
        Some(*end)
    }));
    for length in 0..=bytes.len() {
        let whole = ends.iter().filter(|end| **end <= length).count() - 1;
        let (found, result) = read(&bytes[..length]);
        assert_eq!(found, all[..whole], "{length}");
        let is_whole = ends.contains(&length);
        assert_eq!(
            result.unwrap().whole_before,
            (!is_whole).then_some(u64::try_from(whole).unwrap()),
            "{length}"
        );
    }
}

proptest! {
    #[test]
    fn hostile_files_do_no_harm(at in 0_usize..2000, byte: u8, kind in 0_usize..4, cut in 0_usize..2000) {
        let mut bytes = match kind {
            0 => plain(),
            1 => classic(false, 0xa1b2_c3d4),
            2 => classic(true, 0xa1b2_3c4d),
            _ => next_generation(),
        };
        if let Some(place) = bytes.get_mut(at) {
            *place = byte;
        }
        bytes.truncate(bytes.len().saturating_sub(cut));
        let mut books = Books::new(Symbols::First(2));
        for message in read(&bytes).0 {
            if let Ok(message) = parse(&message) {
                books.apply(&message);
            }
        }
    }
}
