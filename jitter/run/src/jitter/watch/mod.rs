//! Watches what runs on CPUs, interval by interval, for as long as the caller wants.
//!
//! [`HostWatch`] reads the kernel's counters and threads, which costs the watched CPUs nothing.
//! [`sample`] spins a thread on each watched CPU, for the length and cause of every interruption.

mod threads;

pub use super::observe::{Live, sample};

use super::counters::CpuCounters;
use lowlat_host::{CpuSet, Reading};
use lowlat_host_run::{Root, snapshot::nic_drops};
use lowlat_jitter::watch::Interval;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};
use threads::ThreadTimes;

/// Watches CPUs by what the kernel counts.
#[derive(Debug)]
pub struct HostWatch<'a> {
    root: &'a Root,
    cpus: CpuSet,
    counters: CpuCounters,
    threads: Option<ThreadTimes>,
    began: Instant,
    own_cpu: Duration,
}

impl<'a> HostWatch<'a> {
    /// Starts to watch `cpus`; threads are watched on the `quiet` ones alone.
    pub fn start(root: &'a Root, cpus: &CpuSet, quiet: &CpuSet) -> Self {
        Self {
            root,
            cpus: cpus.clone(),
            threads: (!quiet.is_empty()).then(|| ThreadTimes::start(root, quiet)),
            counters: CpuCounters::read(root, cpus),
            began: Instant::now(),
            own_cpu: own_cpu_time(),
        }
    }

    /// Returns what happened since the start, or since the last call.
    pub fn interval(&mut self) -> Interval {
        let counters = CpuCounters::read(self.root, &self.cpus);
        let now = Instant::now();
        let elapsed = now - self.began;
        let run = self.counters.until(&counters, &self.cpus);
        (self.counters, self.began) = (counters, now);
        let threads = self.threads.as_mut().map_or(Reading::Absent, |threads| threads.ran(self.root));
        let own_cpu = own_cpu_time();
        let used = own_cpu.saturating_sub(self.own_cpu);
        self.own_cpu = own_cpu;
        Interval {
            elapsed_ns: ns(elapsed),
            doubts: run.doubts.iter().map(ToString::to_string).collect(),
            counted: run.by_cpu,
            read: run.read,
            threads,
            drops: nic_drops(self.root),
            ticks_per_s: rustix::param::clock_ticks_per_second(),
            own_cpu_ns: ns(used),
        }
    }
}

/// CPU time of this process, on all CPUs.
fn own_cpu_time() -> Duration {
    // The kernel's clock never returns a negative time.
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host_run::affinity;
    use std::{hint::black_box, thread};

    #[test]
    fn this_host_is_watched_interval_by_interval() {
        let root = Root::live();
        let cpus = affinity::current().unwrap();
        let mut watch = HostWatch::start(&root, &cpus, &CpuSet::new());
        thread::sleep(Duration::from_millis(50));
        let first = watch.interval();
        assert!(first.elapsed_ns >= 50_000_000, "{first:?}");
        assert!(first.threads.is_absent(), "no CPU is kept quiet");
        let until = Instant::now() + Duration::from_millis(30);
        while Instant::now() < until {
            black_box(0);
        }
        let second = watch.interval();
        assert!(second.own_cpu_ns > 0 && second.elapsed_ns >= 30_000_000, "{second:?}");
    }

    #[test]
    fn threads_of_quiet_cpus_are_named() {
        let root = Root::live();
        let cpus = affinity::current().unwrap();
        let mut watch = HostWatch::start(&root, &cpus, &cpus);
        let mut child = std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let began = Instant::now();
        // A busy host may let it wait for a while.
        let shell = loop {
            thread::sleep(Duration::from_millis(20));
            let threads = watch.interval().threads.into_known().unwrap();
            if let Some(shell) = threads.into_iter().find(|thread| thread.pid == pid) {
                break shell;
            }
            assert!(began.elapsed() < Duration::from_secs(120), "the shell does not show");
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(shell.ran_ns.is_some_and(|ns| ns > 0) && !shell.is_kernel, "{shell:?}");
        assert!(shell.cpus_allowed.is_known());
    }
}
