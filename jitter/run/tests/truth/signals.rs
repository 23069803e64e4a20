//! Signals to the sampler itself, whose handler takes the time.

use crate::truth::{
    check::{blame, recall},
    host::{Raise, ground, is_traced, observe_until, options, sampler_of},
    spin::{Spin, Spinner},
};
use lowlat_host::CpuId;
use lowlat_jitter::CauseKind;
use std::{
    mem, process, ptr,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

/// Maximum number of spins noted.
const NOTES_MAX: usize = 4_096;
/// Times that the handler spins, which vary from call to call.
const SPIN_US: [u64; 6] = [20, 3_000, 60, 150, 1_000, 400];
/// Interval of signals from another thread.
const EVERY: Duration = Duration::from_millis(17);
/// Signals of each kind to be found, by number and name. A sampler that waits for its CPU gets one for several sent.
const WANTED: [(libc::c_int, &str, usize); 2] =
    [(libc::SIGUSR1, "SIGUSR1", 20), (libc::SIGUSR2, "SIGUSR2", 8)];
/// More than wanted: some handlers run before or after the run.
const MARGIN: usize = 6;
/// The run ends with the last wanted signal, or after this time.
const DURATION_MAX: Duration = Duration::from_secs(60);
/// Interval of signals of the timer.
const TIMER_NS: libc::c_long = 41_000_000;

/// Relaxed throughout: read when the sampler has ended, which the test has waited for.
struct Note {
    signal: AtomicI32,
    from: AtomicU64,
    to: AtomicU64,
    own: AtomicU64,
}

static SPINNER: OnceLock<Spinner> = OnceLock::new();
static CALLS: AtomicUsize = AtomicUsize::new(0);
static NOTED: AtomicUsize = AtomicUsize::new(0);
static NOTES: [Note; NOTES_MAX] = [const {
    Note { signal: AtomicI32::new(0), from: AtomicU64::new(0), to: AtomicU64::new(0), own: AtomicU64::new(0) }
}; NOTES_MAX];

extern "C" fn spin(signal: libc::c_int) {
    let Some(spinner) = SPINNER.get() else { return };
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    spinner.spin(SPIN_US[call % SPIN_US.len()] * 1_000, |spin| {
        if let Some(note) = NOTES.get(NOTED.fetch_add(1, Ordering::Relaxed)) {
            note.signal.store(signal, Ordering::Relaxed);
            note.from.store(spin.from, Ordering::Relaxed);
            note.to.store(spin.to, Ordering::Relaxed);
            note.own.store(spin.own, Ordering::Relaxed);
        }
    });
}

/// The spins of the handlers of a signal.
fn noted(signal: libc::c_int) -> Vec<Spin> {
    let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
    let notes = NOTES.iter().take(NOTED.load(Ordering::Relaxed));
    let ours = notes.filter(|note| note.signal.load(Ordering::Relaxed) == signal);
    ours.map(|note| Spin { from: load(&note.from), to: load(&note.to), own: load(&note.own) }).collect()
}

/// The handler for both signals, which do not interrupt each other's handler. It stays installed, because a
/// signal may arrive late.
fn install() {
    SPINNER.get_or_init(Spinner::of_host);
    // SAFETY: a sigaction is plain numbers, for which zero is valid; the set and the action are alive during
    // the calls, which only read and write them. The handler accesses only atomics, the counter, and a
    // lock-free cell that was set above.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = spin as extern "C" fn(libc::c_int) as libc::sighandler_t;
        action.sa_flags = libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaddset(&raw mut action.sa_mask, libc::SIGUSR1);
        libc::sigaddset(&raw mut action.sa_mask, libc::SIGUSR2);
        for signal in [libc::SIGUSR1, libc::SIGUSR2] {
            assert_eq!(libc::sigaction(signal, &raw const action, ptr::null_mut()), 0);
        }
    }
}

/// A timer that sends SIGUSR2 to one thread of this process, until it is dropped.
struct Timer(libc::timer_t);

impl Timer {
    fn start(thread: i32) -> Self {
        // SAFETY: a sigevent is plain numbers and a pointer, for which zero is valid; all values are alive
        // during the calls.
        unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGUSR2;
            event.sigev_notify_thread_id = thread;
            let mut timer: libc::timer_t = ptr::null_mut();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);
            let every = libc::timespec { tv_sec: 0, tv_nsec: TIMER_NS };
            let periods = libc::itimerspec { it_interval: every, it_value: every };
            assert_eq!(libc::timer_settime(timer, 0, &raw const periods, ptr::null_mut()), 0);
            Self(timer)
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer was created by `start` and is deleted once.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Sends signals to the sampler of this process until `over`. Raises `enough` when its handlers have run often enough.
fn inject(cpu: CpuId, over: &AtomicBool, enough: &AtomicBool) {
    let process = libc::pid_t::try_from(process::id()).unwrap();
    let mut timer = None;
    while !over.load(Ordering::Relaxed) {
        if let Some(sampler) = sampler_of(process::id(), cpu) {
            timer.get_or_insert_with(|| Timer::start(sampler));
            // SAFETY: the call takes no pointer. A thread that has ended is not found; its number is searched
            // only in this process.
            unsafe { libc::syscall(libc::SYS_tgkill, process, sampler, libc::SIGUSR1) };
        }
        thread::sleep(EVERY);
        if WANTED.iter().all(|(signal, _, count_min)| noted(*signal).len() >= count_min * MARGIN) {
            enough.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn handlers_of_signals_are_found_with_their_cause() {
    let Some(ground) = ground() else { return };
    install();
    let (over, enough) = (AtomicBool::new(false), AtomicBool::new(false));
    let record = thread::scope(|scope| {
        scope.spawn(|| inject(ground.cpu, &over, &enough));
        let _raise = Raise(&over);
        observe_until(&options(ground.cpu, DURATION_MAX), true, &enough)
    });
    for (signal, name, count_min) in WANTED {
        let spins = noted(signal);
        let found = recall(&record, &spins);
        assert!(found.len() >= count_min, "{name}: {} of {} spins lay in the run", found.len(), spins.len());
        if !is_traced(&record) {
            continue;
        }
        let blamed = blame(&record, &found, CauseKind::Signal, name);
        eprintln!("found all {} spins of {name}: {blamed:?}", found.len());
        assert!(blamed.holding_count > 0 && blamed.blamed_count <= spins.len() as u64);
    }
}
