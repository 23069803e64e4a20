//! Recordings of every layout version stay readable, and this version writes exactly the same bytes.

use lowlat_ipc::stream::{Record, Stamp};
use lowlat_journal::{
    layout::{GapReason, data_name, index_name, manifest::StreamEntry},
    read::{Gap, JournalRead, Merge, Recording, verify},
    record::{
        BlockBuffer, CachedDisk, Files, Options, Place, SyncPolicy,
        identity::{Clock, Identity},
    },
};
use std::{fs, path::Path};

fn golden(version: u32) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{version}"))
}

fn record(stream: u32, sequence: u64) -> (Record, Vec<u8>) {
    let number = u32::try_from(sequence).unwrap();
    let stamp = Stamp {
        kind: 1 + u16::try_from(stream).unwrap(),
        schema: 1,
        instrument: 100 + number,
        source: 7,
        generated: 1_000_000 + 1_000 * sequence + u64::from(stream),
        trigger: 999_000 + sequence,
        cause: sequence / 2,
    };
    let payload = (0..number % 20).map(|at| u8::try_from(at + number).unwrap()).collect();
    (Record { position: 128 * sequence, sequence, stamp }, payload)
}

/// The golden recording: two streams, a gap, a new epoch.
fn write(folder: &Path) {
    let entry = |name: &str, id, next_sequence| StreamEntry {
        name: name.to_owned(),
        schema: "golden".to_owned(),
        id,
        next_sequence,
        generated_max: 0,
    };
    let identity = Identity {
        recording: 0x1122_3344_5566_7788,
        boot_id: *b"golden boot id 1",
        clock: Clock::Fixed { monotonic_ns: 123_456_789, realtime_ns: 1_700_000_000_123_456_789 },
    };
    let options =
        Options { block_bytes: 4096, file_bytes_max: 64 << 10, sync: SyncPolicy::None, ..Options::default() };
    let place = Place { streams: vec![entry("md", 1, 0), entry("orders.a", 2, 40)], ..Place::start() };
    let mut files = Files::new(CachedDisk, folder, identity, options, place).unwrap();
    let mut buffer = BlockBuffer::new(4096);
    for (stream, epoch, sequences) in [(0, 1, 0..12), (1, 1, 40..43), (0, 2, 15..18)] {
        buffer.begin(identity.recording, stream, epoch);
        for sequence in sequences {
            let (record, payload) = record(stream, sequence);
            assert!(buffer.push(&record, &payload));
        }
        files.append(&mut buffer).unwrap();
        if stream == 1 {
            buffer.begin(identity.recording, 0, 2);
            let mut head = buffer.finished_head();
            (head.first_sequence, head.last_sequence) = (12, 14);
            head.detail = GapReason::BetweenSegments.code();
            files.append_gap(&head).unwrap();
        }
    }
    files.finish().unwrap();
}

#[test]
fn every_layout_can_be_read() {
    [1, 2].into_iter().for_each(check);
}

fn check(version: u32) {
    let recording = Recording::open(&golden(version)).unwrap();
    let names: Vec<_> = recording.streams().iter().map(|stream| (stream.name.as_str(), stream.id)).collect();
    assert_eq!(names, [("md", 1), ("orders.a", 2)]);
    assert_eq!(recording.realtime_offset_ns(), Some(1_700_000_000_000_000_000));
    let (mut merge, mut payload, mut records, mut gaps) =
        (Merge::of_all(&recording), Vec::new(), Vec::new(), Vec::new());
    loop {
        match merge.next(&mut payload) {
            JournalRead::Record(found) => {
                let wanted = record(found.stream, found.record.sequence);
                assert_eq!((found.record, &payload), (wanted.0, &wanted.1));
                assert_eq!(found.epoch, if found.record.sequence < 15 || found.stream == 1 { 1 } else { 2 });
                records.push((found.stream, found.record.sequence));
            }
            JournalRead::Gap(gap) => gaps.push(gap),
            JournalRead::Ended => break,
            other => panic!("{other:?}"),
        }
    }
    let order: Vec<_> = (0..12).chain(15..18).map(|at| (0, at)).chain((40..43).map(|at| (1, at))).collect();
    assert_eq!(records, order);
    let reason = Some(GapReason::BetweenSegments);
    assert_eq!(gaps, [Gap { stream: 0, from: 12, to: 15, reason }]);
    let report = verify(&recording, true, &mut |_, _| ());
    assert_eq!((report.damage_count, report.files[0].index_problem.as_deref()), (0, None));
}

#[test]
fn layout_2_is_written_byte_for_byte() {
    let folder = tempfile::TempDir::new().unwrap();
    write(folder.path());
    for name in [data_name(1), index_name(1)] {
        let stored = golden(2).join(&name);
        // Only for a new layout version: the files of an old one never change.
        if std::env::var_os("LOWLAT_NEW_GOLDEN").is_some() && !stored.exists() {
            fs::create_dir_all(golden(2)).unwrap();
            fs::copy(folder.path().join(&name), &stored).unwrap();
        }
        let (found, wanted) = (fs::read(folder.path().join(&name)).unwrap(), fs::read(&stored).unwrap());
        let first = found.iter().zip(&wanted).position(|(found, wanted)| found != wanted);
        assert_eq!(
            (first, found.len()),
            (None, wanted.len()),
            "{name}: the first byte that differs, and its length"
        );
    }
}
