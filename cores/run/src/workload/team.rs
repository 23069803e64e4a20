//! The processes of one run.

use super::{
    WorkloadError, WorkloadJob,
    fork::{Forked, fork},
    pace::{Pace, ResultSlot, StartGate, Times, class_ns},
    shared::Shared,
};
use lowlat_host::{CpuId, CpuSet, snapshot::SchedPolicy};
use lowlat_host_run::{
    pause,
    scheduling::{Scheduling, set_affinity, set_scheduling},
};
use lowlat_workload::{
    Policy,
    programs::{Figures, Latency},
};
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Time between two checks of the processes.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Time in which processes start, and in which they end after their time; many on few CPUs take turns.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    pub figures: Figures,
    pub elapsed_ns: u64,
}

/// Placement, policy and time of a run.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Processes of each copy; the first one counts operations, and the others serve it.
    pub per_copy: usize,
    /// CPU of each process; empty if the kernel chooses.
    pub cpus: &'a [CpuId],
    pub policy: Policy,
    pub times: Times,
}

/// Runs a job in `count` processes. Ends early, without figures, when `stop` is raised.
///
/// # Errors
/// [`WorkloadError`] if a process cannot be started or placed, fails, or was moved. No process outlives the call.
pub fn run(
    job: &WorkloadJob,
    count: usize,
    frame: Frame<'_>,
    stop: &AtomicBool,
) -> Result<Option<Outcome>, WorkloadError> {
    let gate = Shared::new(1, StartGate::default).map_err(WorkloadError::cannot("start a process"))?;
    let slots = Shared::new(count, ResultSlot::default).map_err(WorkloadError::cannot("start a process"))?;
    let Some(gate) = gate.first() else { return Ok(None) };
    let mut team = ProcessTeam { gate, slots: &slots, processes: Vec::with_capacity(count) };
    for place in 0..count {
        team.start(job, place, frame)?;
    }
    let is_ready = |team: &mut ProcessTeam<'_>| {
        // Acquire: pairs with the release in `Pace::begin`.
        team.gate.ready.load(Ordering::Acquire) as usize >= count
    };
    team.wait_for(is_ready, stop)?;
    team.gate.open();
    pause::sleep(Duration::from_nanos(frame.times.warm_up_ns + frame.times.measured_ns), stop);
    let is_over = |team: &mut ProcessTeam<'_>| team.processes.iter().all(|process| !process.is_counted);
    team.wait_for(is_over, stop)?;
    // Relaxed: set by the signal handler; orders nothing.
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let counted: Vec<(usize, &ResultSlot)> =
        slots.iter().enumerate().filter(|(place, _)| place.is_multiple_of(frame.per_copy)).collect();
    check_places(&counted, frame.cpus)?;
    Ok(Some(sum(&counted, frame.times.measured_ns)))
}

/// Processes of a run that have not ended.
struct ProcessTeam<'a> {
    gate: &'a StartGate,
    slots: &'a [ResultSlot],
    processes: Vec<WorkloadProcess>,
}

struct WorkloadProcess {
    forked: Forked,
    place: usize,
    is_counted: bool,
}

impl ProcessTeam<'_> {
    fn start(&mut self, job: &WorkloadJob, place: usize, frame: Frame<'_>) -> Result<(), WorkloadError> {
        let Some(slot) = self.slots.get(place) else { return Ok(()) };
        let gate = self.gate;
        let is_counted = place.is_multiple_of(frame.per_copy);
        let work = || {
            let mut counting = Pace::new(gate, slot, frame.times);
            if let Err(error) = job(place / frame.per_copy, is_counted, &mut counting) {
                // Relaxed: the parent reads it after it has waited for this process.
                slot.errno.store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::Relaxed);
            }
        };
        let forked = fork(true, work).map_err(WorkloadError::cannot("start a process"))?;
        let pid = forked.pid();
        self.processes.push(WorkloadProcess { forked, place, is_counted });
        if let Some(cpu) = frame.cpus.get(place) {
            set_affinity(pid, &CpuSet::of(*cpu)).map_err(|error| {
                WorkloadError(format!(
                    "cannot run on CPU {cpu}: {error}; it must be online and inside this process's cpuset"
                ))
            })?;
        }
        let set = scheduling_of(frame.policy).map_or(Ok(()), |scheduling| set_scheduling(pid, &scheduling));
        set.map_err(|error| {
            WorkloadError(format!(
                "cannot set the scheduling policy: {error}; SCHED_FIFO takes root or CAP_SYS_NICE"
            ))
        })
    }

    /// Waits until `is_done`, or until `stop` is raised.
    fn wait_for(
        &mut self,
        is_done: impl Fn(&mut Self) -> bool,
        stop: &AtomicBool,
    ) -> Result<(), WorkloadError> {
        let deadline = Instant::now() + PATIENCE;
        // Relaxed: set by the signal handler; orders nothing.
        while !stop.load(Ordering::Relaxed) {
            self.bury()?;
            if is_done(self) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(WorkloadError("the processes did not end in time".to_owned()));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Forgets processes that have ended.
    fn bury(&mut self) -> Result<(), WorkloadError> {
        for process in &mut self.processes {
            let Some(is_success) = process.forked.ended() else { continue };
            let errno = self.slots.get(process.place).map_or(0, |slot| slot.errno.load(Ordering::Relaxed));
            if errno != 0 {
                let error = io::Error::from_raw_os_error(errno);
                return Err(WorkloadError(format!("a process failed: {error}")));
            }
            if !is_success {
                return Err(WorkloadError("a process ended unexpectedly".to_owned()));
            }
            process.is_counted = false;
        }
        // Ended processes are dropped without another wait; those that serve others stay until the end.
        self.processes.retain(|process| !process.forked.is_over());
        Ok(())
    }
}

/// The scheduling to set; `None` if it is the default.
pub fn scheduling_of(policy: Policy) -> Option<Scheduling> {
    let (policy, priority) = match policy {
        Policy::Other => return None,
        Policy::Batch => (SchedPolicy::Batch, 0),
        Policy::Fifo => (SchedPolicy::Fifo, 1),
    };
    Some(Scheduling { policy, priority, nice: None, deadline_ns: [0; 3], is_reset_on_fork: false })
}

/// Checks that every process ended on its CPU.
fn check_places(counted: &[(usize, &ResultSlot)], cpus: &[CpuId]) -> Result<(), WorkloadError> {
    for (place, slot) in counted {
        // Relaxed: the process has ended.
        let to = slot.cpu.load(Ordering::Relaxed);
        if let Some(from) = cpus.get(*place).filter(|from| **from != to) {
            return Err(WorkloadError(format!(
                "a process was moved from CPU {from} to CPU {to}: CPU {from} went offline or left the cpuset"
            )));
        }
    }
    Ok(())
}

/// Adds the operations of processes, all counted in the same time.
fn sum(counted: &[(usize, &ResultSlot)], elapsed_ns: u64) -> Outcome {
    // Relaxed: the processes have ended.
    let operations: u64 = counted.iter().map(|(_, slot)| slot.operations.load(Ordering::Relaxed)).sum();
    let per_s = operations as f64 * 1e9 / elapsed_ns.max(1) as f64;
    let latency = latency(counted);
    Outcome { figures: Figures { operations, per_s, bytes_per_s: None, latency }, elapsed_ns }
}

/// Percentiles of the sampled operations of all processes; `None` without samples.
fn latency(counted: &[(usize, &ResultSlot)]) -> Option<Latency> {
    let mut counts = [0_u64; 1_024];
    for (_, slot) in counted {
        for (count, of) in counts.iter_mut().zip(slot.times.as_flattened()) {
            // Relaxed: the processes have ended.
            *count += u64::from(of.load(Ordering::Relaxed));
        }
    }
    let percentile = |percent: u64| {
        let mut left = (counts.iter().sum::<u64>() * percent).div_ceil(100).max(1);
        let class = counts.iter().position(|count| {
            let before = left;
            left = left.saturating_sub(*count);
            before <= *count
        });
        class.map(class_ns)
    };
    Some(Latency { p50_ns: percentile(50)?, p99_ns: percentile(99)? })
}

#[cfg(test)]
mod tests {
    use super::{super::pace::class_of, *};

    #[test]
    fn a_process_that_the_kernel_moved_has_no_figures() {
        let slots = [ResultSlot::default(), ResultSlot::default()];
        slots[1].cpu.store(3, Ordering::Relaxed);
        let counted: Vec<(usize, &ResultSlot)> = slots.iter().enumerate().collect();
        assert!(check_places(&counted, &[0, 3]).is_ok() && check_places(&counted, &[]).is_ok());
        let error = check_places(&counted, &[0, 1]).unwrap_err().to_string();
        assert!(error.contains("from CPU 1 to CPU 3") && error.contains("offline"), "{error}");
    }

    #[test]
    fn operations_of_all_processes_are_of_one_window() {
        let slots = [ResultSlot::default(), ResultSlot::default()];
        slots[0].operations.store(500, Ordering::Relaxed);
        let counted: Vec<(usize, &ResultSlot)> = slots.iter().enumerate().collect();
        let outcome = sum(&counted, 500_000_000);
        assert_eq!(outcome.figures.latency, None, "no sample");
        for (slot, ns, count) in [(0, 1_000, 90), (1, 5_000, 9), (1, 80_000, 1)] {
            slots[slot].times.as_flattened()[class_of(ns)].store(count, Ordering::Relaxed);
        }
        let Latency { p50_ns, p99_ns } = sum(&counted, 1).figures.latency.unwrap();
        assert!((p50_ns / 1e3 - 1.0).abs() < 0.04 && (p99_ns / 5e3 - 1.0).abs() < 0.04, "{p50_ns}, {p99_ns}");
        assert!((outcome.figures.per_s - 1_000.0).abs() < 1e-6 && outcome.figures.operations == 500);
    }
}
