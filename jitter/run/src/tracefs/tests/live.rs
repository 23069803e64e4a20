//! Tests on the running host, if this user may trace: otherwise each test says on stderr that it is skipped.

use crate::tracefs::{
    BUFFER_KB_MIN, CpuPipe, TraceError, TraceOptions, Tracefs, Tracing, function_names, remove_leftovers,
    remove_own,
};
use lowlat_host::CpuSet;
use lowlat_trace::{Activity, ClockPair, TickMap, TraceClock, TraceEvent, TraceStep};
use rustix::thread::{CpuSet as Affinity, sched_getaffinity, sched_setaffinity};
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Set in the environment of a child that must create an instance.
const CHILD: &str = "LOWLAT_TEST_MAKES_INSTANCE";
/// A watchdog, not an expectation: what is awaited happens within milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

fn tracefs() -> Option<Arc<Tracefs>> {
    match Tracefs::find() {
        Ok(tracefs) => Some(Arc::new(tracefs)),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// The highest CPU that this process may use.
fn own_cpu() -> u32 {
    let allowed = sched_getaffinity(None).unwrap();
    (0..u32::try_from(Affinity::MAX_CPU).unwrap()).rev().find(|cpu| allowed.is_set(*cpu as usize)).unwrap()
}

fn options(cpu: u32, clock: TraceClock) -> TraceOptions {
    TraceOptions { cpus: CpuSet::of(cpu), buffer_kb_per_cpu: 512, memory_kb_max: 1 << 20, clock }
}

fn lacks_clock(error: &TraceError) -> bool {
    error.to_string().contains(" offers no clock ")
}

/// A trace, its pipe and the clock of its time stamps; `None` if the kernel lacks the clock.
fn start(tracefs: &Arc<Tracefs>, cpu: u32) -> Option<(Tracing, CpuPipe)> {
    let clock = if cfg!(target_arch = "x86_64") { TraceClock::X86Tsc } else { TraceClock::MonoRaw };
    match Tracing::start(tracefs, &options(cpu, clock)) {
        Ok(tracing) => {
            let pipe = tracing.recording.pipes().unwrap().pop().unwrap();
            Some((tracing, pipe))
        }
        Err(error) if lacks_clock(&error) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the time of the trace's clock.
#[cfg(target_arch = "x86_64")]
fn now() -> u64 {
    // SAFETY: RDTSC is part of x86-64 and reads no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn now() -> u64 {
    raw_ns()
}

fn raw_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicRaw);
    u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
}

/// The counter and CLOCK_MONOTONIC_RAW at one moment.
fn pair() -> ClockPair {
    ClockPair::best((0..100).filter_map(|_| ClockPair::between(now(), raw_ns(), now()))).unwrap()
}

/// Sleeps on the CPU in a separate thread, so that timers expire there and the thread is switched in and out.
/// Returns its thread ID, and the clock before and after.
fn sleep_on(cpu: u32, name: &str) -> (i32, u64, u64) {
    let body = move || {
        let mut affinity = Affinity::new();
        affinity.set(cpu as usize);
        sched_setaffinity(None, &affinity).unwrap();
        let before = now();
        (0..5).for_each(|_| thread::sleep(Duration::from_millis(2)));
        (rustix::thread::gettid().as_raw_nonzero().get(), before, now())
    };
    thread::Builder::new().name(name.into()).spawn(body).unwrap().join().unwrap()
}

#[test]
fn own_switches_and_timers_are_seen_between_two_readings_of_the_counter() {
    let Some(tracefs) = tracefs() else { return };
    let cpu = own_cpu();
    let Some((tracing, mut pipe)) = start(&tracefs, cpu) else { return };
    let mut decoder = tracing.decoder(TickMap::identity(1_000_000_000));
    let mut events: Vec<TraceEvent> = Vec::with_capacity(1 << 16);
    assert!(pipe.drain(&mut decoder, &mut events).unwrap().is_empty, "nothing is recorded before it is on");
    assert_eq!(events, []);
    tracing.recording.set_on(true).unwrap();
    let (thread, before, after) = sleep_on(cpu, "trace-sleeper");
    tracing.recording.set_on(false).unwrap();
    assert!(pipe.drain(&mut decoder, &mut events).unwrap().is_empty);

    assert!(events.is_sorted_by_key(|event| event.ticks));
    let counts = &decoder.counts;
    assert_eq!((counts.unknown_count, counts.short_count, counts.damaged_count), (0, 0, 0));
    let inside: Vec<&TraceEvent> =
        events.iter().filter(|event| (before..=after).contains(&event.ticks)).collect();
    let count =
        |is: fn(&TraceStep, i32) -> bool| inside.iter().filter(|event| is(&event.step, thread)).count();
    // Only switches away from it: some kernels do not record the switch from the idle task.
    assert!(
        count(|step, own| matches!(step, TraceStep::Switch { from, .. } if *from == own)) >= 5,
        "{inside:?}"
    );
    assert!(count(|step, _| matches!(step, TraceStep::Enter(Activity::Hrtimer(_)))) >= 5, "{inside:?}");
    assert_eq!(decoder.names.threads.get(&thread).map(|thread| thread.comm.as_str()), Some("trace-sleeper"));
    assert_eq!(tracing.stats(cpu).unwrap().read_count, pipe.cursor().event_count);

    let named = function_names(&decoder.functions).unwrap();
    if named.is_hidden {
        eprintln!("skipped: the kernel hides the addresses of its functions");
    } else {
        assert!(named.names.values().any(|name| name == "hrtimer_wakeup"), "{named:?}");
    }
    let name = tracing.name().to_owned();
    assert!(tracefs.list("instances").contains(&name));
    tracing.recording.finish().unwrap();
    assert!(!tracefs.list("instances").contains(&name));
    assert!(pipe.drain(&mut decoder, &mut Vec::with_capacity(10_000)).is_err(), "its instance is gone");
}

/// As on aarch64: the trace counts nanoseconds, and the sampler reads a counter with another rate.
#[test]
fn stamps_in_nanoseconds_are_laid_beside_the_counter() {
    let Some(tracefs) = tracefs() else { return };
    let cpu = own_cpu();
    let tracing = match Tracing::start(&tracefs, &options(cpu, TraceClock::MonoRaw)) {
        Err(error) if lacks_clock(&error) => return eprintln!("skipped: {error}"),
        other => other.unwrap(),
    };
    let mut pipe = tracing.recording.pipes().unwrap().pop().unwrap();
    let first = pair();
    tracing.recording.set_on(true).unwrap();
    let (own, before, after) = sleep_on(cpu, "trace-sleeper");
    tracing.recording.set_on(false).unwrap();
    let mut decoder = tracing.decoder(TickMap::through(first, pair()).unwrap());
    let mut events = Vec::with_capacity(1 << 16);
    pipe.drain(&mut decoder, &mut events).unwrap();
    let inside = events.iter().filter(|event| (before..=after).contains(&event.ticks));
    let from =
        inside.filter(|event| matches!(event.step, TraceStep::Switch { from, .. } if from == own)).count();
    assert!(from >= 5, "{from} {first:?} {before} {after}");
}

#[test]
fn a_full_vector_is_continued_later() {
    let Some(tracefs) = tracefs() else { return };
    let cpu = own_cpu();
    let Some((tracing, mut pipe)) = start(&tracefs, cpu) else { return };
    tracing.recording.set_on(true).unwrap();
    let begun = Instant::now();
    while tracing.stats(cpu).unwrap().entry_count < 2_000 && begun.elapsed() < PATIENCE {
        sleep_on(cpu, "trace-sleeper");
    }
    tracing.recording.set_on(false).unwrap();
    let mut decoder = tracing.decoder(TickMap::identity(1));
    assert_eq!(pipe.drain(&mut decoder, &mut Vec::new()).unwrap().page_count, 0, "no room, no events");
    let (mut all, mut turns) = (Vec::new(), 0);
    loop {
        let mut events = Vec::with_capacity(pipe.events_max());
        let capacity = events.capacity();
        let drained = pipe.drain(&mut decoder, &mut events).unwrap();
        assert_eq!(events.capacity(), capacity, "it does not grow");
        all.extend(events);
        turns += 1;
        if drained.is_empty {
            break;
        }
    }
    assert!(turns > 2 && all.len() >= 2_000, "{turns} {}", all.len());
    assert!(all.is_sorted_by_key(|event| event.ticks));
}

#[test]
fn overwritten_events_are_counted_as_the_kernel_counts_them() {
    let Some(tracefs) = tracefs() else { return };
    let cpu = own_cpu();
    let clock = TraceClock::MonoRaw;
    let tracing =
        match Tracing::start(&tracefs, &TraceOptions { buffer_kb_per_cpu: 1, ..options(cpu, clock) }) {
            Err(error) if lacks_clock(&error) => return eprintln!("skipped: {error}"),
            other => other.unwrap(),
        };
    assert_eq!(tracing.buffer_kb_per_cpu, BUFFER_KB_MIN, "a buffer of 1 KiB is of no use");
    let mut pipe = tracing.recording.pipes().unwrap().pop().unwrap();
    tracing.recording.set_on(true).unwrap();
    let begun = Instant::now();
    while tracing.stats(cpu).unwrap().overrun_count < 1_000 && begun.elapsed() < PATIENCE {
        sleep_on(cpu, "trace-sleeper");
    }
    tracing.recording.set_on(false).unwrap();
    let mut decoder = tracing.decoder(TickMap::identity(1));
    let mut events = Vec::with_capacity(1 << 16);
    pipe.drain(&mut decoder, &mut events).unwrap();
    assert!(
        matches!(events.first().map(|event| event.step), Some(TraceStep::Lost(_))),
        "{:?}",
        events.first()
    );
    let stats = tracing.stats(cpu).unwrap();
    assert!(stats.lost_count() >= 1_000, "{stats:?}");
    // The kernel has space for the number on most pages, but not on all.
    assert!(decoder.counts.lost_count == stats.overrun_count || decoder.counts.lost_count == 0);
    assert_eq!(decoder.counts.loss_count, 1);
}

#[test]
fn a_mount_that_is_separate_does_as_well() {
    let Some(found) = tracefs() else { return };
    let own = match Tracefs::detached() {
        Ok(own) => Arc::new(own),
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let cpu = own_cpu();
    let Some((tracing, mut pipe)) = start(&own, cpu) else { return };
    let name = tracing.name().to_owned();
    assert!(found.list("instances").contains(&name), "it is the same tracefs");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let place = format!(" {} ", own.path(""));
    assert!(!mounts.contains(&place), "{mounts}");
    tracing.recording.set_on(true).unwrap();
    sleep_on(cpu, "trace-sleeper");
    tracing.recording.set_on(false).unwrap();
    let mut decoder = tracing.decoder(TickMap::identity(1));
    let mut events = Vec::with_capacity(1 << 16);
    pipe.drain(&mut decoder, &mut events).unwrap();
    assert!(!events.is_empty());
    drop(tracing);
    assert!(!found.list("instances").contains(&name), "dropping it removes it, even if its pipes are held");
}

/// Runs one test of this file in a separate process with [`CHILD`] set.
fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", &format!("tracefs::tests::live::{test}")]).env(CHILD, "1");
    command
}

/// Not a test: the child of the next one, which is killed while it traces.
#[test]
fn child_that_leaves_an_instance() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let tracefs = tracefs().unwrap();
    let tracing = Tracing::start(&tracefs, &options(own_cpu(), TraceClock::MonoRaw)).unwrap();
    tracing.recording.set_on(true).unwrap();
    println!("instance {}", tracing.name());
    loop {
        thread::park();
    }
}

#[test]
fn what_a_killed_run_left_behind_is_removed() {
    let Some(tracefs) = tracefs() else { return };
    let mut child = child("child_that_leaves_an_instance").stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let named =
        lines.map_while(Result::ok).find_map(|line| Some(line.split_once("instance ")?.1.trim().to_owned()));
    let name = named.expect("the child names its instance");
    assert!(!remove_leftovers(&tracefs).iter().any(|left| left.name == name), "the child lives");
    assert!(tracefs.list("instances").contains(&name));

    child.kill().unwrap();
    child.wait().unwrap();
    let begun = Instant::now();
    // The kernel releases a dead process's files a moment later.
    let mut removed = Vec::new();
    while tracefs.list("instances").contains(&name) && begun.elapsed() < PATIENCE {
        removed = remove_leftovers(&tracefs);
        thread::sleep(Duration::from_millis(10));
    }
    let mut own = removed.iter().filter(|left| left.name == name);
    assert!(own.next().is_some_and(|left| left.problem.is_none()), "{removed:?}");
    assert!(!tracefs.list("instances").contains(&name));
}

/// Not a test: the child of the next one. `remove_own` would also remove the other tests' instances.
#[test]
fn child_that_is_asked_to_stop() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let tracefs = tracefs().unwrap();
    let tracing = Tracing::start(&tracefs, &options(own_cpu(), TraceClock::MonoRaw)).unwrap();
    let name = tracing.name().to_owned();
    tracing.recording.set_on(true).unwrap();
    let mut pipe = tracing.recording.pipes().unwrap().pop().unwrap();
    let mut decoder = tracing.decoder(TickMap::identity(1));
    // Another thread reads continuously, as a collector does.
    let reader = thread::spawn(move || {
        let mut events = Vec::with_capacity(1 << 16);
        while pipe.drain(&mut decoder, &mut events).is_ok() {
            events.clear();
        }
    });
    let problems = remove_own();
    assert!(problems.is_empty(), "{problems:?}");
    assert!(!tracefs.list("instances").contains(&name));
    reader.join().unwrap();
    assert!(tracing.recording.set_on(true).is_err(), "it is gone");
    assert!(tracing.recording.pipes().is_err());
    assert!(remove_own().is_empty());
    println!("removed {name}");
}

#[test]
fn a_process_asked_to_stop_removes_its_instances_whoever_reads_them() {
    if tracefs().is_none() {
        return;
    }
    let output = child("child_that_is_asked_to_stop").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("removed lowlat-"), "{output:?}");
}

#[test]
fn what_cannot_be_had_is_reported_and_nothing_is_left() {
    let Some(tracefs) = tracefs() else { return };
    let own = || {
        let mine = format!("lowlat-{}-", std::process::id());
        tracefs.list("instances").into_iter().filter(|name| name.starts_with(&mine)).count()
    };
    let before = own();
    let usual = options(own_cpu(), TraceClock::MonoRaw);
    let few = TraceOptions { memory_kb_max: 100, ..usual.clone() };
    let error = Tracing::start(&tracefs, &few).unwrap_err().to_string();
    assert!(error.contains("of kernel memory, and 100 KiB are allowed"), "{error}");
    let absent = TraceOptions { cpus: CpuSet::of(60_000), ..usual };
    let error = Tracing::start(&tracefs, &absent).unwrap_err().to_string();
    assert!(error.contains("CPU 60000 has no trace buffer"), "{error}");
    // Other tests of this process may have created or removed instances in the meantime, so only what cannot
    // be removed is checked.
    let begun = Instant::now();
    while own() > before && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(10));
    }
    assert!(own() <= before);
}

#[test]
fn everything_can_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Tracing>();
    is_send::<CpuPipe>();
    is_send::<lowlat_trace::Decoder>();
}
