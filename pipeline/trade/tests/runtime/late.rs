//! Nodes that start before the head of a stream: each wanted record comes once and in order, and what is not kept is
//! lost and counted.

use crate::master_thread::{MasterThread, join, reads, until, writes};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{Event, Keys, Node, Overrun, ReadsFrom, Wait};
use std::{thread, time::Duration};

/// Instruments of the stream; the reader wants the first one.
const INSTRUMENTS: u32 = 2;
/// Records published while the reader joins, however long that takes: with 300 before and 107 after, fewer than the 512
/// that the stream keeps.
const WHILE_JOINING_MAX: u32 = 64;

fn publish(writer: &mut Node, count: u32) {
    for _ in 0..count {
        let instrument = u32::try_from(writer.published() % u64::from(INSTRUMENTS)).unwrap();
        let stamp = Stamp { instrument, ..Stamp::default() };
        writer.publisher().publish(&stamp, b"quote").unwrap();
    }
}

/// Sequences as a reader got them, and the records that it lost.
#[derive(Default)]
struct Seen {
    sequences: Vec<u64>,
    lost: u64,
}

impl Seen {
    fn poll(&mut self, reader: &mut Node) {
        reader.poll(&mut |_, event| match event {
            Event::Record { record, .. } => self.sequences.push(record.sequence),
            Event::Lost { count, .. } => self.lost += count,
            _ => {}
        });
    }
}

/// Joins with a stream that holds `before` records, while more are published; returns what the reader saw of all.
fn late(before: u32, from: ReadsFrom, overrun: Overrun, wait: Wait, keys: Keys) -> (Seen, u64) {
    let master = MasterThread::start(|_| ());
    let mut writer = master.join(&join("writer", writes("quotes", INSTRUMENTS), Vec::new()));
    master.begin();
    publish(&mut writer, before);
    let asked = reads("quotes", keys).with(overrun).starting(from);
    let mut asked = join("reader", None, vec![asked]);
    asked.wait = wait;
    let mut reader = thread::scope(|scope| {
        let joining = scope.spawn(|| master.join(&asked));
        let mut left = WHILE_JOINING_MAX;
        while !joining.is_finished() {
            writer.poll(&mut |_, _| ());
            publish(&mut writer, left.min(1));
            left = left.saturating_sub(1);
            thread::sleep(Duration::from_micros(50));
        }
        joining.join().unwrap()
    });
    // More than a ring holds, before the reader polls at all.
    publish(&mut writer, 100);
    let mut seen = Seen::default();
    for _ in 0..20 {
        publish(&mut writer, 7);
        seen.poll(&mut reader);
    }
    let last = writer.published();
    until("the reader has all", || {
        seen.poll(&mut reader);
        seen.sequences.last().is_some_and(|seen| seen + u64::from(INSTRUMENTS) > last)
    });
    (seen, last)
}

#[test]
fn the_oldest_kept_record_comes_first_and_then_each_once() {
    let policies = [Overrun::Gap, Overrun::Credit, Overrun::Evict { behind_max: 1 << 12 }];
    for (overrun, wait) in
        policies.map(|policy| (policy, Wait::Parked)).into_iter().chain([(Overrun::Gap, Wait::Fast)])
    {
        let (seen, last) = late(500, ReadsFrom::Oldest, overrun, wait, Keys::Only(vec![0]));
        // Its ring has 512 records.
        assert!(seen.sequences[0] <= last - 300, "{overrun:?} {wait:?}: {} {last}", seen.sequences[0]);
        let expected: Vec<u64> = (seen.sequences[0]..=last).step_by(2).collect();
        assert_eq!((seen.lost, seen.sequences), (0, expected), "{overrun:?} {wait:?}");
    }
}

#[test]
fn of_a_ring_that_was_overwritten_the_kept_ones_come() {
    let (seen, last) = late(5_000, ReadsFrom::Oldest, Overrun::Gap, Wait::Parked, Keys::All);
    let first = seen.sequences[0];
    assert!(1 < first && first < 5_000, "{first}");
    assert_eq!((seen.lost, seen.sequences), (0, (first..=last).collect()));
}

#[test]
fn after_a_sequence_follows_the_next_one_or_what_is_lost() {
    let (seen, last) = late(300, ReadsFrom::After(120), Overrun::Gap, Wait::Parked, Keys::All);
    assert_eq!((seen.lost, seen.sequences), (0, (121..=last).collect()));
    let (seen, last) = late(5_000, ReadsFrom::After(120), Overrun::Gap, Wait::Parked, Keys::All);
    let first = seen.sequences[0];
    assert_eq!((seen.lost, seen.sequences), (first - 121, (first..=last).collect()));
}

/// The latest record of each instrument, whichever that is, and none twice.
#[test]
fn a_reader_of_the_latest_starts_with_the_oldest_too() {
    let (seen, last) = late(300, ReadsFrom::Oldest, Overrun::Conflate, Wait::Parked, Keys::Only(vec![0]));
    assert!(seen.sequences.is_sorted_by(|one, next| one < next) && seen.lost == 0, "{:?}", seen.sequences);
    assert_eq!(seen.sequences[..150], (1..=300).step_by(2).collect::<Vec<u64>>());
    assert!(last - seen.sequences.last().unwrap() < 2);
}

#[test]
fn without_a_start_only_later_records_come() {
    let (seen, last) = late(300, ReadsFrom::Head, Overrun::Gap, Wait::Parked, Keys::All);
    assert!(seen.sequences[0] > 300, "{:?}", seen.sequences.first());
    assert!(seen.sequences.len() as u64 + seen.lost >= last - seen.sequences[0]);
}
