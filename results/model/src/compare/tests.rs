use super::*;
use crate::ResultDocument;
use hdrhistogram::Histogram;
use lowlat_catalogue::{CATALOGUE, testing::list};
use lowlat_host::{Allocation, HostSnapshot, Profile, Reading, Role, histogram};
use lowlat_jitter::{
    Cause, CauseKind, CauseSource, CauseTotal, CounterDelta, CpuCauses, JitterCauses, JitterCpu,
    JitterMeasurement, JitterSecond,
};
use lowlat_settings::{Context, audit::Audit};

const SECOND: u64 = 1_000_000_000;

pub fn compare(before: &JitterRecord, after: &JitterRecord) -> Result<Comparison, ComparisonError> {
    compare_runs(&[before], &[after])
}

/// A CPU with this many interruptions of 1 us and of 5 us, spread evenly over its seconds.
fn cpu(number: CpuId, seconds: u64, short: u64, long: u64) -> JitterCpu {
    let mut held = Histogram::new_with_bounds(1, 1 << 42, 3).unwrap();
    held.record_n(1_000, short).unwrap();
    held.record_n(5_000, long).unwrap();
    let count = short + long;
    let part = |of: u64, at: u64| (at + 1) * of / seconds - at * of / seconds;
    let in_second = |at: u64| JitterSecond {
        count: part(count, at),
        ns_total: part(short, at) * 1_000 + part(long, at) * 5_000,
        ns_max: if part(long, at) > 0 { 5_000 } else { 1_000 * part(short, at).min(1) },
        long_count: Some(0),
    };
    JitterCpu {
        cpu: number,
        runtime_ns: seconds * SECOND,
        interruption_count: count,
        interruption_ns_total: short * 1_000 + long * 5_000,
        interruption_ns_max: if long > 0 { 5_000 } else { 1_000 * u64::from(short > 0) },
        histogram: histogram::encode(&held),
        seconds: (0..=seconds).map(in_second).collect(),
        ..JitterCpu::default()
    }
}

fn run(cpus: Vec<JitterCpu>) -> JitterRecord {
    JitterRecord {
        counter: "tsc".into(),
        threshold_ns: 100,
        duration_ns: cpus.first().map_or(0, |cpu| cpu.runtime_ns),
        cpus,
        ..JitterRecord::default()
    }
}

/// The run with these causes on its first CPU: kind, name, count.
fn caused(mut run: JitterRecord, causes: &[(CauseKind, &str, u64)]) -> JitterRecord {
    let total = |(kind, name, count): &(CauseKind, &str, u64)| CauseTotal {
        cause: Cause { kind: *kind, name: (*name).into(), number: Some(7), ..Cause::default() },
        count: *count,
        ns_total: count * 1_000,
        ..CauseTotal::default()
    };
    let cpu = run.cpus[0].cpu;
    let found = CpuCauses { cpu, totals: causes.iter().map(total).collect(), ..CpuCauses::default() };
    run.causes =
        Some(JitterCauses { source: CauseSource::Trace, cpus: vec![found], ..JitterCauses::default() });
    run
}

fn has_doubt(comparison: &Comparison, piece: &str) -> bool {
    comparison.doubts.iter().any(|doubt| doubt.contains(piece))
}

#[test]
fn a_fall_is_shown_and_a_run_does_not_differ_from_itself() {
    let before = run(vec![cpu(1, 60, 600, 60), cpu(2, 60, 6, 0)]);
    let after = run(vec![cpu(1, 60, 60, 0), cpu(2, 60, 5, 0)]);
    let found = compare(&before, &after).unwrap();
    assert_eq!((found.all.before.count, found.all.after.count), (666, 65));
    assert_eq!(found.all.rate.verdict, RateVerdict::Fewer);
    assert_eq!((found.all.before.length_ns_max, found.all.after.length_ns_max), (Some(5_000), Some(1_000)));
    assert!((found.all.before.lost_share.unwrap() - 906_000.0 / 120e9).abs() < 1e-12);
    let verdicts: Vec<_> = found.by_cpu.iter().map(|cpu| (cpu.cpu, cpu.compared.rate.verdict)).collect();
    assert_eq!(verdicts, [(1, RateVerdict::Fewer), (2, RateVerdict::NoDifferenceShown)]);
    assert!(!found.percentiles.is_empty() && has_doubt(&found, "runs were at different times"), "{found:#?}");

    let same = compare(&before, &before).unwrap();
    assert_eq!((same.all.rate.ratio, same.all.rate.verdict), (Some(1.0), RateVerdict::NoDifferenceShown));
    assert_eq!(compare(&after, &before).unwrap().all.rate.verdict, RateVerdict::More);
}

#[test]
fn differences_of_percentiles_have_intervals() {
    let (short, mixed) = (run(vec![cpu(1, 60, 1_000, 0)]), run(vec![cpu(1, 60, 500, 500)]));
    let at = |found: &Comparison, quantile: f64| {
        let pair = found.percentiles.iter().find(|pair| (pair.quantile - quantile).abs() < 1e-9).unwrap();
        pair.difference.unwrap()
    };
    let longer = at(&compare(&short, &mixed).unwrap(), 0.9);
    assert_eq!(longer.verdict, LengthVerdict::Longer);
    assert!(longer.low_ns > 3_900.0 && longer.high_ns < 4_100.0, "{longer:?}");
    let shorter = at(&compare(&mixed, &short).unwrap(), 0.9);
    assert_eq!(shorter.verdict, LengthVerdict::Shorter);
    // At the median of the mixed run, chance decides between 1 us and 5 us.
    let median = at(&compare(&short, &mixed).unwrap(), 0.5);
    assert!(median.low_ns <= 0.0 && median.high_ns > 3_900.0, "{median:?}");
    assert_eq!(median.verdict, LengthVerdict::NoDifferenceShown);
    for pair in compare(&mixed, &mixed).unwrap().percentiles {
        assert_eq!(pair.difference.unwrap().verdict, LengthVerdict::NoDifferenceShown, "{pair:?}");
    }
}

/// Steal time in a window gives its gaps another class, and no more of them.
#[test]
fn a_changed_class_is_no_vanished_cause() {
    use CauseKind::{FirmwareOrHypervisor, Unexplained};
    let with = |unexplained, firmware| {
        let causes =
            [(Unexplained, "unexplained", unexplained), (FirmwareOrHypervisor, "firmware", firmware)];
        caused(run(vec![cpu(1, 60, unexplained + firmware, 0)]), &causes)
    };
    let verdicts = |before: &JitterRecord, after: &JitterRecord| -> Vec<CauseVerdict> {
        compare(before, after).unwrap().causes.iter().map(|of| of.verdict).collect()
    };
    let (mixed, plain, fewer) = (with(6_000, 6_000), with(11_990, 10), with(6_000, 10));
    assert_eq!(verdicts(&mixed, &plain), [CauseVerdict::NoDifferenceShown; 2]);
    assert!(verdicts(&mixed, &fewer).contains(&CauseVerdict::Fewer));
}

#[test]
fn a_run_that_was_cut_short_is_as_long_as_it_was() {
    let whole = run(vec![cpu(1, 610, 10, 0)]);
    let cut = JitterRecord { duration_ns: whole.duration_ns, ..run(vec![cpu(1, 20, 1, 0)]) };
    let found = compare(&whole, &cut).unwrap();
    assert!(has_doubt(&found, "the runs last 20 s to 610 s"), "{:#?}", found.doubts);
}

#[test]
fn bursts_take_the_verdict_back() {
    let steady = |count| run(vec![cpu(1, 60, count, 0)]);
    assert_eq!(compare(&steady(200), &steady(120)).unwrap().all.rate.verdict, RateVerdict::Fewer);
    let mut burst = steady(200);
    for (at, second) in burst.cpus[0].seconds.iter_mut().enumerate() {
        second.count = if at == 7 || at == 30 { 100 } else { 0 };
    }
    let found = compare(&burst, &steady(120)).unwrap();
    assert_eq!(found.all.rate.verdict, RateVerdict::NoDifferenceShown);
    assert!(found.all.rate.dispersion.unwrap() > 90.0 && has_doubt(&found, "come in bursts"));
}

/// A regular cause that vanishes among bursts of others is seen, one that came in a single burst is not.
#[test]
fn a_cause_is_compared_with_its_own_bursts() {
    let mut bursts = run(vec![cpu(1, 60, 200, 0)]);
    for (at, second) in bursts.cpus[0].seconds.iter_mut().enumerate() {
        second.count = if at == 7 { 100_000 } else { 0 };
    }
    let causes = [(CauseKind::Vector, "local timer", 813), (CauseKind::Softirq, "NET_RX", 813)];
    let mut before = caused(bursts.clone(), &causes);
    let of_cpu = &mut before.causes.as_mut().unwrap().cpus[0];
    of_cpu.window_count = 60;
    for (total, square_sum) in of_cpu.totals.iter_mut().zip([60 * 14 * 14, 813 * 813]) {
        (total.windowed_count, total.windowed_square_sum) = (813, square_sum);
    }
    let mut after = caused(bursts, &[]);
    after.causes.as_mut().unwrap().cpus[0].window_count = 60;
    let verdicts = |found: &Comparison| {
        let mut all: Vec<_> = found.causes.iter().map(|of| (of.cause.name.clone(), of.verdict)).collect();
        all.sort_by(|one, other| one.0.cmp(&other.0));
        all
    };
    let (timer, net) = ("local timer".to_owned(), "NET_RX".to_owned());
    let nothing = CauseVerdict::NoDifferenceShown;
    assert_eq!(
        verdicts(&compare(&before, &after).unwrap()),
        [(net.clone(), nothing), (timer.clone(), CauseVerdict::Vanished)]
    );
    // Documents of earlier versions have only the series of all interruptions.
    before.causes.as_mut().unwrap().cpus[0].window_count = 0;
    assert_eq!(verdicts(&compare(&before, &after).unwrap()), [(net, nothing), (timer, nothing)]);
}

#[test]
fn causes_vanish_only_when_chance_cannot_do_it() {
    use CauseKind::{Hrtimer, Irq, Thread, Work};
    let quiet = || run(vec![cpu(1, 60, 60, 0)]);
    let before = caused(
        quiet(),
        &[
            (Hrtimer, "tick_nohz_handler", 15_000),
            (Irq, "eth0", 3),
            (Work, "vmstat_update", 40),
            (Thread, "kworker/1:2", 20),
            (Work, "0xffffffff81000000", 9),
        ],
    );
    let after = caused(
        quiet(),
        &[
            (Irq, "nvme0q3", 50),
            (Work, "vmstat_update", 10),
            (Thread, "kworker/1:0", 22),
            (Work, "0xffffffff92000000", 9),
        ],
    );
    let found = compare(&before, &after).unwrap();
    let rows: Vec<(&str, CauseVerdict)> =
        found.causes.iter().map(|cause| (cause.cause.name.as_str(), cause.verdict)).collect();
    assert_eq!(
        rows,
        [
            ("tick_nohz_handler", CauseVerdict::Vanished),
            ("nvme0q3", CauseVerdict::Appeared),
            ("vmstat_update", CauseVerdict::Fewer),
            ("kworker/1", CauseVerdict::NoDifferenceShown),
            ("(not named)", CauseVerdict::NoDifferenceShown),
            ("eth0", CauseVerdict::NoDifferenceShown),
        ]
    );
    let eth0 = found.causes.last().unwrap();
    assert!(eth0.caveat.starts_with("seen 3 times before and never after"), "{}", eth0.caveat);
    assert!(found.causes.iter().take(5).all(|cause| cause.caveat.is_empty()));
    assert!(found.causes.iter().all(|cause| cause.cause.number.is_none()));
    let back = compare(&after, &before).unwrap();
    assert_eq!(back.causes[0].verdict, CauseVerdict::Appeared);
    assert_eq!(
        back.causes.last().unwrap().caveat.split(',').next(),
        Some("seen 3 times after and never before")
    );
}

#[test]
fn causes_of_different_sources_are_not_compared() {
    let traced = caused(run(vec![cpu(1, 60, 9, 0)]), &[(CauseKind::Irq, "eth0", 3)]);
    let mut counted = run(vec![cpu(1, 60, 9, 0)]);
    let cause = Cause { kind: CauseKind::Irq, name: "eth0".into(), ..Cause::default() };
    let counters = vec![CounterDelta { cause, count: 80 }];
    counted.causes = Some(JitterCauses {
        source: CauseSource::Counters,
        cpus: vec![CpuCauses { cpu: 1, counters, ..CpuCauses::default() }],
        ..JitterCauses::default()
    });
    let found = compare(&traced, &counted).unwrap();
    assert!(found.causes.is_empty() && has_doubt(&found, "from the kernel's counters after"));
    let both = compare(&counted, &counted).unwrap();
    assert_eq!((both.causes[0].before.count, both.causes[0].after.count), (80, 80));
    assert!(has_doubt(&both, "increases of the kernel's counters"));
    assert!(compare(&run(vec![cpu(1, 60, 9, 0)]), &traced).unwrap().causes.is_empty());
}

#[test]
fn different_thresholds_are_brought_to_the_higher_one() {
    let before = run(vec![cpu(1, 60, 500, 50)]);
    let after = JitterRecord { threshold_ns: 2_000, ..caused(run(vec![cpu(1, 60, 0, 48)]), &[]) };
    let found = compare(&before, &after).unwrap();
    assert_eq!((found.threshold_ns, found.all.before.count, found.all.after.count), (2_000, 50, 48));
    assert_eq!(found.all.rate.verdict, RateVerdict::NoDifferenceShown);
    assert_eq!((found.all.before.lost_share, found.percentiles.len()), (None, 0));
    assert!(has_doubt(&found, "thresholds differ"));
    // The side with the higher threshold knows nothing of shorter waits.
    assert!(found.time_percentiles.iter().all(|pair| pair.before_ns.min(pair.after_ns) >= 2_000));
    assert!(!found.time_quantiles_left_out.is_empty());
    // Only the longest are known of both.
    let judged: Vec<Quantity> = found.harm.quantities.iter().map(|of| of.quantity).collect();
    assert_eq!(judged, [Quantity::Long, Quantity::Longest]);
    let limit = found.limit(&[&before], &[&after], &"lost=1000%".parse().unwrap());
    assert_eq!((limit.verdict, limit.quantities[0].figures), (LimitVerdict::NotShown, None));
}

#[test]
fn only_cpus_of_both_sides_are_compared() {
    let before = run(vec![cpu(0, 60, 60_000, 0), cpu(1, 60, 60, 0)]);
    let after = run(vec![cpu(1, 60, 61, 0), cpu(2, 60, 0, 0)]);
    let found = compare(&before, &after).unwrap();
    assert_eq!((found.cpus.to_list().as_str(), found.all.before.count, found.by_cpu.len()), ("1", 60, 1));
    assert!(has_doubt(&found, "CPUs 0,2 left out"));
    let apart = compare(&run(vec![cpu(0, 60, 600, 0)]), &run(vec![cpu(1, 60, 60, 0)])).unwrap();
    assert!(apart.cpus.is_empty() && apart.by_cpu.is_empty() && has_doubt(&apart, "no CPU was measured"));
    assert_eq!(apart.all.rate.verdict, RateVerdict::Fewer);
}

#[test]
fn other_differences_are_doubts() {
    let before = run(vec![cpu(1, 60, 60, 0)]);
    let mut after = run(vec![cpu(1, 600, 600, 0)]);
    after.counter = "clock_monotonic_raw".into();
    after.real_time = Some("SCHED_FIFO 10".into());
    after.warnings.push("it moved".into());
    let found = compare(&before, &after).unwrap();
    for piece in ["different counters", "different priorities", "60 s to 600 s", "0 before and 1 after"] {
        assert!(has_doubt(&found, piece), "{piece}: {:#?}", found.doubts);
    }
    let short = compare(&run(vec![cpu(1, 5, 60, 0)]), &run(vec![cpu(1, 5, 60, 0)])).unwrap();
    assert!(short.all.rate.dispersion.is_none() && has_doubt(&short, "too short or too quiet"));
}

#[test]
fn interleaved_runs_are_pooled() {
    let (a, b) = (run(vec![cpu(1, 60, 60, 0)]), run(vec![cpu(1, 60, 50, 0)]));
    let found = compare_runs(&[&a, &a], &[&b, &b]).unwrap();
    assert_eq!((found.all.before.count, found.all.after.count), (120, 100));
    assert!((found.all.before.core_seconds - 120.0).abs() < 1e-9);
    assert!(!has_doubt(&found, "runs were at different times") && found.percentiles.is_empty());
    assert_eq!(compare_runs(&[], &[&a]).unwrap_err(), ComparisonError::NoRun(SideName::Before));
    let woken = |every_ns| JitterRecord { wake_every_ns: Some(every_ns), ..a.clone() };
    assert_eq!(compare_runs(&[&a], &[&woken(1_000_000)]).unwrap_err(), ComparisonError::Wakes);
    assert_eq!(compare_runs(&[&woken(1_000)], &[&woken(1_000_000)]).unwrap_err(), ComparisonError::Wakes);
    assert!(compare_runs(&[&woken(1_000)], &[&woken(1_000)]).is_ok());
}

#[test]
fn hostile_records_do_no_harm() {
    let mut twice = run(vec![cpu(1, 60, 60, 0), cpu(1, 60, 60, 0), cpu(u32::MAX, 60, 5, 0)]);
    twice.cpus[0].runtime_ns = u64::MAX;
    twice.cpus[0].seconds[0].count = u64::MAX;
    let found = compare(&twice, &twice).unwrap();
    assert_eq!((found.cpus.to_list().as_str(), found.all.before.count), ("1", 60));
    let mut damaged = run(vec![cpu(1, 60, 60, 0)]);
    damaged.cpus[0].histogram = "junk".into();
    let error = compare(&damaged, &twice).unwrap_err().to_string();
    assert!(error.starts_with("before the change: cannot read the jitter record of CPU 1: "), "{error}");
    let nothing = compare(&JitterRecord::default(), &JitterRecord::default()).unwrap();
    assert_eq!((nothing.all.rate.ratio, nothing.all.rate.verdict), (None, RateVerdict::NoDifferenceShown));
}

fn document(host: HostSnapshot, jitter: Option<JitterRecord>, started_at: &str) -> ResultDocument {
    let allocation = Allocation { housekeeping: list("0"), isolated: list("1"), ..Allocation::default() };
    let role = Role::default();
    let context = Context {
        host: &host,
        role: &role,
        allocation: &allocation,
        profile: Profile::Trading,
        catalogue: CATALOGUE,
    };
    ResultDocument {
        document: ResultDocument::DOCUMENT.into(),
        schema_version: ResultDocument::SCHEMA_VERSION,
        lowlat_version: "0".into(),
        command: "jitter".into(),
        started_at: started_at.into(),
        elapsed_s: 60.0,
        is_interrupted: false,
        labels: lowlat_host::Labels::default(),
        audit: Audit::of(&context),
        role,
        snapshot: host,
        allocation,
        measurements: jitter.map(|record| JitterMeasurement::from(record).into()).into_iter().collect(),
        readiness: Vec::new(),
        warnings: Vec::new(),
    }
}

#[test]
fn documents_tell_what_changed_and_link_it_to_causes() {
    let mut host = HostSnapshot::default();
    host.topology.online = list("0-1");
    host.topology.nohz_full = Reading::Known(CpuSet::new());
    host.kernel.command_line = Reading::Known(lowlat_host::cmdline::CommandLine::parse("quiet"));
    host.kernel.release = Reading::Known("6.1.0".into());
    let mut tuned = host.clone();
    tuned.topology.nohz_full = Reading::Known(list("1"));
    tuned.kernel.command_line = Reading::Known(lowlat_host::cmdline::CommandLine::parse("nohz_full=1"));
    tuned.kernel.release = Reading::Known("6.12.0".into());
    let tick = [(CauseKind::Hrtimer, "tick_nohz_handler", 15_000), (CauseKind::Thread, "sh", 40)];
    let with_tick = caused(run(vec![cpu(1, 60, 15_040, 0)]), &tick);
    let without = caused(run(vec![cpu(1, 60, 40, 0)]), &tick[1..]);
    let before = document(host.clone(), Some(with_tick), "2026-01-02T00:00:00Z");
    let after = document(tuned, Some(without), "2026-01-01T00:00:00Z");

    let found = compare_documents(&[&before], &[&after]).unwrap();
    let nohz = found.setting_changes.iter().find(|change| change.id == "boot.nohz_full").unwrap();
    assert_eq!(nohz.verdict_after, lowlat_settings::Verdict::Good);
    assert_eq!(found.causes[0].verdict, CauseVerdict::Vanished);
    assert_eq!(found.causes[0].changed_settings, ["boot.nohz_full"]);
    assert!(found.causes[1].changed_settings.is_empty());
    assert!(found.differences.iter().any(|difference| difference.path == "kernel.release"));
    assert!(has_doubt(&found, "the kernels differ: 6.1.0, 6.12.0") && has_doubt(&found, "check their order"));
    assert_eq!(found.before[0].kernel, "6.1.0");
    let json = serde_json::to_string(&found).unwrap();
    let read: Comparison = serde_json::from_str(&json).unwrap();
    // Doubles may lose their last bit in text.
    assert_eq!((read.by_cpu.len(), read.causes.len()), (found.by_cpu.len(), found.causes.len()));
    assert_eq!((read.setting_changes, read.differences), (found.setting_changes, found.differences));
    assert_eq!((read.all.before.count, read.causes[0].verdict), (15_040, CauseVerdict::Vanished));

    let bare = document(host, None, "2026-01-03T00:00:00Z");
    let error = compare_documents(&[&before], &[&bare]).unwrap_err().to_string();
    assert!(error.contains("after the change") && error.contains("`lowlat jitter`"), "{error}");
}
