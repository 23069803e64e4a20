//! Checks what this host permits a test to do.

use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::Root;
use lowlat_host_run::affinity;
use lowlat_jitter::{CauseSource, JitterRecord};
use lowlat_jitter_run::tracefs::Tracefs;
use lowlat_jitter_run::{
    clock::{self, ArchCounter},
    jitter::{JitterOptions, JitterProgress, Observation, run_observed},
};
use std::{
    fs,
    sync::{
        MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

static STOP_NEVER: AtomicBool = AtomicBool::new(false);

/// Shorter interruptions are ignored, so that all longer ones can be kept.
const THRESHOLD_NS: u64 = 5_000;
/// All interruptions of a run, except on a very noisy host.
const KEPT: usize = 16_384;

/// The measured CPU. All tests use the same one, so they take turns.
pub struct Ground {
    pub cpu: CpuId,
    _alone: MutexGuard<'static, ()>,
}

/// `None`, with a message on stderr, if nothing can be injected.
pub fn ground() -> Option<Ground> {
    let alone = crate::alone();
    let allowed = affinity::current().unwrap();
    if allowed.len() < 2 {
        eprintln!("skipped: injecting needs an unmeasured CPU");
        return None;
    }
    if clock::choose(&Root::live()).0 != ArchCounter::KIND {
        eprintln!("skipped: the processor's counter is unreliable, and injecting uses it");
        return None;
    }
    allowed.highest().map(|cpu| Ground { cpu, _alone: alone })
}

/// A run on one CPU that keeps every interruption.
pub fn options(cpu: CpuId, duration: Duration) -> JitterOptions {
    JitterOptions {
        threshold_ns: Some(THRESHOLD_NS),
        first_count: KEPT,
        ..JitterOptions::new(CpuSet::of(cpu), duration)
    }
}

pub fn observe(options: &JitterOptions, causes: bool) -> JitterRecord {
    observe_until(options, causes, &STOP_NEVER)
}

/// Executes the run until it is stopped: on a busy machine an injection may come late.
pub fn observe_until(options: &JitterOptions, causes: bool, stop: &AtomicBool) -> JitterRecord {
    let quiet = |_: &JitterProgress| {};
    let observation = Observation { causes, ..Observation::default() };
    let record = crate::calibrated(|| run_observed(&Root::live(), options, &observation, stop, &quiet));
    assert!(!record.cpus[0].has_moved && record.cpus[0].backward_count == 0, "{:?}", record.warnings);
    record
}

/// Returns whether the record has its causes from the trace. It must if tracing is possible; otherwise a message is
/// printed on stderr.
pub fn is_traced(record: &JitterRecord) -> bool {
    let causes = record.causes.as_ref().unwrap();
    if causes.source == CauseSource::Trace {
        return true;
    }
    assert!(Tracefs::find().is_err(), "no trace though there is tracefs: {}", causes.reason);
    eprintln!("skipped: causes, since there is no trace ({})", causes.reason);
    false
}

/// Makes the calling thread SCHED_FIFO. Returns false, with a message on stderr, if that is not permitted.
pub fn become_fifo() -> bool {
    let (this_thread, priority): (libc::pid_t, libc::c_int) = (0, 10);
    // The system call itself: musl's wrapper only returns ENOSYS.
    // SAFETY: the kernel's `struct sched_param` is one int, the priority, which is alive through the call and only read.
    let result = unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, this_thread, libc::SCHED_FIFO, &raw const priority)
    };
    if result != 0 {
        eprintln!("skipped: SCHED_FIFO is not permitted");
    }
    result == 0
}

/// The sampler of a CPU among the threads of a process, once it exists.
pub fn sampler_of(process: u32, cpu: CpuId) -> Option<i32> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    let wanted = format!("lowlat/{cpu}\n");
    let is_sampler =
        |path: &std::path::Path| fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm == wanted);
    let sampler = tasks.flatten().find(|task| is_sampler(&task.path()))?;
    sampler.file_name().to_str()?.parse().ok()
}

/// Raises a flag on drop, so that no thread waits for it in vain when a test fails.
pub struct Raise<'a>(pub &'a AtomicBool);

impl Drop for Raise<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
