//! Counts the timer interrupts of isolated CPUs for a while, each under load: an idle CPU has few with any
//! settings.

mod counts;
mod spinner;

use counts::{Counts, Idleness};
use lowlat_host::{CpuSet, Reading};
use lowlat_host_run::Root;
use lowlat_host_run::affinity;
use lowlat_plan::verify::{TickCount, TickLoad, TickProof};
use spinner::Spinners;
use std::{
    io, thread,
    time::{Duration, Instant},
};

/// Duration of the check whether a CPU is already busy.
const LOOK: Duration = Duration::from_millis(300);
/// Time that a spinner runs before its ticks are counted: the kernel stops the tick some time after the last other task
/// has left.
const SETTLE: Duration = Duration::from_millis(200);

#[derive(Debug, Clone)]
pub struct TickOptions {
    pub isolated: CpuSet,
    /// The CPUs to compare with, on which the counting itself runs.
    pub housekeeping: CpuSet,
    pub window: Duration,
    /// Starts a thread that spins on each idle isolated CPU.
    pub spins: bool,
    /// Ticks per second of a CPU whose tick is not stopped, if known.
    pub hz: Reading<u32>,
}

/// Counts on the running host. A CPU that is already busy gets no spinner: it would disturb the task, and is
/// not needed.
///
/// # Errors
/// If no thread can be started.
pub fn count_ticks(options: &TickOptions) -> io::Result<TickProof> {
    thread::scope(|scope| {
        let counting =
            thread::Builder::new().name("lowlat-ticks".into()).spawn_scoped(scope, || count(options));
        counting?.join().map_err(|_| io::Error::other("the counting thread died"))
    })
}

fn count(options: &TickOptions) -> TickProof {
    let root = Root::live();
    let mut doubts = Vec::new();
    // On an isolated CPU it would be the second task there, and keep the tick that it counts.
    if let Err(error) = affinity::pin_to(&options.housekeeping) {
        doubts.push(format!("The counting thread could not be pinned to the housekeeping CPUs: {error}."));
    }
    let busy = busy_cpus(&root, &options.isolated, &mut doubts);
    let wanted = if options.spins { options.isolated.difference(&busy) } else { CpuSet::new() };
    let spinners = Spinners::start(&wanted);
    doubts.extend(spinners.refused.iter().cloned());
    if !spinners.cpus.is_empty() {
        thread::sleep(SETTLE);
    }
    let all = options.isolated.union(&options.housekeeping);
    let start = Instant::now();
    let before = Counts::read(&root, &all);
    thread::sleep(options.window);
    let after = Counts::read(&root, &all);
    let window_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let spun = spinners.stop();
    let count_of = |cpu| TickCount {
        cpu,
        ticks: before.ticks_until(&after, cpu),
        rcu_softirqs: before.rcu_until(&after, cpu),
        load: match () {
            () if spun.contains(cpu) => TickLoad::Spinner,
            () if busy.contains(cpu) => TickLoad::BusyTask,
            () => TickLoad::Idle,
        },
    };
    let of_housekeeping = options.housekeeping.iter().map(|cpu| before.ticks_until(&after, cpu));
    TickProof {
        window_ns,
        hz: options.hz.clone(),
        source: before.source(),
        cpus: options.isolated.iter().map(count_of).collect(),
        housekeeping_ticks_max: Reading::from_option(of_housekeeping.filter_map(Reading::into_known).max()),
        doubts,
    }
}

/// CPUs that are already busy.
fn busy_cpus(root: &Root, cpus: &CpuSet, doubts: &mut Vec<String>) -> CpuSet {
    let (before, start) = (Idleness::read(root), Instant::now());
    thread::sleep(LOOK);
    let after = Idleness::read(root);
    match before.busy_until(&after, start.elapsed(), cpus) {
        Ok(busy) => busy,
        Err(why) => {
            // Assume that they are busy, so as not to disturb any task.
            doubts.push(format!(
                "It is unknown whether tasks run on the isolated CPUs ({why}), so no thread spins there."
            ));
            cpus.clone()
        }
    }
}

#[cfg(test)]
mod tests;
