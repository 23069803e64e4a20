//! A run that ends at the first long interruption, and the trace that it saves.

use crate::truth::host::{Raise, become_fifo, ground, is_traced, options};
use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_host_run::Root;
use lowlat_host_run::affinity;
use lowlat_jitter::{JitterRecord, Stop};
use lowlat_jitter_run::jitter::{
    JitterOptions, JitterProgress, Observation, RealTime, RealTimePolicy, run_observed,
};
use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// It would be the end of a test: each run ends much earlier.
const LONG: Duration = Duration::from_secs(600);
const LIMIT_NS: u64 = 3_000_000;
const TAKES: &str = "lowlat-takes";
const WAKES: &str = "lowlat-wakes";
const TAKEN: Duration = Duration::from_millis(5);

fn run(options: &JitterOptions, saves_trace: bool) -> (JitterRecord, bool) {
    let stop = AtomicBool::new(false);
    let observation = Observation { causes: true, saves_trace, ..Observation::default() };
    let record = run_observed(&Root::live(), options, &observation, &stop, &|_: &JitterProgress| {}).unwrap();
    (record, stop.load(Ordering::Relaxed))
}

/// Waker of the thread that takes the measured CPU.
#[derive(Clone, Copy, PartialEq)]
enum By {
    /// The timer of its sleep, on that CPU.
    Timer,
    /// A thread on the other CPU.
    Thread,
}

/// A run beside a thread that takes the CPU for some milliseconds ten times a second.
fn beside_a_thread(options: &JitterOptions, by: By, saves_trace: bool) -> JitterRecord {
    let cpu = options.cpus.highest().unwrap();
    let other = affinity::current().unwrap().iter().find(|of| *of != cpu).unwrap();
    let is_over = AtomicBool::new(false);
    let (record, was_stopped) = thread::scope(|scope| {
        let is_over = &is_over;
        // Relaxed: only ends the loops.
        let goes_on = move || !is_over.load(Ordering::Relaxed);
        let takes = move || {
            affinity::pin_to(&CpuSet::of(cpu)).unwrap();
            become_fifo();
            while goes_on() {
                let start = Instant::now();
                while start.elapsed() < TAKEN {
                    std::hint::spin_loop();
                }
                match by {
                    By::Timer => thread::sleep(Duration::from_millis(100)),
                    By::Thread => thread::park(),
                }
            }
        };
        let taking = thread::Builder::new().name(TAKES.into()).spawn_scoped(scope, takes).unwrap();
        let wakes = move || {
            affinity::pin_to(&CpuSet::of(other)).unwrap();
            while goes_on() {
                thread::sleep(Duration::from_millis(100));
                taking.thread().unpark();
            }
            taking.thread().unpark();
        };
        thread::Builder::new().name(WAKES.into()).spawn_scoped(scope, wakes).unwrap();
        let _raise = Raise(is_over);
        run(options, saves_trace)
    });
    assert!(was_stopped);
    record
}

/// Report of trace-cmd: a line for each event.
fn report(bytes: &[u8]) -> Option<Vec<String>> {
    let path = std::env::temp_dir().join(format!("lowlat-halted-{}.dat", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let output = Command::new("trace-cmd").args(["report", "-t", "-i"]).arg(&path).output();
    std::fs::remove_file(&path).unwrap();
    match output {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()),
        Err(error) => {
            eprintln!("skipped: trace-cmd: {error}");
            None
        }
    }
}

/// Seconds of a line "  busy-17695 [003] 16307.524603245: sched_switch: …".
fn seconds(line: &str) -> Option<f64> {
    line.split_once("] ")?.1.trim_start().split(':').next()?.parse().ok()
}

/// A run that is ended by the thread which takes the CPU; `None` if that is not permitted here.
fn ended_by_the_thread(cpu: CpuId, by: By) -> Option<(JitterRecord, Stop)> {
    // Ordinary threads, of which a busy machine has many, wait for this sampler.
    let real_time = Some(RealTime { policy: RealTimePolicy::Fifo, priority: 5 });
    let options = JitterOptions { stop_on_ns: Some(LIMIT_NS), real_time, ..options(cpu, LONG) };
    if options.check(&Root::live()).is_err() {
        eprintln!("skipped: real-time samplers are not permitted");
        return None;
    }
    // The kernel may still be first.
    for _ in 0..20 {
        let record = beside_a_thread(&options, by, true);
        let stop = record.stop.clone().unwrap();
        let hit = stop.hit.clone().unwrap();
        assert_eq!((stop.on_ns, hit.cpu), (LIMIT_NS, cpu));
        let first = record.cpus[0].first.iter().find(|of| of.length_ns >= LIMIT_NS).unwrap();
        assert_eq!(*first, hit.interruption, "it is the first that long");
        let after_ns = record.cpus[0].runtime_ns - (hit.interruption.at_ns + hit.interruption.length_ns);
        eprintln!(
            "{}; {:?} {}; ran for {after_ns} ns after it",
            hit.cause.label(),
            stop.origin,
            stop.origin_reason
        );
        assert!(after_ns < record.duration_ns / 2, "the run ended early");
        if !is_traced(&record) {
            return None;
        }
        if hit.cause.name == TAKES {
            return Some((record, stop));
        }
    }
    panic!("twenty runs were ended by others");
}

#[test]
fn a_run_ends_at_the_first_long_interruption_with_the_trace_around_it() {
    let Some(ground) = ground() else { return };
    let Some((record, stop)) = ended_by_the_thread(ground.cpu, By::Timer) else { return };
    let Reading::Known(sender) = &stop.origin else { panic!("{stop:?}") };
    // On the CPU itself there is no stack, but what ran.
    assert!(stop.origin_offset_ns.unwrap() < 5_000_000, "{stop:?}");
    assert!(
        sender.thread.is_none() && sender.path.iter().any(|name| name == "hrtimer hrtimer_wakeup"),
        "{sender:?}"
    );
    check_trace(&stop.trace, &record, &stop.hit.as_ref().unwrap().cause.number.unwrap().to_string());
}

#[test]
fn who_woke_the_thread_is_named_with_the_kernels_functions() {
    let Some(ground) = ground() else { return };
    let Some((_, stop)) = ended_by_the_thread(ground.cpu, By::Thread) else { return };
    if let Some(lines) = report(&stop.trace) {
        let is_waking = |line: &&String| line.contains("sched_waking:") && line.contains(TAKES);
        assert!(lines.iter().filter(is_waking).any(|line| line.contains(&format!("{WAKES}-"))), "{lines:#?}");
    }
    let Reading::Known(sender) = &stop.origin else {
        assert!(!stop.origin_reason.is_empty());
        return eprintln!("skipped: {:?}: {}", stop.origin, stop.origin_reason);
    };
    assert_eq!((sender.name.as_str(), sender.is_own, sender.cpus.contains(ground.cpu)), (WAKES, true, false));
    assert!(sender.path.iter().any(|name| name.contains("futex")), "{sender:?}");
}

fn check_trace(trace: &[u8], record: &JitterRecord, thread: &str) {
    let Some(lines) = report(trace) else { return };
    let hit = record.stop.as_ref().unwrap().hit.as_ref().unwrap();
    let at = |ns: u64| (record.start_ticks as f64 / record.counter_hz as f64) + ns as f64 / 1e9;
    let (before, end) = (at(hit.interruption.at_ns), at(hit.interruption.at_ns + hit.interruption.length_ns));
    let to_it: Vec<f64> = lines
        .iter()
        .filter(|line| line.contains("sched_switch:") && line.contains(&format!("==> {TAKES}:{thread} ")))
        .filter_map(|line| seconds(line))
        .collect();
    assert!(to_it.iter().any(|time| *time > before - 1e-4 && *time < end), "{before} {end} {to_it:?}");
    let times: Vec<f64> = lines.iter().filter_map(|line| seconds(line)).collect();
    assert!(times.iter().any(|time| *time < before), "what happened before is there");
    assert!(times.iter().any(|time| *time > end), "what happened after is there");
    let is_named = |line: &&String| line.contains("sched_waking:") && line.contains(TAKES);
    assert!(lines.iter().any(|line| is_named(&line)), "the wake-up is there");
}

#[test]
fn a_run_without_a_long_interruption_lasts_until_its_end() {
    let Some(ground) = ground() else { return };
    let options = JitterOptions {
        stop_on_ns: Some(3_600_000_000_000),
        ..options(ground.cpu, Duration::from_millis(500))
    };
    let (record, was_stopped) = run(&options, true);
    let stop = record.stop.unwrap();
    assert_eq!((stop.hit, stop.trace.len(), was_stopped), (None, 0, false));
    assert!(record.cpus[0].runtime_ns >= 500_000_000);
    let (record, _) = run(&JitterOptions { stop_on_ns: None, ..options }, false);
    assert_eq!(record.stop, None);
}

#[test]
fn a_late_wake_up_ends_a_run() {
    let Some(ground) = ground() else { return };
    let every = Some(Duration::from_micros(1_900));
    let options = JitterOptions {
        stop_on_ns: Some(LIMIT_NS),
        wake_every: every,
        threshold_ns: None,
        ..options(ground.cpu, LONG)
    };
    let record = beside_a_thread(&options, By::Timer, false);
    let hit = record.stop.unwrap().hit.unwrap();
    assert!(hit.interruption.length_ns >= LIMIT_NS);
    eprintln!("{}", hit.cause.label());
}
