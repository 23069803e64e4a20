use super::*;
use crate::wire::quote_of;
use lowlat_node::records::Quote;
use proptest::prelude::*;

mod captures;

fn read(text: &str) -> Result<Ticks, Refusal> {
    Ticks::from_csv(Path::new("ticks.csv"), text.as_bytes())
}

fn error_of(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

const GOOD: &str = "time_ns,instrument,bid,ask,last,bid_size,ask_size
1700000000000000100,600000,10.01,10.02,10.02,300,500
1700000000000000100,IF2312,3500.2,3500.4,3500.2,1,2
1700000000000002100,600000,10,10.01,10.0,100,0
";

#[test]
fn the_quotes_of_an_export_are_ticks() {
    let ticks = read(
        "stream,sequence,instrument,generated_ns,generated_at,record,symbol,bid,ask,last,bid_size,ask_size,price
md,0,7,500,2026-01-02T03:04:05.000000500Z,quote,,10.01,10.02,10.02,300,500,
orders.s0,0,7,600,,order,,,,,,,10.02
md,1,8,900,,quote,,3500.2,3500.4,3500.2,1,2,
",
    )
    .unwrap();
    assert_eq!((ticks.names(), ticks.count()), (&["7".to_owned(), "8".to_owned()][..], 2));
    assert_eq!((ticks.as_slice()[1].after_ns, ticks.as_slice()[1].quote.bid), (400, 35_002_000));
    assert!(error_of("time_ns,instrument,bid,ask,record\n").contains("the column 'record'"));
    assert!(error_of("generated_ns,instrument,bid,ask,record\n1,2,,,order\n").contains("no ticks"));
}

/// Missing quotes, and those of another version, are reported.
#[test]
fn the_quotes_of_a_recording_are_ticks() {
    use lowlat_ipc::stream::{Record, Stamp};
    use lowlat_journal::record::{Options, Recorder};
    use lowlat_node::records::{SCHEMA, kind};
    let folder = tempfile::TempDir::new().unwrap();
    let mut recorder = Recorder::open(folder.path(), Options::default()).unwrap();
    let md = recorder.add_stream("md", 1, "lowlat-trade", Some(0)).unwrap();
    // Sequence, time, schema: two quotes are missing, one is of another version, and the last one's clock is behind.
    for (sequence, generated, schema) in
        [(0, 500, SCHEMA), (1, 900, SCHEMA), (4, 1_100, SCHEMA + 1), (5, 1_200, SCHEMA), (6, 1_150, SCHEMA)]
    {
        let stamp =
            Stamp { kind: kind::QUOTE, schema, instrument: 7, source: 0, generated, trigger: 0, cause: 0 };
        let quote = Quote { bid: 10_000 + i64::try_from(sequence).unwrap(), ask: 10_100, ..Quote::default() };
        let record = Record { position: 128 * sequence, sequence, stamp };
        recorder.record(md, 1, &record, &quote.encode()).unwrap();
    }
    recorder.stop().unwrap();
    let ticks = Ticks::read(folder.path(), &[], None).unwrap();
    assert_eq!(ticks.names(), ["7"]);
    let found: Vec<_> = ticks.as_slice().iter().map(|tick| (tick.after_ns, tick.quote.bid)).collect();
    assert_eq!(found, [(0, 10_000), (400, 10_001), (700, 10_005), (700, 10_006)]);
    let doubts: Vec<_> = ticks.doubts().iter().map(|doubt| doubt.split_once(": ").unwrap().1).collect();
    assert_eq!(
        doubts,
        ["2 quotes are missing in the recording.", "1 quotes of another version of lowlat were left out."]
    );
    let _recorder = lowlat_journal::record::FolderLock::take(folder.path()).unwrap().unwrap();
    let ticks = Ticks::read(folder.path(), &[], None).unwrap();
    assert!(ticks.doubts().last().unwrap().ends_with("is still being recorded; later quotes are left out."));
}

#[test]
fn recorded_ticks_are_read() {
    let ticks = read(GOOD).unwrap();
    assert_eq!(ticks.names(), ["600000", "IF2312"]);
    let [first, second, third] = ticks.as_slice() else { panic!("{ticks:?}") };
    assert_eq!(
        (first.after_ns, first.quote.bid, first.quote.ask, first.quote.bid_size),
        (0, 100_100, 100_200, 300)
    );
    assert_eq!((second.quote.instrument, second.quote.last, second.quote.ask_size), (1, 35_002_000, 2));
    assert_eq!((third.after_ns, third.quote.instrument, third.quote.bid), (2000, 0, 100_000));
    assert_eq!(
        quote_of(&third.quote, 5),
        Quote {
            scheduled_ns: 5,
            bid: 100_000,
            ask: 100_100,
            last: 100_000,
            bid_size: 100,
            ask_size: 0,
            ..Quote::default()
        }
    );
}

#[test]
fn columns_stand_in_any_order_and_some_may_miss() {
    let ticks = read("ask,bid, instrument ,time_s\n2,1,a,0.5\n4,2,b,0.500000001\n").unwrap();
    let [first, second] = ticks.as_slice() else { panic!("{ticks:?}") };
    assert_eq!((first.quote.last, first.quote.bid_size), (15_000, 0));
    assert_eq!(second.after_ns, 1);
}

#[test]
fn errors_name_the_line() {
    let with = |from: &str, to: &str| error_of(&GOOD.replacen(from, to, 1));
    let cases = [
        (with("bid_size", "volume"), "line 1: found the column 'volume', expected some of time"),
        (with("time_ns", "bid"), "line 1: found a second column of that kind, 'bid'"),
        (with("bid,", ""), "line 1: found 'time_ns,instrument,ask,"),
        (error_of(GOOD.split_once('\n').unwrap().1), "line 1: found the column '1700000000000000100'"),
        (
            with("3500.2", "3500.23456"),
            "line 3: found bid '3500.23456', expected a price with up to 4 decimals",
        ),
        (with("3500.2", ""), "line 3: found bid ''"),
        (with(",300,", ",-1,"), "line 2: found bid_size '-1'"),
        (with("IF2312", ""), "line 3: found no instrument"),
        (
            with("1700000000000002100", "1700000000000000099"),
            "line 4: found the time 1700000000000000099, expected a time that is not before",
        ),
        (with("1700000000000002100", "1.5e18"), "line 4: found time '1.5e18'"),
        (with(",100,0", ",100"), "line 4: found 6 columns, expected 7"),
        (error_of("time_ns,instrument,bid,ask\n"), "line 2: found no ticks"),
        (error_of(""), "line 1: found ''"),
    ];
    for (error, expected) in cases {
        assert!(
            error.starts_with("cannot read ticks.csv, ") && error.contains(expected),
            "{error}\nexpected {expected}"
        );
        assert!(error.contains("\nhint: "), "no next step: {error}");
    }
    let bytes = [GOOD.as_bytes(), b"1700000000000002200,\xff\xfe,1,1,1,1,1\n"].concat();
    let error = Ticks::from_csv(Path::new("ticks.csv"), bytes.as_slice()).unwrap_err().to_string();
    assert!(error.contains("line 5: found bytes that are no UTF-8"), "{error}");
    let error = Ticks::read(Path::new("/nonexistent.csv"), &[], None).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nonexistent.csv: "), "{error}");
}

#[test]
fn speeds_are_words() {
    for text in ["x1", "x2.5", "x0.001"] {
        assert_eq!(Speed::parse(text).unwrap().to_string(), text);
    }
    assert_eq!(Speed::parse("10"), Speed::parse("x10"));
    for text in ["", "x", "x0", "x-1", "xinf", "0", "inf", "fast", "max"] {
        assert_eq!(Speed::parse(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn a_speed_keeps_order_and_distances(gaps in proptest::collection::vec(0_u64..1_000_000, 1..50), times in 1_u32..50) {
        let mut lines = vec!["time,instrument,bid,ask".to_owned()];
        let mut at = 5_u64;
        for gap in &gaps {
            at += gap;
            lines.push(format!("{at},i{},1,2", gap % 3));
        }
        let ticks = read(&lines.join("\n")).unwrap();
        let speed = Speed::parse(&format!("x{times}")).unwrap();
        let due: Vec<u64> = ticks.as_slice().iter().map(|tick| speed.due_ns(tick.after_ns)).collect();
        prop_assert_eq!(due.len(), gaps.len());
        prop_assert!(due.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert_eq!(*due.last().unwrap(), gaps[1..].iter().sum::<u64>() / u64::from(times));
        prop_assert!((ticks.duration_s(speed) * 1e9 - *due.last().unwrap() as f64).abs() < 1.0);
    }

    #[test]
    fn hostile_text_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200), has_header in any::<bool>()) {
        let header: &[u8] = if has_header { b"time,instrument,bid,ask\n" } else { b"" };
        let text = [header, bytes.as_slice()].concat();
        Ticks::from_csv(Path::new("ticks.csv"), text.as_slice()).ok();
    }
}
