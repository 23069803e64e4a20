//! Jitter records made by a small generator with a fixed seed: quiet isolated CPUs, busy housekeeping ones.

use hdrhistogram::Histogram;
use lowlat_host::{Allocation, Reading, histogram};
use lowlat_jitter::{Interruption, JitterCpu, JitterRecord, JitterSecond};

const SECOND: u64 = 1_000_000_000;
const WORST_MAX: usize = 10;

struct Random(u64);

impl Random {
    /// A number below `end`, from Knuth's MMIX generator.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end.max(1)
    }
}

/// A record over CPUs 0 to `cpus` - 1.
pub fn record(allocation: &Allocation, cpus: u32, seconds: u64) -> JitterRecord {
    JitterRecord {
        cpus: (0..cpus).map(|cpu| one(cpu, allocation.housekeeping.contains(cpu), seconds)).collect(),
        ..frame(seconds)
    }
}

/// Returns a record without CPUs.
fn frame(seconds: u64) -> JitterRecord {
    JitterRecord {
        counter: "tsc".into(),
        counter_hz: 3_693_058_000,
        counter_hz_source: "cpuid 0x15".into(),
        second_ns: SECOND,
        threshold_ns: 100,
        duration_ns: seconds * SECOND,
        ..JitterRecord::default()
    }
}

/// A record of a few tuned CPUs on which next to nothing happens.
pub fn quiet_record(cpus: &[u32], seconds: u64) -> JitterRecord {
    let hits =
        [(88_000_412_555, 410), (301_551_000_007, 1_312), (301_551_000_977, 980), (588_104_330_200, 640)];
    let quiet = |cpu: u32| {
        let hits = hits.iter().filter(|(at_ns, _)| (at_ns % 2 == 0) == cpu.is_multiple_of(2));
        let all: Vec<Interruption> =
            hits.map(|(at_ns, length_ns)| Interruption { at_ns: *at_ns, length_ns: *length_ns }).collect();
        let mut record = JitterCpu {
            cpu,
            runtime_ns: seconds * SECOND,
            loop_period_ns: 8.1,
            loop_floor_ns: 7.6,
            seconds: vec![JitterSecond::default(); seconds as usize],
            steal_ns: Reading::Known(0),
            ..JitterCpu::default()
        };
        let mut lengths = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
        for hit in &all {
            lengths.record(hit.length_ns).unwrap();
            let second = &mut record.seconds[(hit.at_ns / SECOND) as usize];
            (second.count, second.ns_total, second.ns_max) = (1, hit.length_ns, hit.length_ns);
        }
        keep(&mut record, all, &lengths);
        record
    };
    let frame = JitterRecord { cpus: cpus.iter().map(|cpu| quiet(*cpu)).collect(), ..frame(seconds) };
    JitterRecord { real_time: Some("SCHED_FIFO 10".into()), ..frame }
}

fn one(cpu: u32, is_busy: bool, seconds: u64) -> JitterCpu {
    let mut random = Random(u64::from(cpu) * 77 + 5);
    let mut lengths = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
    let mut all = Vec::new();
    let mut record = JitterCpu {
        cpu,
        runtime_ns: seconds * SECOND,
        loop_period_ns: 8.1,
        loop_floor_ns: 7.6,
        loop_count: seconds * SECOND / 8,
        steal_ns: Reading::Known(0),
        ..JitterCpu::default()
    };
    for second in 0..seconds {
        let mut sums = JitterSecond::default();
        let count = if is_busy { 250 + random.below(80) } else { 1 + random.below(3) };
        for _ in 0..count {
            let length_ns = length(&mut random, is_busy);
            let at_ns = second * SECOND + random.below(SECOND);
            lengths.record(length_ns).unwrap();
            all.push(Interruption { at_ns, length_ns });
            sums.count += 1;
            sums.ns_total += length_ns;
            sums.ns_max = sums.ns_max.max(length_ns);
        }
        record.seconds.push(sums);
    }
    // One CPU that is meant to be quiet is hit hard, once.
    if cpu == 5 {
        let hit = Interruption { at_ns: 31 * SECOND + 402_118_733, length_ns: 1_284_551 };
        lengths.record(hit.length_ns).unwrap();
        all.push(hit);
        if let Some(second) = record.seconds.get_mut(31) {
            second.count += 1;
            second.ns_total += hit.length_ns;
            second.ns_max = hit.length_ns;
        }
    }
    keep(&mut record, all, &lengths);
    record
}

/// Puts the interruptions into the record of their CPU.
fn keep(record: &mut JitterCpu, mut all: Vec<Interruption>, lengths: &Histogram<u64>) {
    record.interruption_count = all.len() as u64;
    record.interruption_ns_total = all.iter().map(|hit| hit.length_ns).sum();
    record.interruption_ns_max = all.iter().map(|hit| hit.length_ns).max().unwrap_or(0);
    record.histogram = histogram::encode(lengths);
    all.sort_by_key(|hit| hit.at_ns);
    record.first = all.iter().take(WORST_MAX).copied().collect();
    all.sort_by_key(|hit| std::cmp::Reverse(hit.length_ns));
    record.worst = all.into_iter().take(WORST_MAX).collect();
}

fn length(random: &mut Random, is_busy: bool) -> u64 {
    let tail = random.below(1_000);
    match (is_busy, tail) {
        (true, 0..5) => 40_000 + random.below(260_000),
        (true, 5..200) => 4_000 + random.below(9_000),
        (true, _) => 1_400 + random.below(1_900),
        (false, 0..20) => 6_000 + random.below(14_000),
        (false, _) => 900 + random.below(1_700),
    }
}
