//! Memory is bounded however long a run is: allocations are counted over a simulated day.

mod causes;

use crate::allocator::asked;
use lowlat_host::CpuSet;
use lowlat_jitter::{JitterCpu, JitterRecord};
use lowlat_jitter_run::{
    clock::TickScale,
    jitter::{Companion, CpuRecorder, Lane, RawFiles, SeriesPlan, capacity_for, ring},
};
use std::time::Duration;

const KEPT: usize = 64;
const DAY: Duration = Duration::from_secs(86_400);

/// Varying lengths and times, from 100 ns to some milliseconds.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        // Marsaglia's xorshift.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn a_day_allocates_nothing() {
    const INTERRUPTIONS: u64 = 2_000_000;
    // Time between two polls of the collector. Every tenth poll is skipped, so that the ring overflows.
    const POLLED: u64 = 40_000;
    let directory = tempfile::tempdir().unwrap();
    let mut files = RawFiles::create(&directory.path().join("raw"), &CpuSet::of(0)).unwrap();
    let (producer, consumer) = ring(capacity_for(1));
    let scale = TickScale::NANOSECONDS;
    let mut recorder = CpuRecorder::new(scale, SeriesPlan::of(DAY, 1), KEPT, KEPT).with_ring(Some(producer));
    let mut lanes = [Lane { cpu: 0, thread_id: 1, ring: consumer }];
    let epoch = 5_000_000_000;
    recorder.begin(epoch);

    let mut now = epoch;
    let between = u64::try_from(DAY.as_nanos()).unwrap() / INTERRUPTIONS;
    let (asked, ()) = asked(|| {
        let mut noise = Noise(88_172_645_463_325_252);
        for n in 0..INTERRUPTIONS {
            let length = 100 + noise.next() % (1 << (8 + n % 15));
            recorder.record(now, now + length);
            now += between;
            let is_stuck = (n / POLLED).is_multiple_of(10);
            if n.is_multiple_of(POLLED) && !is_stuck {
                files.collect(epoch, &mut lanes);
            }
        }
        files.finish(&lanes);
    });
    assert_eq!((asked.allocations, asked.bytes_max), (0, 0));
    assert!(lanes[0].ring.lost_count() > 0, "the ring was full at times, without costing memory");

    let record = recorder.into_record(now);
    assert_eq!(record.interruption_count, INTERRUPTIONS);
    assert_eq!((record.worst.len(), record.first.len()), (KEPT, KEPT));
    assert_eq!(record.seconds.len(), 86_400);
    assert_eq!(record.seconds.iter().map(|second| second.count).sum::<u64>(), INTERRUPTIONS);
    files.discard();
}

#[test]
fn writing_the_text_takes_constant_memory() {
    let convert = |count: u64| {
        let directory = tempfile::tempdir().unwrap();
        let mut files = RawFiles::create(&directory.path().join("raw"), &CpuSet::of(0)).unwrap();
        (0..count).for_each(|n| files.push(0, 1_000 + n * 1_000, 1_200 + n * 1_000));
        files.complete(&[]);
        let record = JitterRecord {
            counter_hz: 1_000_000_000,
            start_ticks: 1_000,
            cpus: vec![JitterCpu { stop_ticks: 1 << 40, ..JitterCpu::default() }],
            ..JitterRecord::default()
        };
        let (asked, warnings) = asked(|| files.convert(&record));
        assert_eq!(warnings, []);
        asked.bytes_max
    };
    let (few, many) = (convert(100), convert(100_000));
    assert!(many <= few + 256, "{few} bytes for 100, {many} for 100,000");
}

#[test]
fn a_sampler_takes_the_documented_memory() {
    let kib = |cpus: u32, seconds| {
        let cpus = cpus as usize;
        let series = SeriesPlan::of(Duration::from_secs(seconds), cpus);
        let (asked, _kept) = asked(|| {
            let recorder = CpuRecorder::new(TickScale::NANOSECONDS, series, KEPT, KEPT);
            (recorder, ring(capacity_for(cpus)))
        });
        (asked.bytes_max + 1_023) / 1_024
    };
    // Histogram, series, ring, kept interruptions; see memory.rs.
    for (cpus, seconds, kib_max) in
        [(1, 600, 1_320), (64, 86_400, 3_340), (1_024, 600, 360), (1_024, 86_400, 480), (8_192, 86_400, 340)]
    {
        let taken = kib(cpus, seconds);
        println!(
            "{cpus} CPUs, {seconds} s: {taken} KiB each, {} MiB in all",
            taken * i64::from(cpus) / 1_024
        );
        assert!(taken <= kib_max, "{cpus} CPUs, {seconds} s: {taken} KiB each");
    }
}
