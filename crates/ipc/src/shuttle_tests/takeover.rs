//! A writer that was given up goes on.

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
/// Records of each writer, which the ring holds.
const COUNT: u64 = 20;

fn segment(epoch: u64, first_sequence: u64) -> Arc<Heap> {
    let heap = Arc::new(Heap::zeroed(Segment::<Heap>::bytes(CAPACITY)));
    Segment::create(Arc::clone(&heap), CAPACITY, 1, epoch, first_sequence, Owner::default()).unwrap();
    heap
}

fn writer(heap: &Arc<Heap>) -> Writer<Arc<Heap>> {
    Writer::new(Segment::open(Arc::clone(heap)).unwrap())
}

fn stamp(epoch: u32) -> Stamp {
    Stamp { source: epoch, ..Stamp::default() }
}

/// Reads a segment to its end: how many records it was given, which follow each other.
fn read(heap: &Arc<Heap>, epoch: u32, first: u64) -> u64 {
    let mut reader = Reader::from_start(Segment::open(Arc::clone(heap)).unwrap());
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

/// The one that was given up publishes at most the record that it was at; everybody is given all that was there before, and
/// nothing of it comes into the segment of the one after it.
#[test]
fn shuttle_a_fenced_writer_adds_one_record_at_most() {
    explore(|| {
        let old = segment(1, 0);
        // For the books alone: shuttle needs not know.
        let published = Arc::new(AtomicU64::new(0));
        let zombie = {
            let (mut writer, published) = (writer(&old), Arc::clone(&published));
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
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let heap = Arc::clone(&old);
                thread::spawn(move || read(&heap, 1, 0))
            })
            .collect();
        (0..draw(12)).for_each(|_| nap());
        let given_up = Segment::open(Arc::clone(&old)).unwrap();
        let before = published.load(Ordering::Relaxed);
        given_up.fence(2);
        let fenced = published.load(Ordering::Relaxed);
        // As the master does: behind what is whole once the fence stands.
        let mut last = Reader::from_start(Segment::open(Arc::clone(&old)).unwrap());
        let mut payload = Vec::new();
        let first = std::iter::from_fn(|| match last.next(&mut payload) {
            Read::Record(record) => Some(record.sequence + 1),
            _ => None,
        })
        .last()
        .unwrap_or(0);
        assert!(first >= before);
        let new = segment(2, first);
        let mut successor = writer(&new);
        assert_eq!(successor.publish_abandoned(&stamp(2)).unwrap().sequence, first);
        let following = {
            let heap = Arc::clone(&new);
            thread::spawn(move || read(&heap, 2, first))
        };
        for _ in 1..COUNT {
            successor.publish(&stamp(2), b"new").unwrap();
        }
        Segment::open(Arc::clone(&new)).unwrap().fence(3);
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
        let mut reader = Reader::from_start(Segment::open(new).unwrap());
        let read = reader.next(&mut payload);
        assert!(matches!(read, Read::Record(record) if record.stamp.kind == KIND_ABANDONED));
    });
}
