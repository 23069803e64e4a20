//! Interrupts from another CPU: culprits that a thread injects there, each found with its sender and reason.

mod culprits;

use crate::truth::host::{Ground, ground, is_traced, observe, options};
use culprits::{CULPRITS, Culprit, Tools};
use lowlat_host::{CpuSet, TickScale};
use lowlat_host_run::affinity::pin_to;
use lowlat_jitter::{CauseKind, Explained, JitterRecord, Sender, TimelineStep};
use lowlat_jitter_run::clock::{ArchCounter, MonotonicCounter as _};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// Time between two injections.
const APART: Duration = Duration::from_millis(8);
/// Time after the return of an injection in which its interrupts still arrive: a hypervisor may hold the CPU.
const SOON_NS: u64 = 4_000_000;

/// Results for the interruptions by other CPUs.
#[derive(Debug, Default)]
struct Outcome {
    injected: usize,
    /// Number of interruptions by other CPUs.
    count: usize,
    /// Those that name the culprit with its reason.
    right: usize,
    /// Those that name others: the host does more than what is injected.
    other: usize,
    unknown: usize,
    /// Senders of the last two, for people to judge.
    others: Vec<String>,
    /// Those that name the culprit when it did nothing.
    wrong: Vec<String>,
}

/// Measures while a thread on another CPU injects a culprit; `None` if it cannot be injected or nothing is traced.
fn inject(ground: &Ground, culprit: &Culprit, duration: Duration, count_max: usize) -> Option<Outcome> {
    let (cpu, is_over) = (ground.cpu, AtomicBool::new(false));
    let (record, windows) = thread::scope(|scope| {
        let injector = thread::Builder::new().name("culprit".into());
        let injector = injector.spawn_scoped(scope, || {
            let elsewhere = lowlat_host_run::affinity::current().unwrap().difference(&CpuSet::of(cpu));
            pin_to(&elsewhere).unwrap();
            let mut tools = Tools::new(cpu);
            let mut windows = Vec::new();
            // Past the start of the run, and a moment before its end.
            thread::sleep(Duration::from_millis(300));
            while windows.len() < count_max && !is_over.load(Ordering::Relaxed) {
                let before = ArchCounter.now();
                if let Err(error) = (culprit.act)(&mut tools) {
                    eprintln!("skipped: {}: {error}", culprit.what);
                    return None;
                }
                windows.push((before, ArchCounter.now()));
                thread::sleep(APART);
            }
            tools.end();
            Some(windows)
        });
        let record = observe(&options(cpu, duration), true);
        is_over.store(true, Ordering::Relaxed);
        (record, injector.unwrap().join().unwrap())
    });
    let windows = windows?;
    if !is_traced(&record) {
        return None;
    }
    let causes = record.causes.as_ref().unwrap();
    for warning in record.warnings.iter().filter(|warning| warning.contains("sender")) {
        println!("{warning}");
    }
    let Some(senders) = &causes.senders else {
        eprintln!("skipped: senders: {}", causes.senders_reason);
        return None;
    };
    Some(judge(&record, senders, culprit, &windows))
}

fn judge(record: &JitterRecord, senders: &[Sender], culprit: &Culprit, windows: &[(u64, u64)]) -> Outcome {
    let scale = TickScale::new(record.counter_hz);
    let mut outcome = Outcome { injected: windows.len(), ..Outcome::default() };
    let late = culprit.late_ns + SOON_NS;
    for one in &record.causes.as_ref().unwrap().cpus[0].first {
        let sent: Vec<&TimelineStep> = one.timeline.iter().filter(|step| is_from_other(step)).collect();
        if sent.is_empty() {
            continue;
        }
        let sender = |step: &TimelineStep| senders.get(step.sender?);
        let by = |step: &TimelineStep| sender(step).is_some_and(|of| culprit.is_by(of));
        let is_inside = |step: &&&TimelineStep| {
            let at = record.start_ticks + scale.ticks(moment_ns(one, step));
            windows.iter().any(|(from, to)| *from <= at && at <= to + scale.ticks(late))
        };
        let name = |step: &TimelineStep| match sender(step) {
            Some(of) => format!("{}: {}", of.who(), of.reason().what),
            None => format!("unknown sender of {}", step.cause.label()),
        };
        outcome.count += 1;
        if sent.iter().any(|step| by(step)) {
            outcome.right += 1;
            let stray = sent.iter().filter(|step| by(step)).find(|step| !is_inside(step));
            outcome.wrong.extend(stray.map(|step| name(step)));
        } else if sent.iter().all(|step| sender(step).is_none()) {
            outcome.unknown += 1;
            outcome.others.extend(sent.first().map(|step| name(step)));
        } else {
            outcome.other += 1;
            outcome.others.extend(sent.iter().map(|step| name(step)));
        }
    }
    outcome
}

fn moment_ns(one: &Explained, step: &TimelineStep) -> u64 {
    one.interruption.at_ns.saturating_add_signed(step.offset_ns)
}

/// Returns whether a step is the start of something that another CPU sent. A CPU runs functions for itself too, but not
/// in an interrupt.
fn is_from_other(step: &TimelineStep) -> bool {
    let is_vector = step.cause.kind == CauseKind::Vector
        && ["reschedule", "call function", "call function single"].contains(&step.cause.name.as_str());
    step.change == lowlat_jitter::TimelineChange::Begins && (is_vector || step.sender.is_some())
}

/// Culprits that take no tools of the host's.
#[test]
fn who_interrupted_from_another_cpu_is_named() {
    let Some(ground) = ground() else { return };
    let culprit = CULPRITS.iter().find(|culprit| culprit.what == "membarrier").unwrap();
    // On a busy machine, neither the culprit nor the sampler may have a turn within the first time.
    for duration_ms in [700, 3_000, 10_000] {
        let duration = Duration::from_millis(duration_ms);
        let Some(outcome) = inject(&ground, culprit, duration, usize::MAX) else { return };
        assert!(outcome.wrong.is_empty(), "{} {:?}", outcome.right, outcome.wrong);
        if outcome.right > 0 {
            return;
        }
    }
    panic!("nothing was found");
}

/// All culprits: at least 95 % named right, none wrong, the rest unknown. As root:
/// `cargo test -p lowlat-jitter-run --test all -- --ignored --nocapture every_culprit`
#[test]
#[ignore = "takes half a minute, and drops the host's page cache a few times"]
fn every_culprit_is_named() {
    let Some(ground) = ground() else { return };
    let (mut count, mut named, mut shown, mut wrong) = (0, 0, 0, Vec::new());
    println!(
        "{:<30} {:>8} {:>13} {:>7} {:>7} {:>7}",
        "culprit", "injected", "interruptions", "culprit", "others", "unknown"
    );
    for culprit in CULPRITS {
        let Some(mut outcome) = inject(&ground, culprit, Duration::from_millis(2_500), culprit.count_max)
        else {
            continue;
        };
        shown += usize::from(outcome.right > 0);
        (count, named) = (count + outcome.count, named + outcome.right + outcome.other);
        let Outcome { injected, count, right, other, unknown, .. } = outcome;
        println!("{:<30} {injected:>8} {count:>13} {right:>7} {other:>7} {unknown:>7}", culprit.what);
        for (who, count) in often(&mut outcome.others).into_iter().take(12) {
            println!("    {count:>5} {who}");
        }
        wrong.extend(outcome.wrong.into_iter().map(|who| format!("{}: {who}", culprit.what)));
    }
    println!(
        "{named} of {count} named, {} wrong: {:#?}",
        wrong.len(),
        wrong.iter().take(20).collect::<Vec<_>>()
    );
    assert!(shown >= 10, "{shown} culprits were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(named * 100 >= count * 95, "{named} of {count}");
}

/// Names with their counts, the most frequent first.
fn often(names: &mut [String]) -> Vec<(&str, usize)> {
    names.sort();
    let mut all: Vec<(&str, usize)> =
        names.chunk_by(|a, b| a == b).map(|same| (same[0].as_str(), same.len())).collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}
