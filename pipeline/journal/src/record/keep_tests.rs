//! New files by time, and the deletion of the oldest ones.

use crate::{
    damage::Problem,
    layout::{GapReason, data_name, index_name, start::NAME},
    read::{Gap, JournalRead, Merge, Recording, TailReader, last_records, verify},
    record::{Keep, Options, Recorder},
    testing::{IDENTITY, Maker, options, payload, read_all, record, sequences},
};
use std::{fs, path::Path, time::Duration};
use tempfile::TempDir;

const BLOCK: u64 = 20;

fn small(keep: Keep) -> Options {
    Options { file_bytes_max: 16 << 10, keep, ..options() }
}

/// Two streams, the second with a record for every tenth of the first.
fn make(folder: &Path, keep: Keep, blocks: u64) {
    let mut maker = Maker::new(folder, small(keep), &["one", "two"]);
    for block in 0..blocks {
        maker.records(0, BLOCK * block..BLOCK * (block + 1));
        maker.records(1, BLOCK / 10 * block..BLOCK / 10 * (block + 1));
    }
    maker.files.finish().unwrap();
}

fn bytes_of(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let data = files.filter(|file| file.file_name().to_string_lossy().ends_with("journal"));
    data.map(|file| file.metadata().unwrap().len()).sum()
}

#[test]
fn the_oldest_files_are_deleted_and_readers_say_where_a_recording_starts() {
    let (whole, kept) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    make(whole.path(), Keep::default(), 120);
    let keep = Keep { bytes_max: Some(64 << 10), ..Keep::default() };
    make(kept.path(), keep, 120);
    let all = read_all(&Recording::open(whole.path()).unwrap());
    assert!(bytes_of(whole.path()) > 100_000 && bytes_of(kept.path()) <= 64 << 10);
    let recording = Recording::open(kept.path()).unwrap();
    let deleted = [0, 1].map(|stream| recording.deleted(stream).unwrap());
    assert!(deleted.iter().all(|gap| gap.from == 0 && gap.reason == Some(GapReason::Deleted)));
    let reads = read_all(&recording);
    // Both gaps, and then everything that was kept.
    let gaps: Vec<_> = reads.iter().filter(|read| !matches!(read, JournalRead::Record(_))).collect();
    assert_eq!(gaps, deleted.each_ref().map(|gap| JournalRead::Gap(*gap)).iter().collect::<Vec<_>>());
    let (rest, known) = (sequences(&reads), sequences(&all));
    let is_kept = |(stream, sequence): &(u32, u64)| *sequence >= deleted[*stream as usize].to;
    assert_eq!(rest, known.into_iter().filter(is_kept).collect::<Vec<_>>());

    let report = verify(&recording, true, &mut |_, _| ());
    assert_eq!((report.damage_count, report.is_complete()), (0, true), "{:?}", report.damages);
    assert_eq!(report.gaps, deleted);
    assert_eq!(report.gap_total().missed, deleted[0].count() + deleted[1].count());
    let last = |count| {
        last_records(&recording, &[0, 1], count, &|_, _| true)
            .into_iter()
            .map(|(read, _)| read)
            .collect::<Vec<_>>()
    };
    assert_eq!(sequences(&last(usize::MAX)), rest);
    let all_gaps =
        |reads: &[JournalRead]| reads.iter().filter(|read| matches!(read, JournalRead::Gap(_))).count();
    assert_eq!((all_gaps(&last(usize::MAX)), all_gaps(&last(rest.len() / 2))), (2, 0));
    let (mut tail, mut bytes) = (TailReader::from_start(&recording), Vec::new());
    let mut tailed = 0;
    loop {
        match tail.next(&mut bytes) {
            JournalRead::Record(_) => tailed += 1,
            JournalRead::Ended => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tailed, rest.len());
}

/// The missing records may be of the time sought.
#[test]
fn a_seek_to_deleted_times_reports_them_and_one_to_later_times_does_not() {
    let folder = TempDir::new().unwrap();
    make(folder.path(), Keep { bytes_max: Some(64 << 10), ..Keep::default() }, 120);
    let recording = Recording::open(folder.path()).unwrap();
    let start = recording.deleted(0).unwrap().to;
    let (mut merge, mut bytes) = (Merge::new(&recording, &[0]), Vec::new());
    for sequence in [0, start / 2, start] {
        merge.seek_time(10 * sequence);
        assert_eq!(merge.next(&mut bytes), JournalRead::Gap(recording.deleted(0).unwrap()), "{sequence}");
        let JournalRead::Record(found) = merge.next(&mut bytes) else { panic!("{sequence}") };
        assert_eq!(found.record.sequence, start);
    }
    for sequence in [start + 1, start + BLOCK, start + 3 * BLOCK + 1] {
        merge.seek_time(10 * sequence);
        let JournalRead::Record(found) = merge.next(&mut bytes) else { panic!("{sequence}") };
        assert_eq!(found.record.sequence, sequence);
    }
    merge.seek_time(u64::MAX);
    assert_eq!(merge.next(&mut bytes), JournalRead::Ended);
}

#[test]
fn a_recording_that_starts_later_is_resumed_and_missing_files_after_its_start_are_damage() {
    let folder = TempDir::new().unwrap();
    let keep = Keep { bytes_max: Some(64 << 10), ..Keep::default() };
    let (mut next, mut first) = (0, 0);
    for _ in 0..3 {
        let mut recorder = Recorder::open(folder.path(), small(keep)).unwrap();
        // Its first record is not known before it comes.
        let stream = recorder.add_stream("one", 9, "test", None).unwrap();
        for sequence in next + 100..next + 1100 {
            recorder.record(stream, 1, &record(stream, sequence), &payload(stream, sequence)).unwrap();
        }
        next += 1000;
        recorder.stop().unwrap();
        let recording = Recording::open(folder.path()).unwrap();
        let deleted = recording.deleted(0).unwrap();
        assert!(deleted.from == 100 && deleted.to > first, "{deleted:?}");
        first = deleted.to;
        let wanted: Vec<_> = (first..next + 100).map(|sequence| (0, sequence)).collect();
        assert_eq!(sequences(&read_all(&recording)), wanted);
        assert!(verify(&recording, true, &mut |_, _| ()).is_complete());
    }
    let numbers: Vec<_> =
        Recording::open(folder.path()).unwrap().files().iter().map(|file| file.number).collect();
    fs::remove_file(folder.path().join(data_name(numbers[0]))).unwrap();
    let report = verify(&Recording::open(folder.path()).unwrap(), true, &mut |_, _| ());
    assert!(
        report.damages.iter().any(|damage| damage.problem == Problem::FileMissing),
        "{:?}",
        report.damages
    );
}

#[test]
fn files_left_by_an_interrupted_deletion_are_not_read_and_a_foreign_start_is_ignored() {
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    make(folder.path(), Keep { bytes_max: Some(64 << 10), ..Keep::default() }, 120);
    make(other.path(), Keep::default(), 120);
    let before = read_all(&Recording::open(folder.path()).unwrap());
    for name in [data_name(1), index_name(1), data_name(2)] {
        fs::copy(other.path().join(&name), folder.path().join(&name)).unwrap();
    }
    assert_eq!(read_all(&Recording::open(folder.path()).unwrap()), before);
    let mut bytes = fs::read(folder.path().join(NAME)).unwrap();
    let mut start = crate::layout::start::Start::decode(&mut bytes).unwrap();
    start.recording = IDENTITY.recording + 1;
    fs::write(other.path().join(NAME), start.encode()).unwrap();
    let recording = Recording::open(other.path()).unwrap();
    assert_eq!((recording.deleted(0), recording.files()[0].number), (None, 1));
    assert!(verify(&recording, true, &mut |_, _| ()).is_complete());
    // Of a start that is damaged, the deletion is damage.
    fs::write(folder.path().join(NAME), b"LLJSTART").unwrap();
    for name in [data_name(1), data_name(2)] {
        fs::remove_file(folder.path().join(name)).unwrap();
    }
    assert!(!verify(&Recording::open(folder.path()).unwrap(), true, &mut |_, _| ()).is_complete());
}

/// Their deletion while a reader has the recording open is no damage.
#[test]
fn files_deleted_under_a_reader_are_a_gap_with_its_reason() {
    let folder = TempDir::new().unwrap();
    make(folder.path(), Keep::default(), 120);
    let recording = Recording::open(folder.path()).unwrap();
    let mut merge = Merge::new(&recording, &[0]);
    let mut bytes = Vec::new();
    assert!(matches!(merge.next(&mut bytes), JournalRead::Record(_)));
    crate::read::delete_before(folder.path(), IDENTITY.recording, 4, &crate::record::CachedDisk).unwrap();
    let start = Recording::open(folder.path()).unwrap().deleted(0).unwrap().to;
    let (mut gaps, mut last) = (Vec::new(), 0);
    loop {
        match merge.next(&mut bytes) {
            JournalRead::Record(found) => last = found.record.sequence,
            JournalRead::Gap(gap) => gaps.push(gap),
            JournalRead::Ended => break,
            other => panic!("{other:?}"),
        }
    }
    let reason = Some(GapReason::Deleted);
    assert_eq!(
        (gaps[0].to, gaps[0].reason, gaps.len(), last),
        (start, reason, 1, 120 * BLOCK - 1),
        "{gaps:?}"
    );
    assert!(!gaps[0].is_loss());
}

/// With an interval of the time of day, and an age after which files go.
#[test]
fn files_begin_with_the_interval_and_go_with_their_age() {
    let folder = TempDir::new().unwrap();
    let (roll, age_max) = (Duration::from_millis(20), Duration::from_millis(50));
    let keep = Keep { age_max: Some(age_max), bytes_max: None };
    let options = Options { roll: Some(roll), keep, block_age_max: Duration::ZERO, ..options() };
    let mut recorder = Recorder::open(folder.path(), options).unwrap();
    let stream = recorder.add_stream("one", 9, "test", Some(0)).unwrap();
    let mut written = 0;
    while Recording::open(folder.path()).unwrap().deleted(0).is_none_or(|gap| gap.to < 3) {
        recorder.record(stream, 1, &record(stream, written), &payload(stream, written)).unwrap();
        written += 1;
        std::thread::sleep(Duration::from_millis(1));
        recorder.flush_old().unwrap();
    }
    recorder.stop().unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    let heads: Vec<_> = recording.files().iter().map(|file| file.head.unwrap()).collect();
    let interval = |ns: u64| ns / u64::try_from(roll.as_nanos()).unwrap();
    assert!(heads.windows(2).all(|two| interval(two[0].realtime_ns) < interval(two[1].realtime_ns)));
    assert!(verify(&recording, true, &mut |_, _| ()).is_complete());
    let first = recording.deleted(0).unwrap().to;
    assert_eq!(sequences(&read_all(&recording)), (first..written).map(|at| (0, at)).collect::<Vec<_>>());
}

#[test]
fn a_gap_of_deleted_records_is_told_as_such() {
    let gap = Gap { stream: 0, from: 0, to: 3, reason: Some(GapReason::Deleted) };
    assert_eq!(
        (gap.why(), gap.missed(), GapReason::of(GapReason::Deleted.code())),
        ("deleted with the oldest files", 3, None)
    );
}
