//! Cost of a record in the follower: it is read from shared memory, put into a block with its checks, and
//! handed over. The steps are also measured separately; publishing is not counted.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use lowlat_ipc::{
    region::Heap,
    stream::{Owner, Read, Reader, Record, Segment, Stamp, Writer},
};
use lowlat_journal::record::{
    BlockBuffer, CachedDisk, Follower, Options, Recorder, Source, Storage, StoredFile, SyncPolicy,
};
use std::{
    hint::black_box,
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

const CAPACITY_BYTES: u64 = 1 << 22;
/// Records published before each measurement: the ring holds them all, for every payload below.
const BATCH: u64 = 4096;
const PAYLOADS: [usize; 3] = [48, 64, 512];

/// Storage that discards everything, to exclude the disk.
struct Nowhere;

struct NoFile;

impl Storage for Nowhere {
    type File = NoFile;

    fn create(&self, _: &Path) -> io::Result<NoFile> {
        Ok(NoFile)
    }

    fn write_whole(&self, _: &Path, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        CachedDisk.sync_folder(folder)
    }
}

impl StoredFile for NoFile {
    fn allocate(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], _: u64) -> io::Result<()> {
        black_box(bytes);
        Ok(())
    }

    fn truncate(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn stream() -> (Writer<Arc<Heap>>, Reader<Arc<Heap>>) {
    let heap = Arc::new(Heap::zeroed(Segment::<Heap>::bytes(CAPACITY_BYTES)));
    let segment = Segment::create(Arc::clone(&heap), CAPACITY_BYTES, 1, 1, 0, Owner::default()).unwrap();
    (Writer::new(segment), Reader::from_start(Segment::open(heap).unwrap()))
}

/// Time of `take` for this many records, which are published in batches before.
fn timed(count: u64, writer: &mut Writer<Arc<Heap>>, payload: &[u8], take: &mut dyn FnMut(u64)) -> Duration {
    let (mut left, mut took) = (count, Duration::ZERO);
    while left > 0 {
        let batch = left.min(BATCH);
        for _ in 0..batch {
            writer.publish(&Stamp { kind: 1, schema: 1, ..Stamp::default() }, payload).unwrap();
        }
        let begun = Instant::now();
        take(batch);
        took += begun.elapsed();
        left -= batch;
    }
    took
}

fn steps(criterion: &mut Criterion) {
    for bytes in PAYLOADS {
        let mut group = criterion.benchmark_group(format!("a record of {bytes} bytes"));
        group.throughput(Throughput::Elements(1));
        let payload = vec![7; bytes];
        group.bench_function("read", |bencher| {
            let (mut writer, mut reader) = stream();
            let mut read = Vec::new();
            bencher.iter_custom(|count| {
                timed(count, &mut writer, &payload, &mut |batch| {
                    for _ in 0..batch {
                        assert!(matches!(black_box(reader.next(&mut read)), Read::Record(_)));
                    }
                })
            });
        });
        group.bench_function("put into a block", |bencher| {
            let mut buffer = BlockBuffer::new(Options::default().block_bytes);
            let mut record = Record { position: 0, sequence: 0, stamp: Stamp::default() };
            buffer.begin(1, 0, 1);
            bencher.iter(|| {
                record.sequence += 1;
                if !buffer.push(&record, &payload) {
                    buffer.begin(1, 0, 1);
                }
            });
        });
        group.bench_function("followed", |bencher| {
            let folder = tempfile::TempDir::new().unwrap();
            let options = Options { sync: SyncPolicy::None, ..Options::default() };
            let recorder = Recorder::open_on(Nowhere, folder.path(), options).unwrap();
            let (mut writer, reader) = stream();
            let source = Source { name: "one".to_owned(), schema: String::new(), reader };
            let mut follower = Follower::new(recorder, vec![source], Box::new(|_, _| None)).unwrap();
            bencher.iter_custom(|count| {
                timed(count, &mut writer, &payload, &mut |batch| {
                    let mut taken = 0;
                    while taken < batch {
                        taken += follower.poll().unwrap() as u64;
                    }
                })
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    targets = steps
}
criterion_main!(benches);
