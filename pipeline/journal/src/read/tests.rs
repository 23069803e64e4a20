//! Reads of recordings that are intact, growing, truncated, corrupted and invented.

use super::*;
use crate::{
    damage::Problem,
    layout::{BlockKind, data_name, index_name},
    record::Options,
    testing::{Maker, options, read_all, record, sequences},
};
use proptest::prelude::*;
use std::{fs, path::Path};
use tempfile::TempDir;

/// Two streams in four blocks and a gap, in one file: (stream, sequences) of its blocks.
const BLOCKS: [(u32, std::ops::Range<u64>); 4] = [(0, 0..5), (1, 0..3), (0, 5..9), (1, 6..8)];

fn small(folder: &Path) {
    let mut maker = Maker::new(folder, options(), &["one", "two"]);
    for (at, (stream, range)) in BLOCKS.into_iter().enumerate() {
        if at == 3 {
            maker.gap(1, 3, 6);
        }
        maker.records(stream, range);
    }
    maker.files.finish().unwrap();
}

fn all(folder: &Path) -> Vec<JournalRead> {
    read_all(&Recording::open(folder).unwrap())
}

fn check(folder: &Path) -> JournalVerification {
    verify(&Recording::open(folder).unwrap(), true, &mut |_, _| ())
}

#[test]
fn streams_are_merged_by_time_with_their_gaps() {
    let folder = TempDir::new().unwrap();
    small(folder.path());
    let reads = all(folder.path());
    let wanted = [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 1),
        (0, 2),
        (1, 2),
        (0, 3),
        (0, 4),
        (0, 5),
        (0, 6),
        (1, 6),
        (0, 7),
        (1, 7),
        (0, 8),
    ];
    assert_eq!(sequences(&reads), wanted);
    let gaps: Vec<_> = reads.iter().filter(|read| !matches!(read, JournalRead::Record(_))).collect();
    let reason = Some(GapReason::Overwritten);
    assert_eq!(gaps, [&JournalRead::Gap(Gap { stream: 1, from: 3, to: 6, reason })]);
    let report = check(folder.path());
    assert_eq!((report.records(), &report.damages), (14, &vec![]));
    assert_eq!(report.streams[1].gaps, GapTotal { gaps: 1, records: 3, missed: 0 });
    assert_eq!(report.files[0].index_problem, None);
    assert_eq!(fs::metadata(folder.path().join(data_name(1))).unwrap().len() % 64, 0);
}

#[test]
fn a_file_truncated_at_any_byte_gives_a_prefix_and_reports_the_place() {
    let whole = TempDir::new().unwrap();
    small(whole.path());
    let bytes = fs::read(whole.path().join(data_name(1))).unwrap();
    let cut = TempDir::new().unwrap();
    let file = cut.path().join(data_name(1));
    let order: Vec<(u32, u64)> =
        BLOCKS.into_iter().flat_map(|(stream, range)| range.map(move |at| (stream, at))).collect();
    let mut longest = 0;
    for length in 0..bytes.len() {
        fs::write(&file, &bytes[..length]).unwrap();
        let recording = Recording::open(cut.path()).unwrap();
        let mut read = sequences(&read_all(&recording));
        let report = verify(&recording, true, &mut |_, _| ());
        assert!(!report.damages.is_empty(), "cut at {length}");
        assert!(report.damages.iter().any(|damage| damage.offset <= length as u64 && damage.file == file));
        assert_eq!(report.records(), read.len() as u64);
        // In the order of writing it is a prefix.
        read.sort_by_key(|at| order.iter().position(|known| known == at));
        assert_eq!(read, order[..read.len()], "cut at {length}");
        assert!(read.len() >= longest, "cut at {length}");
        longest = read.len();
    }
    assert_eq!(longest, order.len(), "if only the end is missing, all records are read");
}

/// `stored` keeps the index file next to the damaged data file.
fn every_flipped_bit_is_told(stored: bool) {
    let whole = TempDir::new().unwrap();
    small(whole.path());
    let mut bytes = fs::read(whole.path().join(data_name(1))).unwrap();
    let recording = Recording::open(whole.path()).unwrap();
    let index = recording.index(0, &recording.open_file(0).unwrap());
    let blocks = index.scan.blocks.clone();
    let flipped = TempDir::new().unwrap();
    let file = flipped.path().join(data_name(1));
    if stored {
        let name = index_name(1);
        fs::copy(whole.path().join(&name), flipped.path().join(&name)).unwrap();
    }
    for bit in 0..bytes.len() * 8 {
        // One bit of each byte, a different one each time: all bits would be slow without optimization, and
        // heads have their own test.
        let is_of_file_head = bit / 8 < crate::layout::FILE_HEAD_BYTES;
        if bit % 8 != (bit / 8) % 8 || (is_of_file_head && bit % 61 != 0) {
            continue;
        }
        bytes[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, &bytes).unwrap();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let at = bit as u64 / 8;
        let recording = Recording::open(flipped.path()).unwrap();
        let reads = read_all(&recording);
        let read = sequences(&reads);
        let report = verify(&recording, true, &mut |_, _| ());
        let touched = blocks.iter().find(|head| (head.offset..head.offset + head.bytes()).contains(&at));
        let from = touched.map_or(0, |head| head.offset);
        let is_told = |damage: &DamagedPlace| damage.file == file && (from..=at).contains(&damage.offset);
        assert!(report.damages.iter().any(is_told), "bit {bit}: {:?}", report.damages);
        // Every record of the other blocks is read, and of the damaged one at most those before the damage.
        for head in blocks.iter().filter(|head| head.kind == BlockKind::Records) {
            let wanted = head.first_sequence..=head.last_sequence;
            let found: Vec<u64> = read
                .iter()
                .filter(|(stream, at)| *stream == head.stream && wanted.contains(at))
                .map(|(_, at)| *at)
                .collect();
            let all: Vec<u64> = wanted.collect();
            if touched.is_some_and(|touched| touched.number == head.number) {
                assert!(all.starts_with(&found), "bit {bit}");
                let missing = all.len() - found.len();
                let told: u64 = reads
                    .iter()
                    .filter_map(|read| match read {
                        JournalRead::Gap(gap) if gap.stream == head.stream && gap.reason.is_none() => {
                            Some(gap.count())
                        }
                        _ => None,
                    })
                    .sum();
                assert_eq!(told, missing as u64, "bit {bit}");
            } else {
                assert_eq!(found, all, "bit {bit}");
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_reported_and_costs_at_most_its_block() {
    every_flipped_bit_is_told(false);
}

#[test]
fn with_an_index_a_damaged_head_costs_nothing() {
    every_flipped_bit_is_told(true);
}

#[test]
fn a_damaged_index_is_not_used() {
    let folder = TempDir::new().unwrap();
    small(folder.path());
    let path = folder.path().join(index_name(1));
    let mut bytes = fs::read(&path).unwrap();
    let wanted = all(folder.path());
    for at in 0..bytes.len() {
        bytes[at] ^= 0x10;
        fs::write(&path, &bytes).unwrap();
        bytes[at] ^= 0x10;
        let recording = Recording::open(folder.path()).unwrap();
        assert_eq!(read_all(&recording), wanted, "byte {at}");
    }
    bytes[70] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let report = check(folder.path());
    assert_eq!(report.files[0].index_problem.as_deref(), Some("its CRC-32C does not match"));
    assert_eq!(report.damage_count, 0);
}

/// Streams over several files, with an index and without.
fn long(folder: &Path) {
    let options = Options { file_bytes_max: 16 << 10, ..options() };
    let mut maker = Maker::new(folder, options, &["one", "two"]);
    for step in 0..60 {
        maker.records(0, step * 20..step * 20 + 20);
        maker.records(1, step * 3..step * 3 + 3);
    }
    maker.files.finish().unwrap();
}

#[test]
fn times_are_found_in_any_file() {
    let folder = TempDir::new().unwrap();
    long(folder.path());
    let recording = Recording::open(folder.path()).unwrap();
    assert!(recording.files().len() > 3);
    let mut bytes = Vec::new();
    for sequence in [0, 1, 19, 20, 599, 600, 1198, 1199] {
        let mut merge = Merge::of_all(&recording);
        merge.seek_time(10 * sequence);
        let JournalRead::Record(found) = merge.next(&mut bytes) else { panic!("{sequence}") };
        assert_eq!(found.record.stamp.generated, 10 * sequence);
    }
    let mut reader = StreamReader::new(&recording, 0);
    for _ in 0..2 {
        reader.seek_time(1_000_000);
        assert_eq!(reader.next(&mut bytes), JournalRead::Ended);
        reader.seek_time(30);
        assert!(
            matches!(reader.next(&mut bytes), JournalRead::Record(found) if found.record == record(0, 3))
        );
    }
}

/// Records that are missing between a time and the one before it may be of that time.
#[test]
fn a_search_by_time_starts_with_the_gap_before_it() {
    let folder = TempDir::new().unwrap();
    let options = Options { file_bytes_max: 16 << 10, ..options() };
    let mut maker = Maker::new(folder.path(), options, &["one", "two"]);
    for start in (0..1_000).step_by(10) {
        maker.records(0, start..start + 7);
        maker.gap(0, start + 7, start + 10);
        maker.records(1, start..start + 10);
    }
    maker.files.finish().unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    let ends_with_a_gap = |at: usize| {
        let index = recording.index(at, &recording.open_file(at).unwrap());
        index.block_of(0, index.blocks_of(0) - 1).unwrap().kind == BlockKind::Gap
    };
    let files = recording.files().len();
    assert!(files > 4 && (0..files - 1).any(ends_with_a_gap));
    let (mut bytes, mut reader) = (Vec::new(), StreamReader::new(&recording, 0));
    let mut first = |time| {
        reader.seek_time(time);
        let mut next = || match reader.next(&mut bytes) {
            JournalRead::Gap(gap) => (gap.from, gap.to),
            JournalRead::Record(found) => (found.record.sequence, found.record.sequence),
            _ => (0, 0),
        };
        [next(), next()]
    };
    // Record N is of the time 10 N.
    for start in (0..990).step_by(10) {
        let (gap, next) = ((start + 7, start + 10), (start + 10, start + 10));
        assert_eq!(first(10 * start + 61), [gap, next], "right behind the last record");
        assert_eq!(first(10 * start + 95), [gap, next], "in the gap");
        assert_eq!(first(10 * start + 100), [gap, next], "right behind the gap");
        assert_eq!(first(10 * start + 60), [(start + 6, start + 6), gap], "before the gap");
        assert_eq!(
            first(10 * start + 101)[0],
            (start + 11, start + 11),
            "a record before that time is behind the gap"
        );
    }
    assert_eq!(first(100_000), [(997, 1_000), (0, 0)], "at the end");
}

#[test]
fn a_gap_says_why_records_are_missing() {
    let gap = Gap { stream: 1, from: 4, to: 6, reason: Some(GapReason::Overwritten) };
    let unknown = Gap { reason: None, ..gap };
    let whys = [gap, unknown, Gap { from: 5, ..unknown }].map(|gap| (gap.count(), gap.why()));
    let words = [
        "overwritten before they were recorded",
        "they were recorded and cannot be read",
        "it was recorded and cannot be read",
    ];
    assert_eq!(whys, [(2, words[0]), (2, words[1]), (1, words[2])]);
}

#[test]
fn missing_and_foreign_files_are_reported() {
    let folder = TempDir::new().unwrap();
    long(folder.path());
    let before = check(folder.path());
    assert_eq!(before.damages, []);
    fs::remove_file(folder.path().join(data_name(2))).unwrap();
    let report = check(folder.path());
    assert!(report.damages.iter().any(|damage| damage.problem == Problem::FileMissing));
    assert!(report.damages.iter().any(|damage| matches!(damage.problem, Problem::BlocksMissing { .. })));
    assert_eq!(report.records() + report.gap_total().records, before.records());
    let last =
        *Recording::open(folder.path()).unwrap().files().iter().map(|file| &file.number).max().unwrap();
    fs::remove_file(folder.path().join(data_name(last))).unwrap();
    assert!(check(folder.path()).damages.iter().any(|damage| damage.file.ends_with(data_name(last))));
    fs::copy(folder.path().join(data_name(1)), folder.path().join(data_name(2))).unwrap();
    let report = check(folder.path());
    assert!(
        report
            .damages
            .iter()
            .any(|damage| matches!(damage.problem, Problem::Foreign { found: 1, expected: 2 }))
    );
}

#[test]
fn an_empty_recording_and_a_missing_one_are_distinct() {
    let folder = TempDir::new().unwrap();
    let error = |folder: &Path| Recording::open(folder).unwrap_err().to_string();
    assert!(error(folder.path()).contains(" holds no recording: found no file such as 00000001.journal\n"));
    assert!(error(&folder.path().join("x")).starts_with("cannot read directory "));
    small(folder.path());
    let recording = Recording::open(folder.path()).unwrap();
    let error = recording.stream("three").unwrap_err().to_string();
    assert_eq!(error, "no stream \"three\" in the recording; its streams: one, two");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Arbitrary file contents: no panic, no endless loop, and nothing is returned that was not written.
    #[test]
    fn arbitrary_bytes_are_survived(
        pieces in proptest::collection::vec((any::<prop::sample::Index>(), proptest::collection::vec(any::<u8>(), 1..80)), 1..6),
        moved in any::<[prop::sample::Index; 3]>(),
    ) {
        let folder = TempDir::new().unwrap();
        small(folder.path());
        let path = folder.path().join(data_name(1));
        let mut bytes = fs::read(&path).unwrap();
        for (at, piece) in pieces {
            let at = at.index(bytes.len());
            let end = (at + piece.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&piece[..end - at]);
        }
        // A block, or a part of one, at the place of another.
        let [from, to, length] = moved.map(|index| index.index(bytes.len() / 64) * 64);
        let length = length.min(bytes.len() - from).min(bytes.len() - to);
        bytes.copy_within(from..from + length, to);
        fs::write(&path, &bytes).unwrap();
        let recording = Recording::open(folder.path()).unwrap();
        let reads = read_all(&recording);
        prop_assert!(sequences(&reads).len() <= 14);
        let verified = usize::try_from(verify(&recording, true, &mut |_, _| ()).records()).unwrap();
        prop_assert_eq!(verified, sequences(&reads).len());
        let mut tail = TailReader::from_start(&recording);
        let mut payload = Vec::new();
        for _ in 0..1000 {
            if tail.next(&mut payload) == JournalRead::Ended {
                return Ok(());
            }
        }
        prop_assert!(false, "endless");
    }
}
