//! A fenced writer that continues.

use super::{draw, explore, nap};
use crate::{
    layout::{self, KIND_ABANDONED},
    region::Heap,
    stream::{Owner, PublishError, Read, Reader, Segment, Stamp, Writer},
};
use shuttle::thread;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

const CAPACITY: u64 = layout::CAPACITY_BYTES_MIN;
/// Records per writer, all of which fit into the ring.
const COUNT: u64 = 20;
/// Records per lap: two lines each.
const LAP: u64 = CAPACITY / 128;

fn segment(epoch: u64, first_sequence: u64) -> Arc<Heap> {
    let heap = Arc::new(Heap::zeroed(Segment::<Heap>::bytes(CAPACITY)));
    Segment::create(Arc::clone(&heap), CAPACITY, 1, epoch, first_sequence, Owner::default()).unwrap();
    heap
}

fn writer(heap: &Arc<Heap>) -> Writer<Arc<Heap>> {
    Writer::new(open(heap))
}

fn stamp(epoch: u32) -> Stamp {
    Stamp { source: epoch, ..Stamp::default() }
}

fn open(heap: &Arc<Heap>) -> Segment<Arc<Heap>> {
    Segment::open(Arc::clone(heap)).unwrap()
}

/// As the master does it: after the last complete record.
fn next_sequence(heap: &Arc<Heap>) -> u64 {
    Reader::last(open(heap)).map_or_else(|| open(heap).first_sequence(), |last| last.sequence + 1)
}

/// Reads a segment to its end. Returns the number of records, which must be consecutive.
fn read(mut reader: Reader<Arc<Heap>>, epoch: u32, first: u64) -> u64 {
    let (mut payload, mut next) = (Vec::new(), first);
    loop {
        match reader.next(&mut payload) {
            Read::Record(record) => {
                assert_eq!((record.sequence, record.stamp.source), (next, epoch));
                next += 1;
            }
            Read::Nothing => nap(),
            Read::Ended { successor } => {
                assert_eq!(successor, u64::from(epoch) + 1);
                return next - first;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The fenced writer publishes at most the record that it was working on. Readers get all earlier records, and
/// nothing of it enters the next segment.
#[test]
fn shuttle_a_fenced_writer_adds_one_record_at_most() {
    explore(|| {
        let old = segment(1, 0);
        // Only for the assertions; shuttle need not model it.
        let published = Arc::new(AtomicU64::new(0));
        // It is often fenced where its first lap ends, and the first record of that lap counts as overwritten.
        let history = draw(2) * (LAP - draw(COUNT));
        let mut writing = writer(&old);
        (0..history).for_each(|_| _ = writing.publish(&stamp(1), b"old").unwrap());
        let reading: Vec<_> = (0..2).map(|_| Reader::from_now(open(&old))).collect();
        let zombie = {
            let (mut writer, published) = (writing, Arc::clone(&published));
            thread::spawn(move || {
                (0..COUNT).find_map(|_| match writer.publish(&stamp(1), b"old") {
                    Ok(_) => {
                        published.fetch_add(1, Ordering::Relaxed);
                        None
                    }
                    Err(error) => Some((error, writer.publish(&stamp(1), b"old"))),
                })
            })
        };
        let readers: Vec<_> =
            reading.into_iter().map(|reader| thread::spawn(move || read(reader, 1, history))).collect();
        (0..draw(12)).for_each(|_| nap());
        let given_up = open(&old);
        let before = published.load(Ordering::Relaxed);
        given_up.fence(2);
        let fenced = published.load(Ordering::Relaxed);
        let first = next_sequence(&old);
        assert!(first >= history + before, "{first} is repeated: {before} after {history}");
        let new = segment(2, first);
        let mut successor = writer(&new);
        assert_eq!(successor.publish_abandoned(&stamp(2)).unwrap().sequence, first);
        let following = {
            let heap = Arc::clone(&new);
            thread::spawn(move || read(Reader::from_start(open(&heap)), 2, first))
        };
        for _ in 1..COUNT {
            successor.publish(&stamp(2), b"new").unwrap();
        }
        open(&new).fence(3);
        assert_eq!(following.join().unwrap(), COUNT);
        if let Some(refused) = zombie.join().unwrap() {
            let fenced = PublishError::Fenced { successor: 2 };
            assert_eq!(refused, (fenced, Err(fenced)));
        }
        let all = published.load(Ordering::Relaxed);
        assert!(all <= fenced + 1, "{all} published, {fenced} when it was fenced");
        for reader in readers {
            let read = reader.join().unwrap();
            assert!((before..=all).contains(&read), "{read} read, {before} before the fence");
        }
        let read = Reader::from_start(open(&new)).next(&mut Vec::new());
        assert!(matches!(read, Read::Record(record) if record.stamp.kind == KIND_ABANDONED));
    });
}
