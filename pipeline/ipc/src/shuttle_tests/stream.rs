//! One writer, and readers that it laps.

use super::{draw, explore, nap};
use crate::{
    layout,
    region::Heap,
    stream::{Owner, Read, Reader, Segment, Stamp, Writer},
};
use shuttle::thread;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

const COUNT: u64 = 60;
const CAPACITY: u64 = layout::CAPACITY_BYTES_MIN;

/// All lengths that fit into the ring, so that laps end with padding of all sizes.
fn payload_of(number: u64) -> Vec<u8> {
    vec![u8::try_from(number).unwrap(); usize::try_from(number * number * 37 % 449).unwrap()]
}

fn check(read: Read, payload: &[u8], next: &mut Option<u64>) {
    match read {
        Read::Nothing => nap(),
        Read::Gap { from, to } => {
            assert!(next.is_none_or(|next| next == from) && to > from);
            *next = Some(to);
        }
        Read::Record(record) => {
            assert!(next.is_none_or(|next| next == record.sequence), "{record:?}, expected {next:?}");
            let number = record.sequence;
            assert_eq!((record.stamp.cause, record.stamp.trigger), (number, !number));
            assert_eq!(payload, payload_of(number));
            *next = Some(number + 1);
        }
        other => panic!("{other:?}"),
    }
}

/// Records that a reader gets are intact and in order, and missing ones are reported as gaps.
#[test]
fn shuttle_lapped_readers_never_see_a_torn_record() {
    explore(|| {
        let heap = Arc::new(Heap::zeroed(Segment::<Heap>::bytes(CAPACITY)));
        let segment = Segment::create(Arc::clone(&heap), CAPACITY, 1, 1, 0, Owner::default()).unwrap();
        let open = || Segment::open(Arc::clone(&heap)).unwrap();
        let is_done = Arc::new(AtomicBool::new(false));
        let readers: Vec<_> = [Reader::from_start(open()), Reader::from_now(open())]
            .into_iter()
            .map(|mut reader| {
                let is_done = Arc::clone(&is_done);
                thread::spawn(move || {
                    let (mut payload, mut next) = (Vec::new(), None);
                    // A gap is reported with the record after it: the last lost records are not.
                    let is_read = |reader: &Reader<_>| {
                        is_done.load(Ordering::Relaxed) && reader.position() >= reader.segment().tail()
                    };
                    while next != Some(COUNT) && !is_read(&reader) {
                        let read = reader.next(&mut payload);
                        check(read, &payload, &mut next);
                    }
                })
            })
            .collect();
        // Positions as subscribers get them. No thread blocks on the lock, so shuttle need not model it.
        let given = Arc::new(Mutex::new(Vec::new()));
        let late = {
            let (reader, given) = (Reader::from_start(open()), Arc::clone(&given));
            thread::spawn(move || read_late(&reader, &given))
        };
        let mut writer = Writer::new(segment);
        for number in 0..COUNT {
            let stamp = Stamp { cause: number, trigger: !number, ..Stamp::default() };
            let published = writer.publish(&stamp, &payload_of(number)).unwrap();
            given.lock().unwrap().push(published.position);
            if number % 8 == 0 {
                nap();
            }
        }
        is_done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
        late.join().unwrap();
    });
}

/// Reads what is about to be overwritten.
fn read_late(reader: &Reader<Arc<Heap>>, given: &Mutex<Vec<u64>>) {
    let mut payload = Vec::new();
    loop {
        let positions = given.lock().unwrap().clone();
        if u64::try_from(positions.len()).unwrap() == COUNT {
            return;
        }
        let written = positions.last().map_or(0, |last| last + layout::LINE_BYTES);
        let oldest = written.saturating_sub(CAPACITY) + draw(1024);
        let number = positions.partition_point(|position| *position < oldest);
        if let Some(position) = positions.get(number)
            && let Some(record) = reader.read_at(*position, &mut payload)
        {
            check(Read::Record(record), &payload, &mut Some(u64::try_from(number).unwrap()));
        }
        thread::yield_now();
    }
}
