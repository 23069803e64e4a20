//! Runs of the sampler on this host, with injected interruptions of known times and lengths.
//!
//! No test asserts an upper time: the machine may be busy with anything else.

use crate::{alone, calibrated};
use lowlat_host::{CpuId, CpuSet, histogram::decode};
use lowlat_host_run::Root;
use lowlat_host_run::{affinity, affinity::pin_to};
use lowlat_jitter::{
    JitterCpu, JitterRecord, Warning, study,
    sysjitter::{raw_file_name, testing::parse_raw},
};
use lowlat_jitter_run::{
    clock::{ArchCounter, MonotonicCounter, TickScale},
    jitter::{
        Companion, JitterError, JitterOptions, JitterProgress, Lane, RawFiles, RealTime, RealTimePolicy,
        Started, run,
    },
};
use rustix::process::{Resource, getrlimit};
use std::{
    collections::BTreeMap,
    fs,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

static STOP_NEVER: AtomicBool = AtomicBool::new(false);

fn allowed() -> CpuSet {
    affinity::current().unwrap()
}

fn quiet(_: &JitterProgress) {}

fn measure(options: &JitterOptions) -> JitterRecord {
    calibrated(|| run(&Root::live(), options, &STOP_NEVER, &quiet, None))
}

/// Checks what must hold in every record.
fn check(record: &JitterRecord, cpu: &JitterCpu) {
    let count = cpu.interruption_count;
    assert_eq!(decode(&cpu.histogram).unwrap().len(), count, "CPU {}", cpu.cpu);
    assert_eq!(cpu.seconds.iter().map(|second| second.count).sum::<u64>(), count);
    assert!(cpu.worst.is_sorted_by(|a, b| a.length_ns >= b.length_ns));
    assert!(cpu.first.is_sorted_by_key(|one| one.at_ns));
    assert_eq!(cpu.worst.first().map_or(0, |one| one.length_ns), cpu.interruption_ns_max);
    assert!(cpu.worst.iter().chain(&cpu.first).all(|one| one.length_ns >= record.threshold_ns));
    assert!(cpu.interruption_ns_total >= count * record.threshold_ns);
    assert!(cpu.interruption_ns_total + cpu.recording_ns_total <= cpu.runtime_ns, "{cpu:?}");
    assert!(cpu.loop_count > 0 && cpu.loop_period_ns > 0.0 && cpu.loop_floor_ns <= cpu.loop_period_ns);
}

#[test]
fn each_allowed_cpu_is_sampled_for_the_requested_time() {
    let _alone = alone();
    let progress = AtomicU32::new(0);
    let options = JitterOptions::new(allowed(), Duration::from_secs(1));
    let seen = |now: &JitterProgress| {
        assert_eq!(now.cpus.len(), now.cpu_count);
        progress.fetch_add(1, Ordering::Relaxed);
    };
    let record = run(&Root::live(), &options, &STOP_NEVER, &seen, None).unwrap();
    assert_eq!(record.cpus.iter().map(|cpu| cpu.cpu).collect::<CpuSet>(), allowed());
    assert!(record.threshold_ns >= 100 && record.counter_hz > 0 && record.start_ticks > 0);
    assert!(progress.load(Ordering::Relaxed) > 0);
    for cpu in &record.cpus {
        check(&record, cpu);
        assert!(!cpu.has_moved && cpu.runtime_ns >= 1_000_000_000, "{cpu:?}");
        assert!(cpu.steal_ns.is_known());
    }
    let study = study(&record).unwrap();
    assert_eq!(study.all.count, record.cpus.iter().map(|cpu| cpu.interruption_count).sum::<u64>());
    assert!(study.all.rate.unwrap().per_s_high > 0.0);
    assert_eq!(allowed(), options.cpus, "the calling thread's affinity is unchanged");
}

#[test]
fn one_cpu_and_nothing_kept() {
    let _alone = alone();
    let cpu = allowed().highest().unwrap();
    let options = JitterOptions {
        worst_count: 0,
        first_count: 0,
        threshold_ns: Some(1_000),
        ..JitterOptions::new(CpuSet::of(cpu), Duration::from_millis(200))
    };
    let record = measure(&options);
    assert_eq!((record.threshold_ns, record.cpus.len()), (1_000, 1));
    assert!(record.cpus[0].worst.is_empty() && record.cpus[0].first.is_empty());
    assert_eq!(decode(&record.cpus[0].histogram).unwrap().len(), record.cpus[0].interruption_count);
}

#[test]
fn a_stopped_run_keeps_its_results() {
    let _alone = alone();
    let stop = AtomicBool::new(false);
    let options = JitterOptions::new(allowed(), Duration::from_secs(3_600));
    let raise = |now: &JitterProgress| {
        if now.elapsed >= Duration::from_millis(200) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let record = calibrated(|| run(&Root::live(), &options, &stop, &raise, None));
    for cpu in &record.cpus {
        check(&record, cpu);
        // A busy machine may start a sampler late, so that it has less than the time waited for.
        assert!(cpu.runtime_ns > 0 && cpu.runtime_ns < record.duration_ns);
        assert!(cpu.seconds.len() < 3_600);
    }
    // Raised from the start, the result is still a record.
    let record = calibrated(|| run(&Root::live(), &options, &stop, &quiet, None));
    assert_eq!(record.cpus.len(), allowed().len());
}

/// A time in which a thread had the CPU exclusively, in ticks: its own readings are close together throughout.
struct HeldCpu {
    from: u64,
    to: u64,
}

/// Spins for `ticks` and returns the stretches in which it kept the CPU.
fn hold(ticks: u64, gap_ticks_max: u64) -> Vec<HeldCpu> {
    let began = ArchCounter.now();
    let (mut held, mut from, mut last) = (Vec::new(), began, began);
    while last - began < ticks {
        let now = ArchCounter.now();
        if now - last > gap_ticks_max {
            held.push(HeldCpu { from, to: last });
            from = now;
        }
        last = now;
    }
    held.push(HeldCpu { from, to: last });
    held
}

/// Each stretch of at least `ns_min` inside the run must be inside one interruption: two threads cannot run on
/// one CPU at once.
fn check_recall(record: &JitterRecord, held: &[HeldCpu], ns_min: u64) -> usize {
    let scale = TickScale::new(record.counter_hz);
    let cpu = &record.cpus[0];
    // Far enough from both ends for the sampler to be certainly running; readings are rounded to the
    // nanosecond.
    let (margin, rounding) = (50_000_000, 2);
    let mut found = 0;
    for one in held.iter().filter(|one| one.from > record.start_ticks) {
        let (from, to) = (scale.ns(one.from - record.start_ticks), scale.ns(one.to - record.start_ticks));
        if to - from < ns_min || from < margin || to + margin > cpu.runtime_ns {
            continue;
        }
        let is_found = cpu
            .first
            .iter()
            .any(|seen| seen.at_ns <= from + rounding && seen.at_ns + seen.length_ns + rounding >= to);
        assert!(is_found, "nothing found over {from}..{to} ns");
        found += 1;
    }
    found
}

fn injected_run(
    cpu: CpuId,
    inject: impl FnOnce(&AtomicBool) -> Option<Vec<HeldCpu>> + Send,
) -> Option<usize> {
    let options = JitterOptions {
        threshold_ns: Some(50_000),
        first_count: 65_536,
        ..JitterOptions::new(CpuSet::of(cpu), Duration::from_millis(1_500))
    };
    let over = AtomicBool::new(false);
    let (record, held) = thread::scope(|scope| {
        let over = &over;
        let injector = scope.spawn(move || {
            pin_to(&CpuSet::of(cpu)).unwrap();
            inject(over)
        });
        let record = measure(&options);
        over.store(true, Ordering::Relaxed);
        (record, injector.join().unwrap())
    });
    check(&record, &record.cpus[0]);
    Some(check_recall(&record, &held?, 500_000))
}

#[test]
fn a_busy_neighbour_is_found_each_time_it_runs() {
    let _alone = alone();
    let cpu = allowed().highest().unwrap();
    let found = injected_run(cpu, |over| {
        let mut held = Vec::new();
        // Gaps above 20 us split a stretch; a tick is at most 1 ns on every supported counter.
        while !over.load(Ordering::Relaxed) {
            held.extend(hold(40_000_000, 20_000));
        }
        Some(held)
    });
    eprintln!("found {found:?} of the busy neighbour's turns");
    assert!(found.unwrap() > 0, "the neighbour never ran for half a millisecond on end");
}

#[test]
fn every_injected_interruption_is_found() {
    let _alone = alone();
    let cpu = allowed().highest().unwrap();
    let found = injected_run(cpu, |over| {
        if !become_fifo() {
            return None;
        }
        let mut held = Vec::new();
        while !over.load(Ordering::Relaxed) {
            held.extend(hold(6_000_000, 20_000));
            thread::sleep(Duration::from_millis(50));
        }
        Some(held)
    });
    match found {
        None => eprintln!("skipped: SCHED_FIFO is not permitted"),
        Some(found) => {
            eprintln!("found all {found} injected interruptions");
            assert!(found > 0);
        }
    }
}

fn become_fifo() -> bool {
    let (this_thread, priority): (libc::pid_t, libc::c_int) = (0, 10);
    // The system call itself: musl's wrapper only returns ENOSYS.
    // SAFETY: the kernel's `struct sched_param` is one int, the priority, which is alive through the call and only read.
    unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, this_thread, libc::SCHED_FIFO, &raw const priority) == 0
    }
}

#[test]
fn a_moved_sampler_keeps_its_results() {
    let _alone = alone();
    let (from, to) = (allowed().highest().unwrap(), allowed().lowest().unwrap());
    if from == to {
        eprintln!("skipped: moving a thread needs two CPUs");
        return;
    }
    let options = JitterOptions::new(CpuSet::of(from), Duration::from_millis(1_500));
    let moved = AtomicBool::new(false);
    let shove = |now: &JitterProgress| {
        if now.elapsed >= Duration::from_millis(200) && !moved.swap(true, Ordering::Relaxed) {
            shove_thread(&format!("lowlat/{from}"), to);
        }
    };
    let record = run(&Root::live(), &options, &STOP_NEVER, &shove, None).unwrap();
    let cpu = &record.cpus[0];
    check(&record, cpu);
    assert!(cpu.has_moved && cpu.cpu == from, "{cpu:?}");
    let told = format!("The sampler of CPU {from} was found on CPU {to} after ");
    assert!(record.warnings.iter().any(|warning| warning.starts_with(&told)), "{:?}", record.warnings);
}

/// Moves a thread as the kernel does when its CPU goes offline.
fn shove_thread(name: &str, to: CpuId) {
    let root = Root::live();
    for task in root.list("/proc/self/task").into_known().unwrap() {
        if root.read(&format!("/proc/self/task/{task}/comm")).text() != name {
            continue;
        }
        // SAFETY: a cpu_set_t is plain bits, all zero is the empty set; `to` is an allowed CPU of a test
        // machine and so below its 1,024 bits. The set is alive during the call, which only reads it.
        let result = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(to as usize, &mut set);
            libc::sched_setaffinity(task.parse().unwrap(), size_of::<libc::cpu_set_t>(), &raw const set)
        };
        assert_eq!(result, 0);
        return;
    }
    panic!("no thread {name}");
}

/// Counts what arrives through the rings, and inspects the samplers while they run.
#[derive(Default)]
struct Counting {
    started: Option<Started>,
    policies: Vec<String>,
    gaps: BTreeMap<CpuId, Vec<(u64, u64)>>,
    epoch: u64,
    lost: u64,
    thread: Option<String>,
}

impl Companion for Counting {
    fn start(&mut self, started: &Started, lanes: &[Lane]) {
        self.started = Some(*started);
        self.thread = thread::current().name().map(str::to_owned);
        for lane in lanes {
            let stat =
                Root::live().read(&format!("/proc/self/task/{}/stat", lane.thread_id)).into_known().unwrap();
            let (before_name, after_name) = stat.split_once(") ").unwrap();
            assert!(before_name.ends_with(&format!("(lowlat/{}", lane.cpu)), "{before_name}");
            // The scheduling policy is the 41st field.
            self.policies.push(after_name.split(' ').nth(41 - 3).unwrap().to_owned());
        }
    }

    fn collect(&mut self, epoch: u64, lanes: &mut [Lane]) {
        self.epoch = epoch;
        for lane in lanes {
            let gaps = self.gaps.entry(lane.cpu).or_default();
            lane.ring.drain(|before, now| gaps.push((before, now)));
        }
    }

    fn finish(&mut self, lanes: &[Lane]) {
        self.lost = lanes.iter().map(|lane| lane.ring.lost_count()).sum();
    }
}

fn check_counted(record: &JitterRecord, counting: &Counting) {
    let scale = TickScale::new(record.counter_hz);
    assert_eq!((counting.epoch, counting.lost), (record.start_ticks, 0));
    assert_eq!(counting.thread.as_deref(), Some("lowlat-collect"));
    assert_eq!(counting.gaps.len(), record.cpus.len());
    for cpu in &record.cpus {
        let gaps = &counting.gaps[&cpu.cpu];
        assert_eq!(gaps.len() as u64, cpu.interruption_count, "CPU {}", cpu.cpu);
        let lengths = || gaps.iter().map(|(before, now)| now - before);
        assert_eq!(scale.ns(lengths().sum()), cpu.interruption_ns_total);
        assert_eq!(scale.ns(lengths().min().unwrap_or(0)), cpu.interruption_ns_min);
        assert_eq!(scale.ns(lengths().max().unwrap_or(0)), cpu.interruption_ns_max);
    }
}

#[test]
fn a_companion_gets_every_interruption() {
    let _alone = alone();
    let everywhere = JitterOptions::new(allowed(), Duration::from_millis(700));
    let one = JitterOptions { cpus: CpuSet::of(allowed().highest().unwrap()), ..everywhere.clone() };
    for options in [everywhere, one] {
        let mut counting = Counting::default();
        let record = run(&Root::live(), &options, &STOP_NEVER, &quiet, Some(&mut counting)).unwrap();
        check_counted(&record, &counting);
        let started = counting.started.unwrap();
        assert_eq!((started.threshold_ns, started.duration), (record.threshold_ns, options.duration));
        assert_eq!(started.is_on_measured_cpu, allowed().is_subset(&options.cpus));
        let shares = record.warnings.iter().any(|warning| warning.contains("the collecting thread"));
        assert_eq!(shares, started.is_on_measured_cpu);
    }
}

#[test]
fn real_time_samplers_run_as_such_within_limits() {
    let _alone = alone();
    let cpu = allowed().highest().unwrap();
    let real_time = Some(RealTime { policy: RealTimePolicy::Fifo, priority: 10 });
    let options =
        JitterOptions { real_time, ..JitterOptions::new(CpuSet::of(cpu), Duration::from_millis(700)) };
    let before = getrlimit(Resource::Rttime);
    let limits = Mutex::new(Vec::new());
    let see = |_: &JitterProgress| limits.lock().unwrap().push(getrlimit(Resource::Rttime).current);
    let mut counting = Counting::default();
    let record = match run(&Root::live(), &options, &STOP_NEVER, &see, Some(&mut counting)) {
        Ok(record) => record,
        Err(JitterError::RealTimeEverywhere { .. }) => {
            eprintln!("skipped: real-time samplers need an unmeasured CPU");
            return;
        }
        Err(error @ JitterError::RealTime { .. }) => {
            assert!(error.to_string().contains("SCHED_FIFO 10"), "{error}");
            eprintln!("skipped: SCHED_FIFO is not permitted");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    check(&record, &record.cpus[0]);
    check_counted(&record, &counting);
    assert_eq!((record.real_time.as_deref(), counting.policies), (Some("SCHED_FIFO 10"), vec!["1".into()]));
    assert!(record.warnings.iter().any(|warning| warning.starts_with("The samplers ran as SCHED_FIFO 10")));
    assert!(limits.into_inner().unwrap().iter().all(|limit| *limit == Some(30_700_000)));
    assert_eq!(getrlimit(Resource::Rttime), before);
}

/// Raw files, and what the rings lost, by CPU.
struct Kept {
    files: RawFiles,
    lost: BTreeMap<CpuId, u64>,
}

impl Companion for Kept {
    fn start(&mut self, started: &Started, lanes: &[Lane]) {
        self.files.start(started, lanes);
    }

    fn collect(&mut self, now: u64, lanes: &mut [Lane]) {
        self.files.collect(now, lanes);
    }

    fn finish(&mut self, lanes: &[Lane]) {
        self.lost = lanes.iter().map(|lane| (lane.cpu, lane.ring.lost_count())).collect();
        self.files.finish(lanes);
    }
}

#[test]
fn raw_files_contain_every_interruption() {
    let _alone = alone();
    let directory = tempfile::tempdir().unwrap();
    let options = JitterOptions::new(allowed(), Duration::from_millis(500));
    let prefix = directory.path().join("raw");
    let mut kept = Kept { files: RawFiles::create(&prefix, &options.cpus).unwrap(), lost: BTreeMap::new() };
    let record = run(&Root::live(), &options, &STOP_NEVER, &quiet, Some(&mut kept)).unwrap();
    let warnings = kept.files.convert(&record);
    // A busy machine or its hypervisor may delay the thread that drains the rings: then some are lost, and
    // reported exactly.
    let lost_total: u64 = kept.lost.values().sum();
    assert_eq!(warnings.len(), usize::from(lost_total > 0), "{warnings:?}");
    assert!(
        warnings
            .iter()
            .all(|told| matches!(told, Warning::RawLost { lost_count, .. } if *lost_count == lost_total)),
        "{warnings:?}"
    );
    let highest = options.cpus.highest().unwrap();
    for cpu in &record.cpus {
        let name = raw_file_name(prefix.to_str().unwrap(), cpu.cpu, highest);
        let file = parse_raw(&fs::read_to_string(name).unwrap()).unwrap();
        assert_eq!(file.head.interruption_count, file.rows.len() as u64);
        assert_eq!(file.head.interruption_count + kept.lost[&cpu.cpu], cpu.interruption_count);
        if kept.lost[&cpu.cpu] > 0 {
            eprintln!("skipped: rows of CPU {}: its ring lost some in this run", cpu.cpu);
            continue;
        }
        let first: Vec<(u64, u64)> =
            file.rows.iter().map(|row| (row.end_ns, row.length_ns)).take(cpu.first.len()).collect();
        for (seen, kept) in first.iter().zip(&cpu.first) {
            // Start, end and length are each rounded to the nanosecond; an interruption that started before the
            // epoch, by a slightly different counter, is kept as if it started with it.
            let end_ns = kept.at_ns + kept.length_ns;
            assert!(seen.0 <= end_ns + 2 && (kept.at_ns == 0 || seen.0 + 2 >= end_ns), "{seen:?} {kept:?}");
            assert_eq!(seen.1, kept.length_ns);
        }
        assert_eq!(first.len(), cpu.first.len());
    }
}
