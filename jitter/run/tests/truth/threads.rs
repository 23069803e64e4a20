//! Other threads on the measured CPU: one that preempts the sampler, one that takes turns with it, and one that
//! must wait.

use crate::truth::{
    check::{Blamed, blame, recall},
    child::{self, ChildRun},
    host::{Raise, become_fifo, ground, is_traced, observe, options, sampler_of},
    spin::{Spin, Spinner},
};
use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::affinity::pin_to;
use lowlat_jitter::{CauseKind, CauseSource, JitterRecord};
use lowlat_jitter_run::jitter::{JitterOptions, RealTime, RealTimePolicy};
use std::{
    process,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

const FIFO: &str = "inject-fifo";
const BUSY: &str = "inject-busy";
/// Maximum number of spins of a run; preallocated.
const SPINS_MAX: usize = 65_536;
const SPIN_US: [u64; 8] = [20, 5_000, 50, 200, 2_000, 100, 500, 20];
/// Interval of the spins.
const EVERY: Duration = Duration::from_millis(23);

/// Spins on the CPU, in each turn of `wait`, while `work` runs elsewhere. `None` if SCHED_FIFO is required and
/// not permitted.
fn beside<T>(
    cpu: CpuId,
    name: &'static str,
    is_fifo: bool,
    wait: impl Fn(&AtomicBool) + Send,
    work: impl FnOnce() -> T,
) -> Option<(T, Vec<Spin>)> {
    let (spinner, over) = (Spinner::of_host(), AtomicBool::new(false));
    thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        let over = &over;
        let inject = move || {
            pin_to(&CpuSet::of(cpu)).unwrap();
            let mut spins = Vec::with_capacity(SPINS_MAX);
            let is_permitted = !is_fifo || become_fifo();
            ready.send(is_permitted).unwrap();
            for spin_us in SPIN_US.into_iter().cycle() {
                if !is_permitted || over.load(Ordering::Relaxed) {
                    break;
                }
                wait(over);
                spinner.spin(spin_us * 1_000, |spin| {
                    if spins.len() < SPINS_MAX {
                        spins.push(spin);
                    }
                });
            }
            spins
        };
        let injector = thread::Builder::new().name(name.into()).spawn_scoped(scope, inject).unwrap();
        let raise = Raise(over);
        let done = is_ready.recv().unwrap().then(work);
        drop(raise);
        let spins = injector.join().unwrap();
        done.map(|done| (done, spins))
    })
}

/// Sleeps to the next of the times that are [`EVERY`] apart.
fn sleep_to_the_next(_: &AtomicBool) {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time into the value, which is alive.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let every_ns = i64::try_from(EVERY.as_nanos()).unwrap();
    let next_ns = (now.tv_sec * 1_000_000_000 + now.tv_nsec).div_euclid(every_ns) * every_ns + every_ns;
    let next = libc::timespec { tv_sec: next_ns / 1_000_000_000, tv_nsec: next_ns % 1_000_000_000 };
    // SAFETY: the kernel reads the time, which is alive, and gets no buffer for the remainder.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const next,
            std::ptr::null_mut(),
        )
    };
}

/// A run with spins of a SCHED_FIFO thread.
fn fifo_beside(cpu: CpuId, work: impl FnOnce() -> JitterRecord) -> Option<(JitterRecord, Vec<Spin>)> {
    beside(cpu, FIFO, true, sleep_to_the_next, work)
}

#[test]
fn spins_of_a_higher_priority_thread_are_found_with_their_cause() {
    let Some(ground) = ground() else { return };
    let options = options(ground.cpu, Duration::from_secs(2));
    let Some((record, spins)) = fifo_beside(ground.cpu, || observe(&options, true)) else { return };
    let found = recall(&record, &spins);
    assert!(found.len() >= 20, "{} of {} spins lay in the run", found.len(), spins.len());
    if !is_traced(&record) {
        return;
    }
    let Blamed { holding_count, blamed_count } = blame(&record, &found, CauseKind::Thread, FIFO);
    eprintln!("found all {} spins in {holding_count} interruptions, {blamed_count} blamed", found.len());
    assert!(holding_count > 0);
    assert!(blamed_count <= spins.len() as u64, "blamed {blamed_count} times for {} spins", spins.len());
}

#[test]
fn finding_causes_neither_hides_nor_adds_interruptions() {
    let Some(ground) = ground() else { return };
    let options = options(ground.cpu, Duration::from_millis(500));
    for causes in [false, true, true, false] {
        let Some((record, spins)) = fifo_beside(ground.cpu, || observe(&options, causes)) else { return };
        let found = recall(&record, &spins);
        let inside =
            |spin: &&Spin| spin.from > record.cpus[0].start_ticks && spin.to < record.cpus[0].stop_ticks;
        eprintln!(
            "causes {causes}: {} of {} spins in {} interruptions",
            found.len(),
            spins.iter().filter(inside).count(),
            record.cpus[0].interruption_count
        );
        assert!(found.len() >= 5);
        assert_eq!(record.causes.is_some(), causes);
    }
}

#[test]
fn spins_are_found_without_permission_to_trace() {
    let Some(ground) = ground() else { return };
    let run = || ChildRun::start(child::UNPRIVILEGED, ground.cpu).into_record();
    let Some((record, spins)) = fifo_beside(ground.cpu, run) else { return };
    let found = recall(&record, &spins);
    let causes = record.causes.as_ref().unwrap();
    eprintln!("found all {} spins without a trace ({})", found.len(), causes.reason);
    assert!(found.len() >= 10);
    assert_eq!(causes.source, CauseSource::Counters);
    assert!(!causes.reason.is_empty() && causes.cpus[0].totals.is_empty());
    assert!(!causes.cpus[0].counters.is_empty(), "{causes:#?}");
}

#[test]
fn an_ordinary_thread_waits_behind_a_real_time_sampler() {
    let Some(ground) = ground() else { return };
    let real_time = Some(RealTime { policy: RealTimePolicy::Fifo, priority: 10 });
    // Shorter than the second after which the kernel gives time to ordinary threads or stops real-time ones.
    let ordinary = options(ground.cpu, Duration::from_millis(600));
    let fifo = JitterOptions { real_time, ..ordinary.clone() };
    for options in [ordinary, fifo] {
        // On a busy CPU the start of a run takes long.
        let until_it_starts = |over: &AtomicBool| {
            while sampler_of(process::id(), ground.cpu).is_none() && !over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
            }
        };
        let run = || observe(&options, true);
        let Some((record, spins)) = beside(ground.cpu, BUSY, false, until_it_starts, run) else { return };
        let found = recall(&record, &spins);
        if !is_traced(&record) {
            return;
        }
        let blamed = blame(&record, &found, CauseKind::Thread, BUSY);
        eprintln!("{:?}: {} spins, {blamed:?}", options.real_time, found.len());
        if options.real_time.is_none() {
            assert!(blamed.holding_count > 0, "it ran beside an ordinary sampler");
        } else {
            assert_eq!((found.len(), blamed.blamed_count), (0, 0), "{:?}", record.warnings);
        }
    }
}
