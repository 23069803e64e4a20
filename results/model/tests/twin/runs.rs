//! Jitter records with the interruptions that a host's settings let through, and a background that all hosts have.

use hdrhistogram::Histogram;
use lowlat_catalogue::testing::Bench;
use lowlat_host::{CpuId, histogram};
use lowlat_jitter::{
    Cause, CauseKind, CauseSource, CauseTotal, CpuCauses, JitterCauses, JitterCpu, JitterMeasurement,
    JitterRecord, JitterSecond,
};

const SECONDS: u32 = 60;
const SECOND_NS: u64 = 1_000_000_000;

/// A cause on isolated CPUs: kind, name, events per second, mean length.
pub type Hit = (CauseKind, &'static str, f64, u64);

/// Interruptions of every host, whatever its settings: a program's own faults and signals, an expedited grace period,
/// the kernel's rare work.
const BACKGROUND: &[Hit] = &[
    (CauseKind::PageFault, "", 0.4, 700),
    (CauseKind::CallFunction, "do_sync_core", 0.2, 2_500),
    (CauseKind::Work, "vmstat_update", 0.05, 1_800),
    (CauseKind::Irq, "nvme0q3", 0.1, 3_100),
    (CauseKind::Thread, "sshd", 0.02, 14_000),
    (CauseKind::Unexplained, "", 0.3, 450),
];

/// The measurement of a host for a minute, on its isolated CPUs and one housekeeping CPU.
pub fn jitter(bench: &Bench, causes: &[Hit], seed: u64) -> JitterMeasurement {
    let mut random = fastrand::Rng::with_seed(seed);
    let isolated: Vec<CpuId> = bench.allocation.isolated.iter().collect();
    let busy = bench.allocation.housekeeping.iter().next();
    let mut record = JitterRecord {
        counter: "tsc".into(),
        counter_hz: 3_000_000_000,
        threshold_ns: 100,
        duration_ns: u64::from(SECONDS) * SECOND_NS,
        second_ns: SECOND_NS,
        ..JitterRecord::default()
    };
    let mut found = JitterCauses { source: CauseSource::Trace, ..JitterCauses::default() };
    for cpu in isolated.into_iter().chain(busy) {
        let is_busy = Some(cpu) == busy;
        // The tick and the kernel's threads belong on a housekeeping CPU, there at the same rate on every host.
        let tick: &[Hit] = &[
            (CauseKind::Hrtimer, "tick_nohz_handler", 250.0, 2_600),
            (CauseKind::Thread, "kworker/u64:2", 9.0, 8_000),
            (CauseKind::Irq, "eth0-0", 90.0, 3_000),
        ];
        let own: Vec<Hit> = if is_busy {
            BACKGROUND.iter().chain(tick).copied().collect()
        } else {
            BACKGROUND.iter().chain(causes).copied().collect()
        };
        let (measured, totals) = one(cpu, &own, &mut random);
        record.cpus.push(measured);
        found.cpus.push(CpuCauses { cpu, totals, ..CpuCauses::default() });
    }
    record.causes = Some(found);
    JitterMeasurement::from(record)
}

fn one(cpu: CpuId, hits: &[Hit], random: &mut fastrand::Rng) -> (JitterCpu, Vec<CauseTotal>) {
    let mut lengths = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3).unwrap();
    let mut seconds = vec![JitterSecond::default(); SECONDS as usize + 1];
    let (mut totals, mut count, mut ns_total) = (Vec::new(), 0, 0);
    for (kind, name, rate, mean_ns) in hits {
        let name = name.replace("{cpu}", &cpu.to_string());
        let cause = Cause { kind: *kind, name, number: Some(i64::from(cpu) + 40), ..Cause::default() };
        let mut total = CauseTotal { cause, ..CauseTotal::default() };
        for second in seconds.iter_mut().take(SECONDS as usize) {
            for _ in 0..drawn(*rate, random) {
                let length_ns = mean_ns / 2 + random.u64(0..*mean_ns);
                lengths.record(length_ns).unwrap();
                second.count += 1;
                second.ns_total += length_ns;
                second.ns_max = second.ns_max.max(length_ns);
                total.count += 1;
                total.ns_total += length_ns;
                total.ns_max = total.ns_max.max(length_ns);
            }
        }
        (count, ns_total) = (count + total.count, ns_total + total.ns_total);
        total.main_count = total.count;
        if total.count > 0 {
            totals.push(total);
        }
    }
    let measured = JitterCpu {
        cpu,
        runtime_ns: u64::from(SECONDS) * SECOND_NS,
        interruption_count: count,
        interruption_ns_total: ns_total,
        interruption_ns_max: totals.iter().map(|of| of.ns_max).max().unwrap_or(0),
        histogram: histogram::encode(&lengths),
        seconds,
        ..JitterCpu::default()
    };
    (measured, totals)
}

/// The number of events of one second: a draw from a Poisson distribution.
fn drawn(rate: f64, random: &mut fastrand::Rng) -> u64 {
    let (limit, mut product, mut count) = ((-rate).exp(), random.f64(), 0);
    while product > limit {
        product *= random.f64();
        count += 1;
    }
    count
}
