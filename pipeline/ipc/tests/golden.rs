//! A stored segment: readers must read it, and writers must produce the same bytes. A change of what readers rely on requires
//! a new layout version; how far a writer clears and claims ahead of its last record is its own affair.
#![cfg(not(lowlat_loom))]

use lowlat_ipc::{
    layout,
    region::{Heap, Region},
    stream::{Owner, Read, Reader, Segment, Stamp, Writer},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    sync::atomic::Ordering,
};

const CAPACITY_BYTES: u64 = 4096;

fn stamp(number: u64) -> Stamp {
    Stamp {
        kind: 0x0102,
        schema: 3,
        instrument: 600_000 + u32::try_from(number).unwrap(),
        source: 5,
        generated: 1_000 * number,
        trigger: 1_000 * number - 7,
        cause: number + 40,
    }
}

/// Records of many lengths, enough to wrap around the end of the ring.
fn payload(number: u64) -> Vec<u8> {
    (0..number * 17 % 449).map(|at| u8::try_from((at * 7 + number) % 256).unwrap()).collect()
}

fn written() -> Arc<Heap> {
    let heap = Arc::new(Heap::zeroed(Segment::<Heap>::bytes(CAPACITY_BYTES)));
    let owner = Owner { pid: 4242, start_ticks: 1_234_567 };
    let segment = Segment::create(Arc::clone(&heap), CAPACITY_BYTES, 9, 3, 100, owner).unwrap();
    let mut writer = Writer::new(segment);
    for number in 1..=20 {
        writer.publish(&stamp(number), &payload(number)).unwrap();
    }
    heap
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/segment-v2")
}

#[test]
fn layout_version_2_is_unchanged() {
    assert_eq!(layout::VERSION, 2, "a new version needs another file here");
    let bytes: Vec<u8> =
        written().words().iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
    if std::env::var_os("LOWLAT_WRITE_GOLDEN").is_some() {
        std::fs::write(golden(), &bytes).unwrap();
    }
    let golden = std::fs::read(golden()).unwrap();
    assert!(bytes == golden, "the writer's bytes have changed under the same version");
}

#[test]
fn the_layout_can_be_read() {
    let golden = std::fs::read(golden()).unwrap();
    let heap = Arc::new(Heap::zeroed(u64::try_from(golden.len()).unwrap()));
    let (words, rest) = golden.as_chunks::<8>();
    assert!(rest.is_empty());
    for (word, bytes) in heap.words().iter().zip(words) {
        word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
    let open = || Segment::open(Arc::clone(&heap)).unwrap();
    let segment = open();
    assert_eq!((segment.stream(), segment.epoch(), segment.first_sequence()), (9, 3, 100));
    assert_eq!(segment.owner(), Owner { pid: 4242, start_ticks: 1_234_567 });
    let mut reader = Reader::from_start(segment);
    let mut found = Vec::new();
    let mut last = None;
    loop {
        match reader.next(&mut found) {
            Read::Record(record) => {
                let number = record.sequence - 99;
                assert_eq!((record.stamp, &found), (stamp(number), &payload(number)));
                last = Some(number);
            }
            Read::Gap { from: 100, .. } => {}
            Read::Nothing => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(last, Some(20));
    assert_eq!(Reader::last(open()).map(|last| last.sequence), Some(119));
}
