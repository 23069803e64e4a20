//! A recorder with streams that have gaps, end and restart, and with disks that fail.

use super::*;
use crate::{
    layout::{GapReason, data_name},
    read::{Gap, JournalRead, Recording, verify},
    testing::{Maker, options, payload, read_all, record, sequences},
};
use lowlat_ipc::{
    layout::{HEADER_BYTES, commit_of, pack_shape, record as at},
    region::{Heap, Region},
    stream::{Owner, Reader, Segment, Stamp, Writer},
};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};
use tempfile::TempDir;

const CAPACITY: u64 = 1 << 16;

fn segment(epoch: u64, first_sequence: u64) -> Arc<Heap> {
    segment_of(CAPACITY, epoch, first_sequence)
}

fn segment_of(capacity: u64, epoch: u64, first_sequence: u64) -> Arc<Heap> {
    let heap = Arc::new(Heap::zeroed(Segment::<Heap>::bytes(capacity)));
    Segment::create(Arc::clone(&heap), capacity, 1, epoch, first_sequence, Owner::default()).unwrap();
    heap
}

fn open(heap: &Arc<Heap>) -> Segment<Arc<Heap>> {
    Segment::open(Arc::clone(heap)).unwrap()
}

/// Publishes this many records, as in [`record`] and [`payload`] except for the position.
fn publish(writer: &mut Writer<Arc<Heap>>, count: u64) {
    for _ in 0..count {
        let sequence = writer.next_sequence();
        writer.publish(&record(0, sequence).stamp, &payload(0, sequence)).unwrap();
    }
}

type Segments = Arc<Mutex<Vec<Arc<Heap>>>>;

fn follower(folder: &Path, first: &Arc<Heap>) -> (Follower<Arc<Heap>>, Segments) {
    let recorder = Recorder::open(folder, options()).unwrap();
    let source =
        Source { name: "one".to_owned(), schema: "test".to_owned(), reader: Reader::from_start(open(first)) };
    let later = Segments::default();
    let known = Arc::clone(&later);
    let successor = Box::new(move |name: &str, epoch: u64| {
        assert_eq!(name, "one");
        let known = known.lock().unwrap();
        known.iter().map(open).find(|segment| segment.epoch() == epoch)
    });
    (Follower::new(recorder, vec![source], successor).unwrap(), later)
}

/// Sequences, gaps, and the number of damaged places.
type Contents = (Vec<u64>, Vec<(u64, u64, Option<GapReason>)>, u64);

fn contents(folder: &Path) -> Contents {
    let recording = Recording::open(folder).unwrap();
    let mut merge = crate::read::Merge::of_all(&recording);
    let (mut records, mut gaps, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        match merge.next(&mut bytes) {
            JournalRead::Record(found) => {
                let sequence = found.record.sequence;
                assert_eq!((found.record.stamp, &bytes), (record(0, sequence).stamp, &payload(0, sequence)));
                records.push(sequence);
            }
            JournalRead::Gap(Gap { from, to, reason, .. }) => gaps.push((from, to, reason)),
            JournalRead::Ended => break,
            other => panic!("{other:?}"),
        }
    }
    (records, gaps, verify(&recording, true, &mut |_, _| ()).damage_count)
}

#[test]
fn a_stream_is_recorded_with_its_gaps_and_across_segments() {
    let folder = TempDir::new().unwrap();
    let first = segment(1, 0);
    let (mut follower, later) = follower(folder.path(), &first);
    let mut writer = Writer::new(open(&first));
    publish(&mut writer, 200);
    assert_eq!(follower.poll().unwrap(), 200);
    // More than the ring holds: overwritten records are a gap with exact sequences.
    publish(&mut writer, 3000);
    while follower.poll().unwrap() > 0 {}
    writer.segment().fence(2);
    assert_eq!(follower.poll().unwrap(), 0);
    // The writer died with two records that nobody saw.
    let second = segment(2, 3202);
    publish(&mut Writer::new(open(&second)), 10);
    assert_eq!(follower.poll().unwrap(), 0, "the next segment does not exist yet");
    later.lock().unwrap().push(Arc::clone(&second));
    assert_eq!(follower.poll().unwrap(), 10);
    let recorded = follower.finish().unwrap();
    let (records, gaps, damages) = contents(folder.path());
    assert_eq!(damages, 0);
    let [(200, to, Some(GapReason::Overwritten)), between] = gaps[..] else { panic!("{gaps:?}") };
    assert_eq!(between, (3200, 3202, Some(GapReason::BetweenSegments)));
    assert!(records.into_iter().eq((0..200).chain(to..3200).chain(3202..3212)));
    assert_eq!((recorded.gaps, recorded.lost), (2, to - 200 + 2));
    assert_eq!(recorded.written.records, 200 + 3200 - to + 10);
}

/// A directory in which a recorder has recorded the first records of a stream, all that were published, and has
/// ended.
fn recorded(count: u64) -> (TempDir, Arc<Heap>, Writer<Arc<Heap>>) {
    let folder = TempDir::new().unwrap();
    let first = segment(1, 0);
    let mut writer = Writer::new(open(&first));
    publish(&mut writer, count);
    let (mut one, _) = follower(folder.path(), &first);
    one.poll().unwrap();
    one.finish().unwrap();
    (folder, first, writer)
}

#[test]
fn an_interrupted_recording_is_resumed() {
    let (folder, first, mut writer) = recorded(300);
    // As a kill in the middle of a write leaves it: torn, with its space still reserved.
    let path = folder.path().join(data_name(1));
    let length = std::fs::metadata(&path).unwrap().len();
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(length - 2000).unwrap();
    file.set_len(length + 5000).unwrap();
    let before = sequences(&read_all(&Recording::open(folder.path()).unwrap()));
    assert!(!before.is_empty() && before.len() < 300);
    publish(&mut writer, 50);
    let (mut two, _) = follower(folder.path(), &first);
    two.poll().unwrap();
    let recorded = two.finish().unwrap();
    assert_eq!(recorded.skipped, before.len() as u64, "existing records are not recorded twice");
    assert_eq!(recorded.written.records, 350 - before.len() as u64);
    let reads = read_all(&Recording::open(folder.path()).unwrap());
    assert!(sequences(&reads).into_iter().map(|(_, sequence)| sequence).eq(0..350), "nothing was lost");
    let report = verify(&Recording::open(folder.path()).unwrap(), true, &mut |_, _| ());
    assert!(report.damages.iter().all(|damage| damage.file == path), "{:?}", report.damages);
    assert!(report.damage_count > 0);
    // Another run with the same name counts from 0 again.
    let other = segment(1, 0);
    let stamp = Stamp { generated: u64::MAX, ..record(0, 0).stamp };
    Writer::new(open(&other)).publish(&stamp, b"").unwrap();
    let (mut three, _) = follower(folder.path(), &other);
    let error = three.poll().unwrap_err().to_string();
    assert!(error.contains("another run (found record 0, expected 350)"), "{error}");
}

#[test]
fn the_end_of_a_recording_includes_replacement_segments() {
    // Records of the first segment not taken yet: none, some, and as many as one turn takes.
    for left in [0, 10, 512] {
        let folder = TempDir::new().unwrap();
        let long = |epoch, first_sequence| segment_of(1 << 19, epoch, first_sequence);
        let first = long(1, 0);
        let mut writer = Writer::new(open(&first));
        let (mut follower, later) = follower(folder.path(), &first);
        publish(&mut writer, 10);
        assert_eq!(follower.poll().unwrap(), 10);
        publish(&mut writer, left);
        let (second, third) = (long(2, 10 + left), long(3, 2010 + left));
        publish(&mut Writer::new(open(&second)), 2000);
        publish(&mut Writer::new(open(&third)), 5);
        writer.segment().fence(2);
        open(&second).fence(3);
        *later.lock().unwrap() = vec![second, third];
        let recorded = follower.finish().unwrap();
        assert_eq!((recorded.written.records, recorded.lost), (2015 + left, 0));
        assert!(contents(folder.path()).0.into_iter().eq(0..2015 + left));
    }
}

#[test]
fn the_end_of_a_recording_waits_neither_for_unknown_segments_nor_for_damage() {
    let folder = TempDir::new().unwrap();
    let first = segment(1, 0);
    let (known, _) = follower(folder.path(), &first);
    publish(&mut Writer::new(open(&first)), 10);
    open(&first).fence(2);
    assert_eq!(known.finish().unwrap().written.records, 10, "its next segment does not exist");
    let damaged = segment(1, 0);
    let mut writer = Writer::new(open(&damaged));
    publish(&mut writer, 10);
    let tail = writer.segment().tail();
    let word = |at: usize| &damaged.words()[usize::try_from((HEADER_BYTES + tail) / 8).unwrap() + at];
    word(at::SHAPE).store(pack_shape(u32::MAX, 1, 1), Ordering::Relaxed);
    word(at::COMMIT).store(commit_of(tail), Ordering::Relaxed);
    writer.segment().fence(2);
    let folder = TempDir::new().unwrap();
    let (endless, _) = follower(folder.path(), &damaged);
    assert_eq!(endless.finish().unwrap().written.records, 10);
}

#[test]
fn a_resumed_recording_distinguishes_missed_records_from_lost_ones() {
    // Records published between the two recorders, and while the second one follows; the ring holds about 500.
    for (between, while_following, reason) in [
        (3000, 0, GapReason::NotRecording),
        (50, 3000, GapReason::Overwritten),
        // The recording already contains everything that the second one finds.
        (0, 3000, GapReason::Overwritten),
    ] {
        let (folder, first, mut writer) = recorded(300);
        publish(&mut writer, between);
        let (mut two, _) = follower(folder.path(), &first);
        while two.poll().unwrap() > 0 {}
        publish(&mut writer, while_following);
        while two.poll().unwrap() > 0 {}
        let recorded = two.finish().unwrap();
        let (_, gaps, _) = contents(folder.path());
        let [(from, to, Some(told))] = gaps[..] else { panic!("{gaps:?}") };
        assert_eq!((from, told), (if while_following > 0 { 300 + between } else { 300 }, reason));
        let missed = if reason == GapReason::NotRecording { to - from } else { 0 };
        assert_eq!((recorded.lost, recorded.missed), (to - from, missed));
    }
}

#[test]
fn a_reason_applies_only_to_the_next_record() {
    // In the block that is being filled, and in a new one.
    for epoch in [1, 2] {
        let folder = TempDir::new().unwrap();
        let mut recorder = Recorder::open(folder.path(), options()).unwrap();
        let stream = recorder.add_stream("one", 1, "", None).unwrap();
        recorder.record(stream, 1, &record(0, 0), &payload(0, 0)).unwrap();
        recorder.expect_gap(stream, GapReason::DamagedInMemory);
        for sequence in [1, 5] {
            recorder.record(stream, epoch, &record(0, sequence), &payload(0, sequence)).unwrap();
        }
        recorder.stop().unwrap();
        assert_eq!(contents(folder.path()).1, [(2, 5, Some(GapReason::Overwritten))]);
    }
}

#[test]
fn a_takeover_without_loss_is_not_the_reason_of_a_later_gap() {
    let folder = TempDir::new().unwrap();
    let first = segment(1, 0);
    let (mut follower, later) = follower(folder.path(), &first);
    publish(&mut Writer::new(open(&first)), 10);
    assert_eq!(follower.poll().unwrap(), 10);
    let second = segment(2, 10);
    later.lock().unwrap().push(Arc::clone(&second));
    open(&first).fence(2);
    let mut writer = Writer::new(open(&second));
    publish(&mut writer, 10);
    assert_eq!((follower.poll().unwrap(), follower.poll().unwrap()), (0, 10), "the end, then what follows");
    publish(&mut writer, 3000);
    while follower.poll().unwrap() > 0 {}
    follower.finish().unwrap();
    let (_, gaps, _) = contents(folder.path());
    assert!(matches!(gaps[..], [(20, _, Some(GapReason::Overwritten))]), "{gaps:?}");
}

#[test]
fn one_folder_has_one_recorder() {
    let folder = TempDir::new().unwrap();
    let one = Recorder::open(folder.path(), options()).unwrap();
    let error = Recorder::open(folder.path(), options()).err().unwrap().to_string();
    assert!(error.contains("another process is recording there"), "{error}");
    assert!(Recording::open(folder.path()).unwrap().is_live());
    one.stop().unwrap();
    assert!(!Recording::open(folder.path()).unwrap().is_live());
    Recorder::open(folder.path(), options()).unwrap();
}

#[test]
fn a_record_longer_than_a_block_gets_a_larger_one() {
    let folder = TempDir::new().unwrap();
    let mut recorder = Recorder::open(folder.path(), options()).unwrap();
    let stream = recorder.add_stream("one", 1, "", None).unwrap();
    let long = vec![7; 300 << 10];
    for sequence in 5..9 {
        let bytes = if sequence == 7 { &long[..] } else { b"short" };
        recorder.record(stream, 1, &record(0, sequence), bytes).unwrap();
    }
    recorder.stop().unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    let mut reader = crate::read::StreamReader::new(&recording, stream);
    let mut bytes = Vec::new();
    for sequence in 5..9 {
        assert!(
            matches!(reader.next(&mut bytes), JournalRead::Record(found) if found.record.sequence == sequence)
        );
        assert_eq!(bytes.len(), if sequence == 7 { long.len() } else { 5 });
    }
    assert_eq!(reader.next(&mut bytes), JournalRead::Ended);
    assert_eq!(verify(&recording, true, &mut |_, _| ()).damage_count, 0);
}

/// A disk that fails from some write on, the failing one after half of its bytes.
#[derive(Clone)]
struct Failing<D> {
    disk: D,
    steps: Steps,
}

#[derive(Clone)]
struct Steps {
    left: Arc<AtomicU64>,
    error: i32,
}

struct FailingFile<F> {
    file: F,
    steps: Steps,
}

impl Steps {
    fn step(&self) -> io::Result<()> {
        // Relaxed: one thread writes.
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        left.map(drop).map_err(|_| io::Error::from_raw_os_error(self.error))
    }
}

impl<D: Storage> Storage for Failing<D> {
    type File = FailingFile<D::File>;

    fn create(&self, path: &Path) -> io::Result<Self::File> {
        self.steps.step()?;
        Ok(FailingFile { file: self.disk.create(path)?, steps: self.steps.clone() })
    }

    fn write_whole(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.disk.write_whole(path, bytes)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.disk.sync_folder(folder)
    }
}

impl<F: StoredFile> StoredFile for FailingFile<F> {
    fn allocate(&mut self, bytes: u64) -> io::Result<()> {
        self.steps.step()?;
        self.file.allocate(bytes)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if let Err(error) = self.steps.step() {
            self.file.write_at(&bytes[..bytes.len() / 2], offset)?;
            self.file.flush()?;
            return Err(error);
        }
        self.file.write_at(bytes, offset)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.file.written_to().is_some() {
            self.steps.step()?;
        }
        self.file.flush()
    }

    fn written_to(&self) -> Option<u64> {
        self.file.written_to()
    }

    fn truncate(&mut self, bytes: u64) -> io::Result<()> {
        self.file.truncate(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.steps.step()?;
        self.file.sync()
    }
}

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

fn what_was_written_is_whole(disk: impl Storage + Clone + 'static, steps: u64, error: i32) {
    let folder = TempDir::new().unwrap();
    let disk = Failing { disk, steps: Steps { left: Arc::new(AtomicU64::new(steps)), error } };
    let options = Options { file_bytes_max: 16 << 10, sync: SyncPolicy::Each, ..options() };
    let run = || -> Result<(), RecordError> {
        let mut recorder = Recorder::open_on(disk, folder.path(), options)?;
        let stream = recorder.add_stream("one", 1, "test", Some(0))?;
        for sequence in 0..1000 {
            recorder.record(stream, 1, &record(0, sequence), &payload(0, sequence))?;
        }
        recorder.stop().map(drop)
    };
    let told = run().expect_err("it fails").to_string();
    let wanted = if error == ENOSPC { "free space" } else { "kernel's log" };
    assert!(told.contains(wanted) && told.contains(&folder.path().display().to_string()), "{told}");
    let Ok(recording) = Recording::open(folder.path()) else { return };
    let read = sequences(&read_all(&recording));
    assert!(read.iter().map(|(_, sequence)| *sequence).eq(0..read.len() as u64), "a prefix");
    // No torn block remains: only the missing end is reported.
    let report = verify(&recording, true, &mut |_, _| ());
    let is_end = |damage: &crate::damage::DamagedPlace| damage.problem == crate::damage::Problem::Unfinished;
    assert!(report.damages.iter().all(is_end), "step {steps}: {:?}", report.damages);
}

#[test]
fn whenever_a_disk_fails_written_records_are_intact_and_the_error_is_reported() {
    for (steps, error) in (0..40).flat_map(|steps| [(steps, ENOSPC), (steps, EIO)]) {
        what_was_written_is_whole(CachedDisk, steps, error);
        what_was_written_is_whole(DirectDisk, steps, error);
    }
}

/// Damaged places of a recording, of which a clean end leaves none.
fn damages(folder: &Path) -> Vec<crate::damage::Problem> {
    let report = verify(&Recording::open(folder).unwrap(), true, &mut |_, _| ());
    report.damages.into_iter().map(|damage| damage.problem).collect()
}

#[test]
fn a_recording_that_is_cut_short_has_no_end() {
    let cut = [crate::damage::Problem::Unfinished];
    let folder = TempDir::new().unwrap();
    let mut recorder = Recorder::open(folder.path(), options()).unwrap();
    let stream = recorder.add_stream("one", 1, "test", Some(0)).unwrap();
    recorder.record(stream, 1, &record(0, 0), &payload(0, 0)).unwrap();
    // As its follower does after an error.
    drop(recorder);
    assert_eq!(damages(folder.path()), cut);

    // The next file cannot be created, while there is room for an end in this one.
    let folder = TempDir::new().unwrap();
    let options = Options { file_bytes_max: 16 << 10, ..options() };
    let mut recorder = Recorder::open_on(CachedDisk, folder.path(), options).unwrap();
    std::fs::create_dir(folder.path().join(data_name(2))).unwrap();
    let stream = recorder.add_stream("one", 1, "test", Some(0)).unwrap();
    let mut record = |sequence| recorder.record(stream, 1, &record(0, sequence), &payload(0, sequence));
    // A record or the end reports the error of the writing thread. A recorder that still runs would make the file a live one.
    let is_told = (0..1000).any(|sequence| record(sequence).is_err());
    assert!(recorder.stop().is_err() || is_told);
    std::fs::remove_dir(folder.path().join(data_name(2))).unwrap();
    assert_eq!(damages(folder.path()), cut);
}

#[test]
fn direct_writes_give_the_same_bytes() {
    fn make<S: Storage>(storage: S, folder: &Path) -> Vec<Vec<u8>> {
        let place = Place { streams: vec![crate::testing::entry("one")], ..Place::start() };
        let options = options().bounded();
        let mut files = Files::new(storage, folder, crate::testing::IDENTITY, options, place).unwrap();
        let mut buffer = BlockBuffer::new(options.block_bytes);
        for first in (0..2000).step_by(20) {
            buffer.begin(crate::testing::IDENTITY.recording, 0, 1);
            for sequence in first..first + 20 {
                assert!(buffer.push(&record(0, sequence), &payload(0, sequence)));
            }
            files.append(&mut buffer).unwrap();
            if first % 3 == 0 {
                files.settle().unwrap();
            }
        }
        let written = files.finish().unwrap();
        (1..=written.files).map(|file| std::fs::read(folder.join(data_name(file))).unwrap()).collect()
    }
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let cached = make(CachedDisk, one.path());
    assert!(cached.len() > 1 && cached == make(DirectDisk, other.path()));
}

#[test]
fn spare_blocks_absorb_a_stall() {
    let options = Options { block_bytes: 1 << 16, ..Options::default() };
    let of = |ms, bytes_per_s| options.riding_out(Duration::from_millis(ms), bytes_per_s).spare_blocks;
    assert_eq!(of(500, 128_000_000) << 16, 64_028_672, "no less than 64,000,000");
    assert_eq!((of(0, 1), of(u64::MAX, u64::MAX)), (1, 4096), "bounded");
}

#[test]
fn an_unwritable_directory_is_reported_at_once() {
    let error = Recorder::open(Path::new("/proc/lowlat"), options()).map(drop).unwrap_err().to_string();
    assert!(error.starts_with("cannot create directory /proc/lowlat"), "{error}");
    let file: PathBuf = TempDir::new().unwrap().path().join("x/y");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, b"").unwrap();
    assert!(Recorder::open(&file, options()).is_err());
    std::fs::remove_dir_all(file.parent().unwrap().parent().unwrap()).unwrap();
}

#[test]
fn a_publisher_in_another_thread_is_recorded_without_corruption() {
    let folder = TempDir::new().unwrap();
    let heap = segment(1, 0);
    let (follower, _) = follower(folder.path(), &heap);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let recording = std::thread::spawn(move || follower.run(&stopped).unwrap());
    let mut writer = Writer::new(open(&heap));
    for _ in 0..200 {
        publish(&mut writer, 100);
        std::thread::yield_now();
    }
    stop.store(true, Ordering::Relaxed);
    let recorded = recording.join().unwrap();
    let (records, gaps, damages) = contents(folder.path());
    let lost: u64 = gaps.iter().map(|(from, to, _)| to - from).sum();
    assert_eq!((records.len() as u64 + lost, damages, recorded.lost), (20_000, 0, lost));
}

#[test]
fn only_the_owner_can_read_a_recording() {
    use std::os::unix::fs::MetadataExt;
    for writes in [WriteMethod::Direct, WriteMethod::Cached] {
        let home = TempDir::new().unwrap();
        let folder = home.path().join("above/monday");
        let mut recorder = Recorder::open(&folder, Options { writes, ..options() }).unwrap();
        let stream = recorder.add_stream("one", 1, "", Some(0)).unwrap();
        for sequence in 0..5_000 {
            recorder.record(stream, 1, &record(0, sequence), &payload(0, sequence)).unwrap();
        }
        recorder.stop().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
        assert_eq!([&folder, folder.parent().unwrap()].map(mode), [0o700; 2]);
        let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
        assert!(files.len() > 4, "data and indexes: {files:?}");
        for file in files {
            assert_eq!(mode(&file) & !0o600, 0, "{}", file.display());
        }
    }
}

#[test]
fn an_index_is_not_written_through_a_link() {
    let (folder, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let victim = elsewhere.path().join("victim");
    std::fs::write(&victim, "kept").unwrap();
    std::os::unix::fs::symlink(&victim, folder.path().join("00000001.tmp")).unwrap();
    Recorder::open(folder.path(), options()).unwrap().stop().unwrap();
    assert_eq!(std::fs::read(&victim).unwrap(), b"kept");
    assert!(folder.path().join("00000001.index").symlink_metadata().unwrap().is_file());
}

#[test]
fn the_file_before_that_of_another_recorder_announces_it() {
    let (folder, first, mut writer) = recorded(300);
    publish(&mut writer, 50);
    let (mut two, _) = follower(folder.path(), &first);
    two.poll().unwrap();
    two.finish().unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    assert_eq!(recording.files().len(), 2);
    let report = verify(&recording, true, &mut |_, _| ());
    assert_eq!((report.damage_count, report.files[0].index_problem.as_deref()), (0, None));
    // As with a second recorder that is killed, and its file then lost: it has no index yet.
    for name in [data_name(2), crate::layout::index_name(2)] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let report = verify(&Recording::open(folder.path()).unwrap(), true, &mut |_, _| ());
    assert!(report.damages[0].file.ends_with(data_name(2)), "{:?}", report.damages);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    /// Arbitrary numbers in shared memory: what is recorded of them can be read without damage.
    #[test]
    fn what_a_recorder_takes_its_reader_takes(
        words in proptest::collection::vec(
            (proptest::prop_oneof![0_u64..20, u64::MAX - 6..=u64::MAX, proptest::prelude::any::<u64>()], proptest::prelude::any::<[u64; 4]>()), 1..40,
        ),
        first in proptest::option::of(proptest::prop_oneof![0_u64..3, u64::MAX - 4..=u64::MAX]),
    ) {
        let folder = TempDir::new().unwrap();
        let mut recorder = Recorder::open(folder.path(), options()).unwrap();
        let stream = recorder.add_stream("one", 1, "", first).unwrap();
        let mut taken = 0;
        for (sequence, [position, generated, trigger, cause]) in words {
            let stamp = Stamp { generated, trigger, cause, ..Stamp::default() };
            let found = lowlat_ipc::stream::Record { position, sequence, stamp };
            match recorder.record(stream, 1, &found, b"payload") {
                Ok(()) => taken += 1,
                Err(error) => assert!(error.to_string().contains("it belongs to another run"), "{error}"),
            }
        }
        let recorded = recorder.stop().unwrap();
        let recording = Recording::open(folder.path()).unwrap();
        let report = verify(&recording, true, &mut |_, _| ());
        proptest::prop_assert_eq!(&report.damages, &vec![]);
        proptest::prop_assert!(report.records() == recorded.written.records && report.records() <= taken);
        let mut merge = crate::read::Merge::of_all(&recording);
        let mut reads = 0;
        loop {
            match merge.next(&mut Vec::new()) {
                JournalRead::Record(_) => reads += 1,
                JournalRead::Gap(gap) => proptest::prop_assert!(gap.reason.is_some()),
                JournalRead::Ended => break,
                other => panic!("{other:?}"),
            }
        }
        proptest::prop_assert_eq!(reads, report.records());
    }
}

#[test]
fn a_new_recording_is_refused_before_it_starts() {
    let home = TempDir::new().unwrap();
    let folder = home.path().join("monday");
    Recorder::check_new(&folder, options()).unwrap();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "the check leaves nothing behind");
    let one = Recorder::open(&folder, options()).unwrap();
    let refused = |place: &Path, words: &str, why: &str| {
        let error = Recorder::check_new(place, options()).unwrap_err().to_string();
        assert!(error.contains(words), "{why}: {error}");
    };
    refused(&folder, "another process is recording there", "busy");
    one.stop().unwrap();
    refused(&folder, "it holds a recording", "its file");
    std::fs::remove_file(folder.join(data_name(1))).unwrap();
    refused(&folder, "it holds a recording", "its index");
    std::fs::write(home.path().join("file"), b"").unwrap();
    for place in [home.path().join("file"), PathBuf::from("/proc/lowlat")] {
        refused(&place, "cannot create directory", "no directory");
    }
}

#[test]
fn symbols_are_kept_and_a_damaged_file_of_them_is_none() {
    let folder = tempfile::tempdir().unwrap();
    Maker::new(folder.path(), options(), &["md"]).files.finish().unwrap();
    let symbols = || Recording::open(folder.path()).unwrap().symbols();
    assert_eq!(symbols(), Vec::<String>::new());
    let names = ["AAPL".to_owned(), "600000".to_owned()];
    Recorder::keep_symbols(folder.path(), &names).unwrap();
    assert_eq!(symbols(), names);
    for damaged in [&b"A\xff\n"[..], b"A\x1b[1m\n", &vec![b'a'; 2 << 20]] {
        std::fs::write(folder.path().join("symbols"), damaged).unwrap();
        assert_eq!(symbols(), Vec::<String>::new());
    }
}
