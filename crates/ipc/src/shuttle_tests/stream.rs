//! One writer, readers that it laps.

use super::{explore, nap};
use crate::{
    layout,
    region::Heap,
    stream::{Owner, Read, Reader, Segment, Stamp, Writer},
};
use shuttle::thread;
use std::sync::Arc;

const COUNT: u64 = 60;
const CAPACITY: u64 = layout::CAPACITY_BYTES_MIN;

/// Of all lengths that go into the ring, so that laps end with padding of all sizes.
fn payload_of(number: u64) -> Vec<u8> {
    vec![u8::try_from(number).unwrap(); usize::try_from(number * 37 % 449).unwrap()]
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

/// What a reader is given is whole and in order, and what it is not given is told.
#[test]
fn shuttle_lapped_readers_never_see_a_torn_record() {
    explore(|| {
        let heap = Arc::new(Heap::zeroed(Segment::<Heap>::bytes(CAPACITY)));
        let segment = Segment::create(Arc::clone(&heap), CAPACITY, 1, 1, 0, Owner::default()).unwrap();
        let open = || Segment::open(Arc::clone(&heap)).unwrap();
        let readers: Vec<_> = [Reader::from_start(open()), Reader::from_now(open())]
            .into_iter()
            .map(|mut reader| {
                thread::spawn(move || {
                    let (mut payload, mut buffer, mut next) = (Vec::new(), [0; 512], None);
                    while next != Some(COUNT) {
                        // In both ways to take a payload.
                        if next.is_some_and(|next| next % 2 == 0) {
                            let read = reader.next(&mut payload);
                            check(read, &payload, &mut next);
                        } else {
                            let (read, payload) = reader.next_into(&mut buffer);
                            check(read, payload, &mut next);
                        }
                    }
                })
            })
            .collect();
        let mut writer = Writer::new(segment);
        for number in 0..COUNT {
            let stamp = Stamp { cause: number, trigger: !number, ..Stamp::default() };
            writer.publish(&stamp, &payload_of(number)).unwrap();
            if number % 8 == 0 {
                nap();
            }
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}
