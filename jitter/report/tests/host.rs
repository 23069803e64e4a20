//! A made-up host: six isolated CPUs of eight, with faults that a test chooses.

use lowlat_host::{CpuSet, Profile, Reading};
use lowlat_jitter::{
    CounterDelta, cause_of_irq, cause_of_row, cause_of_softirq, timeslices,
    watch::{Interval, RanThread, ReadCounters, Sampled, SampledCause, SampledCpu},
};
use lowlat_jitter_report::watch::{Settings, Step, Subject, Watch};
use lowlat_plan::verify::{Counts, Culprit, CulpritKind, Headline, Row, Standing, Verification};
use std::collections::BTreeMap;

/// 2026-11-24 14:03:07 UTC.
pub const START_MS: u64 = 1_795_442_587_000;
const SECOND_NS: u64 = 1_000_000_000;

pub fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

pub fn subject(cpus: &str, quiet: &str) -> Subject {
    Subject {
        host: "desk7".to_owned(),
        cpus: set(cpus),
        quiet: if quiet.is_empty() { CpuSet::new() } else { set(quiet) },
        is_isolated: cpus == quiet,
        every_ns: SECOND_NS,
        is_sampling: false,
        version: "0.1.0".to_owned(),
    }
}

pub fn vector(row: &str, count: u64) -> CounterDelta {
    CounterDelta { cause: cause_of_row(row, "").unwrap(), count }
}

pub fn irq(number: u32, name: &str, count: u64) -> CounterDelta {
    CounterDelta { cause: cause_of_irq(number, &[name.to_owned()]), count }
}

pub fn softirq(name: &str, count: u64) -> CounterDelta {
    CounterDelta { cause: cause_of_softirq(name), count }
}

pub fn switches(count: u64) -> CounterDelta {
    CounterDelta { cause: timeslices(), count }
}

pub fn thread(pid: i32, comm: &str, cpu: u32, ran_ns: u64, allowed: &str, is_kernel: bool) -> RanThread {
    RanThread {
        pid,
        tid: pid,
        comm: comm.to_owned(),
        cpu,
        ran_ns: Some(ran_ns),
        is_kernel,
        cpus_allowed: Reading::Known(set(allowed)),
    }
}

/// A quiet second, `number` seconds after the start.
pub fn quiet_step(number: u64) -> Step {
    let nic = BTreeMap::from([("rx_dropped".to_owned(), 0), ("rx_missed_errors".to_owned(), 12)]);
    Step {
        at_unix_ms: START_MS + 1_000 * number,
        interval: Interval {
            elapsed_ns: SECOND_NS,
            counted: (2..8).map(|cpu| (cpu, vec![vector("LOC", 1)])).collect(),
            read: ReadCounters { interrupts: true, softirqs: true, switches: true, steal: true },
            threads: Reading::Known(Vec::new()),
            drops: BTreeMap::from([("eth0".to_owned(), nic.clone()), ("lo".to_owned(), BTreeMap::new())]),
            ticks_per_s: 250,
            own_cpu_ns: 4_000_000,
            doubts: Vec::new(),
        },
        pipelines: Reading::Known(Vec::new()),
        ..Step::default()
    }
}

/// The second after it: a ticking CPU, a device interrupt, intruders, lost packets, a changed setting.
pub fn bad_step(number: u64) -> Step {
    let mut step = quiet_step(number);
    let interval = &mut step.interval;
    interval.counted.insert(
        3,
        vec![vector("LOC", 1_000), softirq("TIMER", 250), softirq("RCU", 31), switches(40), vector("RES", 2)],
    );
    interval.counted.insert(5, vec![irq(47, "nvme0q3", 120), softirq("BLOCK", 118), vector("LOC", 1)]);
    interval.threads = Reading::Known(vec![
        thread(18, "ksoftirqd/5", 5, 310_000, "5", true),
        thread(300, "md", 6, 999_000_000, "6", false),
        thread(812, "cron", 4, 2_400_000, "0-7", false),
        thread(47, "kworker/u16:2", 3, 81_000, "0-7", true),
    ]);
    let eth0 = interval.drops.get_mut("eth0").unwrap();
    eth0.insert("rx_missed_errors".to_owned(), 19);
    step.pipelines = Reading::Known(vec!["process 4711 (run monday)".to_owned()]);
    step
}

/// A plan of sixty rows, of which `faults` are not held.
pub fn settings(faults: Vec<Row>) -> Settings {
    let held = (0..60 - faults.len()).map(|number| row(&format!("row {number}"), "1", "1", Standing::Held));
    let rows: Vec<Row> = faults.into_iter().chain(held).collect();
    Settings::Compared(Box::new(Verification {
        document: Verification::DOCUMENT.to_owned(),
        schema_version: Verification::SCHEMA_VERSION,
        lowlat_version: "0.1.0".to_owned(),
        plan_id: "3f2a90c4d1".to_owned(),
        profile: Profile::Trading,
        boot_id: Reading::Absent,
        applied_boot_id: Reading::Absent,
        applied_unix_ms: None,
        verified_unix_ms: START_MS,
        housekeeping: set("0-1"),
        isolated: set("2-7"),
        is_of_other_host: false,
        headline: Headline::default(),
        counts: Counts::of(&rows),
        rows,
        ticks: None,
        warnings: Vec::new(),
    }))
}

pub fn row(what: &str, planned: &str, observed: &str, standing: Standing) -> Row {
    Row {
        change: Some(0),
        settings: Vec::new(),
        layer: "sysctl".to_owned(),
        what: what.to_owned(),
        planned: planned.to_owned(),
        observed: Reading::Known(observed.to_owned()),
        standing,
        by: None,
        note: String::new(),
    }
}

pub fn swappiness() -> Row {
    let by = Culprit {
        kind: CulpritKind::SysctlFile,
        name: "/etc/sysctl.d/90-database.conf".to_owned(),
        line: Some(3),
        does: "sets vm.swappiness = 60".to_owned(),
    };
    Row { by: Some(by), ..row("vm.swappiness", "0", "60", Standing::Overridden) }
}

/// A watch after one quiet and one bad second.
pub fn bad_watch() -> Watch {
    let mut watch = Watch::new(subject("2-7", "2-7"));
    watch.take(Step { settings: Some(settings(Vec::new())), ..quiet_step(0) });
    watch.take(Step { settings: Some(settings(vec![swappiness()])), ..bad_step(1) });
    watch
}

/// Interruptions of a CPU by causes with their number and total time.
pub fn sampled(cpu: u32, causes: &[(CounterDelta, u64)]) -> SampledCpu {
    let causes = causes.iter().map(|(delta, ns_total)| SampledCause {
        cause: delta.cause.clone(),
        count: delta.count,
        ns_total: *ns_total,
        ns_max: ns_total / delta.count * 2,
    });
    let mut sum = SampledCpu { cpu, ..SampledCpu::default() };
    for cause in causes {
        let (count, ns_total, ns_max) = (cause.count, cause.ns_total, cause.ns_max);
        sum.add(SampledCpu { cpu, count, ns_total, ns_max, causes: vec![cause], lost_count: 0 });
    }
    sum
}

/// The bad second, with CPUs sampled.
pub fn sampled_watch() -> Watch {
    let mut watch = Watch::new(Subject { is_sampling: true, ..subject("2-7", "2-7") });
    let cpus = vec![
        sampled(2, &[(vector("LOC", 1), 1_240)]),
        sampled(3, &[(vector("LOC", 1_000), 2_600_000), (softirq("RCU", 31), 190_000)]),
        sampled(5, &[(irq(47, "nvme0q3", 120), 840_000), (softirq("BLOCK", 118), 1_400_000)]),
    ];
    watch.take(Step { settings: Some(Settings::NoPlan), sampled: Some(Sampled { cpus }), ..bad_step(0) });
    watch
}
