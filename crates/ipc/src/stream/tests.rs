//! The states that a stream can be in, one test each; then many at random, and every order of few.

use super::*;
use crate::region::Heap;
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

    /// A ring of four lines, a writer that laps the reader, and a reader that must never give back a torn record.
    ///
    /// The writer adds two records to three that are there: the first claims the line of the oldest and clears its commit,
    /// the second writes over it. Lines are not taken ahead (see the next test), which would lap the reader before it
    /// begins. The bound that is left: three preemptions, and two looks in each of the reader's two turns.
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

    /// A writer that clears the lines of records to come, and a reader that still reads there: the record that stands in
    /// them is whole or lost, never one with a cleared word.
    #[test]
    fn loom_what_is_cleared_ahead_is_never_read() {
        const CAPACITY: u64 = 1024;
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let heap = segment(CAPACITY);
            let mut writer = writer(&heap);
            // Six of two lines and one of one; another of two, and the second line of the first one is cleared.
            let mut publish = move |payload: &[u8]| writer.publish(&Stamp::default(), payload).unwrap();
            for _ in 0..6 {
                publish(&[7; 8]);
            }
            publish(&[]);
            let reader = reader(&heap);
            let mut payload = Vec::new();
            assert!(reader.read_at(0, &mut payload).is_some(), "nobody writes there yet");
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
        assert_eq!(reader(&heap).lag_bytes(), 0);
    }

    #[test]
    fn one_record_whole() {
        let heap = segment(CAPACITY);
        let published = writer(&heap).with_crc().publish(&stamp(5), b"hello, world").unwrap();
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
    fn a_fixed_buffer_holds_what_fits() {
        let heap = segment(CAPACITY);
        let mut writer = writer(&heap).with_crc();
        let mut buffer = [0; 12];
        for length in 0..40 {
            let mut reader = Reader::from_now(Segment::open(Arc::clone(&heap)).unwrap());
            let payload: Vec<u8> = (1..=length).collect();
            writer.publish(&stamp(1), &payload).unwrap();
            let (read, found) = reader.next_into(&mut buffer);
            assert!(matches!(read, Read::Record(_)));
            assert_eq!(found, &payload[..payload.len().min(12)]);
            assert_eq!(reader.next_into(&mut buffer), (Read::Nothing, &[][..]));
        }
    }

    #[test]
    fn a_record_under_way_is_not_seen() {
        let heap = segment(CAPACITY);
        let mut writer = writer(&heap);
        writer.publish(&stamp(1), b"whole").unwrap();
        // A second one up to its commit.
        let at = usize::try_from((layout::HEADER_BYTES + 128) / 8).unwrap();
        heap.words()[at + layout::record::SHAPE].store(layout::pack_shape(8, 3, 0), Ordering::Relaxed);
        heap.words()[at + layout::record::WORDS].store(77, Ordering::Relaxed);
        let mut reader = reader(&heap);
        assert_eq!(sequences(&records(&mut reader)), [0]);
        assert_eq!(reader.next(&mut Vec::new()), Read::Nothing);
    }

    #[test]
    fn the_end_of_the_ring_is_filled() {
        let heap = segment(CAPACITY);
        let (mut writer, mut reader, mut payload) = (writer(&heap), reader(&heap), Vec::new());
        for number in 0..200_u64 {
            writer.publish(&stamp(1), &vec![1; usize::try_from(number % 449).unwrap()]).unwrap();
            let Read::Record(record) = reader.next(&mut payload) else { panic!("record {number}") };
            assert_eq!((record.sequence, payload.len() as u64), (number, number % 449));
        }
    }

    #[test]
    fn a_lapped_reader_is_told_exactly_what_it_lost() {
        let heap = segment(CAPACITY);
        let (mut writer, mut reader) = (writer(&heap), reader(&heap));
        // 64 records a lap: the reader sees 10, then the writer goes on for three laps.
        publish(&mut writer, 10, b"");
        assert_eq!(sequences(&records(&mut reader)).len(), 10);
        publish(&mut writer, 200, b"");
        let reads = records(&mut reader);
        assert_eq!(
            reads.first(),
            Some(&Read::Gap { from: 10, to: 192 }),
            "the lap of record 209 began with 192"
        );
        assert_eq!(sequences(&reads), (192..210).collect::<Vec<_>>());
    }

    /// Also where the writer has claimed the first record of its lap, or has just ended one.
    #[test]
    fn the_last_record_is_found_wherever_the_tail_stands() {
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

    /// A writer that died with a record whole, or the end of the ring filled, and had not come to say so.
    #[test]
    fn what_a_dead_writer_had_made_whole_is_its_last() {
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
                assert_eq!(last(), Some(whole.position), "record {count}, word {at} as before");
            }
            // Before its commit, the one before it is.
            writer.segment().commit_at(whole.position).unwrap().store(0, Ordering::Relaxed);
            assert_eq!(last(), Some(before[1] - 1), "record {count} not whole");
        }
    }

    #[test]
    fn a_late_reader_begins_with_the_next_record() {
        let heap = segment(CAPACITY);
        let mut writer = writer(&heap);
        publish(&mut writer, 100, b"x");
        let mut late = Reader::from_now(Segment::open(Arc::clone(&heap)).unwrap());
        assert_eq!(late.next(&mut Vec::new()), Read::Nothing);
        writer.publish(&stamp(1), b"x").unwrap();
        assert_eq!(sequences(&records(&mut late)), [100]);
    }

    /// What `claim_with` says before a record is what readers are told by the end of it, lines that are cleared ahead
    /// included.
    #[test]
    fn a_claim_is_known_before() {
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

    /// Payloads of another lap that read like a commit stand where the next records begin.
    #[test]
    fn what_an_earlier_lap_left_is_no_record() {
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
    fn a_fenced_writer_writes_no_more_and_readers_are_sent_on() {
        let heap = segment(CAPACITY);
        let (mut writer, mut reader, mut payload) = (writer(&heap), reader(&heap), Vec::new());
        writer.publish(&stamp(1), b"last").unwrap();
        writer.segment().fence(2);
        assert_eq!(writer.publish(&stamp(1), b"zombie"), Err(PublishError::Fenced { successor: 2 }));
        assert!(matches!(reader.next(&mut payload), Read::Record(_)), "what was committed counts");
        assert_eq!(reader.next(&mut payload), Read::Ended { successor: 2 });
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut writer = writer(&segment(CAPACITY));
        let long = PublishError::TooLong { bytes: 449, bytes_max: 448 };
        assert_eq!(writer.publish(&stamp(1), &[0; 449]), Err(long));
        let reserved = Stamp { kind: layout::KIND_PADDING, ..stamp(1) };
        assert!(matches!(writer.publish(&reserved, b""), Err(PublishError::Kind { .. })));
        assert_eq!(writer.publish(&stamp(1), b"").unwrap().sequence, 0, "and nothing was used up");
    }

    #[test]
    fn flipped_bits_are_told() {
        let heap = segment(CAPACITY);
        let mut writer = writer(&heap).with_crc();
        publish(&mut writer, 3, b"payload");
        let at = usize::try_from((layout::HEADER_BYTES + 128) / 8).unwrap() + layout::record::WORDS;
        heap.words()[at].fetch_xor(1 << 20, Ordering::Relaxed);
        let reads = records(&mut reader(&heap));
        assert_eq!(sequences(&reads), [0]);
        assert_eq!(reads.get(1), Some(&Read::Damaged { position: 128 }));
    }

    #[test]
    fn memory_that_is_no_segment_is_refused_with_the_reason() {
        let refused = |change: &dyn Fn(&Heap)| {
            let heap = segment(CAPACITY);
            change(&heap);
            Segment::open(heap).map(drop).unwrap_err()
        };
        let set = |at: usize, value: u64| move |heap: &Heap| heap.words()[at].store(value, Ordering::Relaxed);
        assert!(matches!(refused(&set(header::MAGIC, 0)), SegmentError::Header { what: "magic", .. }));
        assert!(matches!(refused(&set(header::VERSION, 3)), SegmentError::Version { found: 3 }));
        assert!(matches!(refused(&set(header::CAPACITY, 5000)), SegmentError::Capacity { bytes: 5000 }));
        assert!(matches!(refused(&set(header::CAPACITY, 8192)), SegmentError::TooSmall { .. }));
        assert!(matches!(refused(&set(header::EPOCH, 0)), SegmentError::Header { what: "epoch", .. }));
        let swapped = layout::BYTE_ORDER.swap_bytes();
        assert!(matches!(
            refused(&set(header::BYTE_ORDER, swapped)),
            SegmentError::Header { what: "byte order", .. }
        ));
        assert!(matches!(Segment::open(Heap::zeroed(64)), Err(SegmentError::TooSmall { bytes: 64, .. })));
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

        /// Against a list: what a reader gets is what was published, in order, with every gap accounted for.
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
                // A gap is told with the record behind it, so what was lost last is not told yet.
                prop_assert_eq!(reader.lag_bytes(), 0);
            }
        }

        /// Whatever another process writes: no panic, no endless loop.
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
