//! Each state of a stream in one test; then many random ones, and every order of few steps.

use super::*;
use crate::{layout, region::Heap};
use std::sync::Arc;

fn segment(capacity_bytes: u64) -> Arc<Heap> {
    let heap = Arc::new(Heap::zeroed(Segment::<Heap>::bytes(capacity_bytes)));
    let owner = Owner { pid: 7, start_ticks: 99 };
    Segment::create(Arc::clone(&heap), capacity_bytes, 1, 1, 0, owner).unwrap();
    heap
}

fn writer(heap: &Arc<Heap>) -> Writer<Arc<Heap>> {
    Writer::new(Segment::open(Arc::clone(heap)).unwrap())
}

fn reader(heap: &Arc<Heap>) -> Reader<Arc<Heap>> {
    Reader::from_start(Segment::open(Arc::clone(heap)).unwrap())
}

#[cfg(lowlat_loom)]
mod loom_tests {
    use super::*;
    use loom::thread;

    /// A ring of four lines, a writer that laps the reader, and a reader that must never return a torn record.
    ///
    /// The writer adds two records to the three present: the first claims the line of the oldest and clears its
    /// commit, the second overwrites it. Lines are not prepared ahead (see the next test), because that would
    /// lap the reader before it starts. To bound the model: three preemptions, and two looks in each of the
    /// reader's two turns.
    #[test]
    fn loom_a_lapped_reader_never_sees_a_torn_record() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let heap = segment(layout::CAPACITY_BYTES_MIN);
            let mut writer = writer(&heap);
            let mut publish = move |number| {
                let stamp = Stamp { cause: number, trigger: number, ..Stamp::default() };
                writer.publish_only(&stamp, &[]).unwrap();
            };
            (1..=3).for_each(&mut publish);
            let mut reader = reader(&heap);
            let writing = thread::spawn(move || (4..=5).for_each(publish));
            let mut payload = Vec::new();
            let mut last = 0;
            for _ in 0..2 {
                if let Read::Record(record) = reader.next(&mut payload) {
                    assert_eq!(record.stamp.cause, record.stamp.trigger, "both of one record");
                    assert_eq!(record.stamp.cause, record.sequence + 1);
                    assert!(record.stamp.cause > last);
                    last = record.stamp.cause;
                }
            }
            writing.join().unwrap();
        });
    }

    /// A writer clears the lines of future records while a reader still reads there: the old record is intact
    /// or lost, but never has a cleared word.
    #[test]
    fn loom_lines_cleared_ahead_are_never_read() {
        const CAPACITY: u64 = 1024;
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let heap = segment(CAPACITY);
            let mut writer = writer(&heap);
            // Six records of two lines and one of one; another of two, and the second line of the first record
            // is cleared.
            let mut publish = move |payload: &[u8]| writer.publish(&Stamp::default(), payload).unwrap();
            for _ in 0..6 {
                publish(&[7; 8]);
            }
            publish(&[]);
            let reader = reader(&heap);
            let mut payload = Vec::new();
            assert!(reader.read_at(0, &mut payload).is_some(), "not yet overwritten");
            let writing = thread::spawn(move || publish(&[7; 8]));
            if reader.read_at(0, &mut payload).is_some() {
                assert_eq!(payload, [7; 8]);
            }
            writing.join().unwrap();
        });
    }
}

#[cfg(not(lowlat_loom))]
mod std_tests {
    use super::*;
    use crate::{atomics::Ordering, layout::header, region::Region};
    use proptest::prelude::*;
    use std::thread;

    const CAPACITY: u64 = 4096;

    fn stamp(instrument: u32) -> Stamp {
        Stamp { kind: 3, schema: 2, instrument, source: 9, generated: 11, trigger: 12, cause: 13 }
    }

    fn publish(writer: &mut Writer<Arc<Heap>>, count: u64, payload: &[u8]) {
        for _ in 0..count {
            writer.publish(&stamp(1), payload).unwrap();
        }
    }

    fn records(reader: &mut Reader<Arc<Heap>>) -> Vec<Read> {
        let mut payload = Vec::new();
        std::iter::from_fn(|| Some(reader.next(&mut payload)).filter(|read| *read != Read::Nothing))
            .take(1000)
            .collect()
    }

    fn sequences(reads: &[Read]) -> Vec<u64> {
        reads
            .iter()
            .filter_map(|read| if let Read::Record(r) = read { Some(r.sequence) } else { None })
            .collect()
    }

    #[test]
    fn empty() {
        let heap = segment(CAPACITY);
        assert_eq!(reader(&heap).next(&mut Vec::new()), Read::Nothing);
    }

    #[test]
    fn one_record_is_read_intact() {
        let heap = segment(CAPACITY);
        let published = writer(&heap).publish(&stamp(5), b"hello, world").unwrap();
        let (mut reader, mut payload) = (reader(&heap), Vec::new());
        let Read::Record(record) = reader.next(&mut payload) else { panic!("no record") };
        assert_eq!((record.stamp, record.sequence, record.position), (stamp(5), 0, published.position));
        assert_eq!(payload, b"hello, world");
        assert_eq!(reader.next(&mut payload), Read::Nothing);
        assert_eq!(reader.read_at(published.position, &mut payload), Some(record));
        assert_eq!(reader.read_at(published.position + 64, &mut payload), None);
        assert_eq!(reader.read_at(1, &mut payload), None);
    }

    #[test]
    fn payloads_of_any_length_are_read_whole() {
        let heap = segment(CAPACITY);
        let (mut writer, mut found) = (writer(&heap), Vec::new());
        for length in (0..40).chain((0..40).rev()) {
            let mut reader = Reader::from_now(Segment::open(Arc::clone(&heap)).unwrap());
            let payload: Vec<u8> = (1..=length).collect();
            writer.publish(&stamp(1), &payload).unwrap();
            assert!(matches!(reader.next(&mut found), Read::Record(_)));
            assert_eq!(found, payload);
            assert_eq!(reader.next(&mut found), Read::Nothing);
        }
    }

    #[test]
    fn an_uncommitted_record_is_not_seen() {
        let heap = segment(CAPACITY);
        let mut writer = writer(&heap);
        writer.publish(&stamp(1), b"whole").unwrap();
        // A second record, except for its commit.
        let at = usize::try_from((layout::HEADER_BYTES + 128) / 8).unwrap();
        heap.words()[at + layout::record::SHAPE].store(layout::pack_shape(8, 3, 0), Ordering::Relaxed);
        heap.words()[at + layout::record::WORDS].store(77, Ordering::Relaxed);
        let mut reader = reader(&heap);
        assert_eq!(sequences(&records(&mut reader)), [0]);
        assert_eq!(reader.next(&mut Vec::new()), Read::Nothing);
    }

    #[test]
    fn the_end_of_the_ring_is_padded() {
        let heap = segment(CAPACITY);
        let (mut writer, mut reader, mut payload) = (writer(&heap), reader(&heap), Vec::new());
        for number in 0..200_u64 {
            writer.publish(&stamp(1), &vec![1; usize::try_from(number % 449).unwrap()]).unwrap();
            let Read::Record(record) = reader.next(&mut payload) else { panic!("record {number}") };
            assert_eq!((record.sequence, payload.len() as u64), (number, number % 449));
        }
    }

    #[test]
    fn a_lapped_reader_gets_the_exact_range_it_lost() {
        let heap = segment(CAPACITY);
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        // 64 records per lap: the reader sees 10, then the writer continues for three laps.
        publish(&mut writer, 10, b"");
        assert_eq!(sequences(&records(&mut reader)).len(), 10);
        publish(&mut writer, 200, b"");
        let reads = records(&mut reader);
        assert_eq!(
            reads.first(),
            Some(&Read::Gap { from: 10, to: 192 }),
            "the lap of record 209 starts with 192"
        );
        assert_eq!(sequences(&reads), (192..210).collect::<Vec<_>>());
    }

    /// Also where the writer has claimed the first record of its lap, or has just completed a lap.
    #[test]
    fn the_last_record_is_found_for_every_tail() {
        const COUNT: u64 = if cfg!(miri) { 70 } else { 400 };
        for bytes in [0, 1, 64, 65, 448] {
            let heap = segment(CAPACITY);
            let mut writer = writer(&heap);
            let last = || Reader::last(Segment::open(Arc::clone(&heap)).unwrap());
            assert_eq!(last(), None);
            for number in 0..COUNT {
                let payload = vec![1; if number % 5 == 0 { 0 } else { bytes }];
                let published = writer.publish(&stamp(7), &payload).unwrap();
                let found = last().map(|record| (record.position, record.sequence, record.stamp));
                assert_eq!(found, Some((published.position, number, stamp(7))), "{bytes} bytes");
            }
        }
    }

    /// A writer that died after completing a record or padding, but before publishing it in the header.
    #[test]
    fn the_last_complete_record_of_a_dead_writer_is_found() {
        const WORDS: [usize; 2] = [header::TAIL, header::LAST];
        for count in 1..200 {
            let heap = segment(CAPACITY);
            let mut writer = writer(&heap);
            publish(&mut writer, count, &[1; 200]);
            let before = WORDS.map(|at| heap.words()[at].load(Ordering::Relaxed));
            let whole = writer.publish(&stamp(2), &[1; 200]).unwrap();
            let last = || Reader::last(Segment::open(Arc::clone(&heap)).unwrap()).map(|last| last.position);
            for (at, word) in WORDS.into_iter().zip(before) {
                heap.words()[at].store(word, Ordering::Relaxed);
                assert_eq!(last(), Some(whole.position), "record {count}, word {at} restored");
            }
            // Before its commit, the previous record is the last.
            writer.segment().commit_at(whole.position).unwrap().store(0, Ordering::Relaxed);
            assert_eq!(last(), Some(before[1] - 1), "record {count} incomplete");
        }
    }

    #[test]
    fn a_late_reader_starts_with_the_next_record() {
        let heap = segment(CAPACITY);
        let mut writer = writer(&heap);
        publish(&mut writer, 100, b"x");
        let mut late = Reader::from_now(Segment::open(Arc::clone(&heap)).unwrap());
        assert_eq!(late.next(&mut Vec::new()), Read::Nothing);
        writer.publish(&stamp(1), b"x").unwrap();
        assert_eq!(sequences(&records(&mut late)), [100]);
    }

    /// The result of `claim_with` before a record equals what readers see after it, including lines cleared
    /// ahead.
    /// Of any state of the ring, with records of several lengths.
    #[test]
    fn the_oldest_kept_record_is_found_for_every_tail() {
        const COUNT: u64 = if cfg!(miri) { 60 } else { 500 };
        let heap = segment(CAPACITY);
        let mut writer = writer(&heap);
        for sequence in 0..COUNT {
            publish(&mut writer, 1, &[7; 200][..usize::try_from(sequence * 37 % 200).unwrap()]);
            let mut reader = Reader::from_oldest(Segment::open(Arc::clone(&heap)).unwrap());
            let kept = sequences(&records(&mut reader));
            assert_eq!(kept, (kept[0]..=sequence).collect::<Vec<_>>());
            // Three records and padding take less than a quarter of the ring.
            assert!(kept[0] == 0 || kept.len() > 9, "{sequence} {kept:?}");
        }
    }

    #[test]
    fn a_claim_is_predicted() {
        const COUNT: u64 = if cfg!(miri) { 30 } else { 500 };
        let heap = segment(CAPACITY);
        let mut writer = writer(&heap);
        for number in 0..COUNT {
            let bytes = number * 37 % 449;
            let claim = writer.claim_with(bytes);
            writer.publish(&stamp(1), &vec![1; usize::try_from(bytes).unwrap()]).unwrap();
            assert_eq!(heap.words()[header::CLAIM].load(Ordering::Relaxed), claim, "record {number}");
        }
    }

    /// Payloads of an earlier lap that look like commits lie where the next records start.
    #[test]
    fn remains_of_an_earlier_lap_are_not_records() {
        const COUNT: u64 = if cfg!(miri) { 10 } else { 100 };
        for lines in 0..7_u64 {
            let heap = segment(CAPACITY);
            let (mut writer, mut reader) = (writer(&heap), reader(&heap));
            // Each line of the ring as if it were a record of the second lap.
            for line in 0..CAPACITY / 64 {
                let at = usize::try_from((layout::HEADER_BYTES + line * 64) / 8).unwrap();
                heap.words()[at].store(layout::commit_of(CAPACITY + line * 64), Ordering::Relaxed);
            }
            heap.words()[usize::try_from(layout::HEADER_BYTES / 8).unwrap()].store(0, Ordering::Relaxed);
            for number in 0..COUNT {
                let payload = vec![1; usize::try_from(lines * 64).unwrap()];
                let published = if number % 3 == 0 {
                    writer.publish_only(&stamp(1), &payload).unwrap()
                } else {
                    writer.publish(&stamp(1), &payload).unwrap()
                };
                assert_eq!(sequences(&records(&mut reader)), [published.sequence]);
                assert_eq!(reader.next(&mut Vec::new()), Read::Nothing);
            }
        }
    }

    #[test]
    fn a_fenced_writer_is_refused_and_readers_move_on() {
        let heap = segment(CAPACITY);
        let (mut writer, mut reader, mut payload) = (writer(&heap), reader(&heap), Vec::new());
        writer.publish(&stamp(1), b"last").unwrap();
        writer.segment().fence(2);
        assert_eq!(writer.publish(&stamp(1), b"zombie"), Err(PublishError::Fenced { successor: 2 }));
        assert!(matches!(reader.next(&mut payload), Read::Record(_)), "committed records count");
        assert_eq!(reader.next(&mut payload), Read::Ended { successor: 2 });
    }

    #[test]
    fn oversized_and_reserved_records_are_refused() {
        let mut writer = writer(&segment(CAPACITY));
        let long = PublishError::TooLong { bytes: 449, bytes_max: 448 };
        assert_eq!(writer.publish(&stamp(1), &[0; 449]), Err(long));
        let reserved = Stamp { kind: layout::KIND_PADDING, ..stamp(1) };
        assert!(matches!(writer.publish(&reserved, b""), Err(PublishError::Kind { .. })));
        assert_eq!(writer.publish(&stamp(1), b"").unwrap().sequence, 0, "no sequence was used");
    }

    #[test]
    fn invalid_memory_is_refused_with_the_reason() {
        let refused = |change: &dyn Fn(&Heap)| {
            let heap = segment(CAPACITY);
            change(&heap);
            Segment::open(heap).map(drop).unwrap_err().to_string()
        };
        let set = |at: usize, value: u64| move |heap: &Heap| heap.words()[at].store(value, Ordering::Relaxed);
        let swapped = layout::BYTE_ORDER.swap_bytes();
        for (at, value, expected) in [
            (header::MAGIC, 0, "cannot use the memory as a segment: magic is 0x0, expected \"LLSTREAM\""),
            (header::VERSION, 3, "cannot read a segment of layout version 3"),
            (header::CAPACITY, 5000, "cannot create a ring of 5000 bytes"),
            (header::CAPACITY, 8192, "cannot use 8192 bytes as a segment: it needs 12288 bytes"),
            (header::EPOCH, 0, "cannot use the memory as a segment: epoch is 0x0, expected 1 or more"),
            (header::BYTE_ORDER, swapped, "cannot use the memory as a segment: byte order is "),
        ] {
            let found = refused(&set(at, value));
            assert!(found.starts_with(expected), "{found}");
        }
        let found = Segment::open(Heap::zeroed(64)).map(drop).unwrap_err().to_string();
        assert!(found.starts_with("cannot use 64 bytes as a segment"), "{found}");
    }

    #[test]
    fn a_writer_in_another_thread_is_followed_without_a_torn_record() {
        const COUNT: u64 = if cfg!(miri) { 60 } else { 200_000 };
        let heap = segment(if cfg!(miri) { CAPACITY } else { 1 << 16 });
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        let writing = thread::spawn(move || {
            for number in 0..COUNT {
                let payload =
                    vec![u8::try_from(number % 251).unwrap(); usize::try_from(number % 100).unwrap()];
                writer.publish(&Stamp { cause: number, ..stamp(1) }, &payload).unwrap();
            }
        });
        let (mut payload, mut next, mut lost) = (Vec::new(), 0, 0);
        while next < COUNT {
            match reader.next(&mut payload) {
                Read::Nothing => thread::yield_now(),
                Read::Gap { from, to } => {
                    assert_eq!(from, next);
                    assert!(to > from);
                    lost += to - from;
                    next = to;
                }
                Read::Record(record) => {
                    assert_eq!((record.sequence, record.stamp.cause), (next, next));
                    assert_eq!(payload.len() as u64, next % 100);
                    assert!(payload.iter().all(|byte| u64::from(*byte) == next % 251));
                    next += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        writing.join().unwrap();
        assert!(lost < COUNT, "some were read");
    }

    proptest! {
        #![proptest_config(crate::testing::cases(64))]

        /// Compared with a list: a reader gets what was published, in order, with every gap accounted for.
        #[test]
        fn reads_and_gaps_add_up(steps in proptest::collection::vec((0_usize..449, any::<bool>()), 1..300)) {
            let heap = segment(CAPACITY);
            let (mut writer, mut reader, mut payload) = (writer(&heap), reader(&heap), Vec::new());
            let mut next = 0_u64;
            let mut lengths = Vec::new();
            for (length, reads_now) in steps {
                writer.publish(&stamp(1), &vec![7; length]).unwrap();
                lengths.push(length);
                if !reads_now {
                    continue;
                }
                loop {
                    match reader.next(&mut payload) {
                        Read::Record(record) => {
                            prop_assert_eq!(record.sequence, next);
                            prop_assert_eq!(payload.len(), lengths[usize::try_from(next).unwrap()]);
                            next += 1;
                        }
                        Read::Gap { from, to } => {
                            prop_assert_eq!(from, next);
                            next = to;
                        }
                        Read::Nothing => break,
                        other => prop_assert!(false, "{other:?}"),
                    }
                }
                // A gap is reported with the record after it, so the last lost records are not reported yet.
                prop_assert!(reader.position() >= reader.segment().tail());
            }
        }

        /// Arbitrary writes by another process: no panic, no endless loop.
        #[test]
        fn arbitrary_words_are_survived(words in proptest::collection::vec(any::<u64>(), 64), at in 0_usize..1024) {
            let heap = segment(CAPACITY);
            let mut writer = writer(&heap);
            publish(&mut writer, 70, b"abc");
            for (offset, word) in words.iter().enumerate() {
                heap.words()[(at + offset) % 1024].store(*word, Ordering::Relaxed);
            }
            if let Ok(segment) = Segment::open(Arc::clone(&heap)) {
                let mut reader = Reader::from_start(segment);
                let mut payload = Vec::new();
                for _ in 0..200 {
                    reader.next(&mut payload);
                }
            }
        }
    }
}
