//! Threads that ran on CPUs in an interval, and interruptions by cause, for a live view.

use super::{Cause, CounterDelta};
use lowlat_host::{CpuId, CpuSet, Reading};
use serde::Serialize;
use std::collections::BTreeMap;

/// The kernel's counters that were read at both ends of an interval. One that was not read is unknown, not zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each says whether one file was read")]
pub struct ReadCounters {
    pub interrupts: bool,
    pub softirqs: bool,
    /// Switches between threads, from /proc/schedstat.
    pub switches: bool,
    /// Time that the hypervisor took, from /proc/stat.
    pub steal: bool,
}

/// Readings from the kernel over one interval.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interval {
    pub elapsed_ns: u64,
    /// Increase of the kernel's counters per watched CPU, largest first. CPUs without one are missing.
    pub counted: BTreeMap<CpuId, Vec<CounterDelta>>,
    pub read: ReadCounters,
    /// Threads that ran on the CPUs that are kept quiet; absent if there are none.
    pub threads: Reading<Vec<RanThread>>,
    /// Packets that each interface lost since its driver was loaded, by the kernel's name of the counter.
    pub drops: BTreeMap<String, BTreeMap<String, u64>>,
    /// Ticks per second of the kernel's accounting, in which steal time is counted.
    pub ticks_per_s: u64,
    /// CPU time that lowlat used, on all CPUs.
    pub own_cpu_ns: u64,
    /// Figures that are unknown, one sentence each.
    pub doubts: Vec<String>,
}

/// A thread that ran on a watched CPU.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RanThread {
    pub pid: i32,
    pub tid: i32,
    /// Its name, with control characters escaped.
    pub comm: String,
    /// The CPU on which it last ran.
    pub cpu: CpuId,
    /// Time that it ran for in the interval; `None` if it came from another CPU, so that its time here is unknown.
    pub ran_ns: Option<u64>,
    pub is_kernel: bool,
    /// CPUs that it may use.
    pub cpus_allowed: Reading<CpuSet>,
}

/// Reason that a thread runs on a CPU that is kept quiet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// It may also run elsewhere, and the scheduler placed it here.
    Intruder,
    /// Its affinity cannot be read.
    Unknown,
    /// A kernel thread of this CPU alone, such as ksoftirqd/3: the kernel needs it here.
    Bound,
    /// It may only run on quiet CPUs: it was pinned there.
    Pinned,
}

impl RanThread {
    /// Returns the reason that it runs on its CPU, given the CPUs that are kept quiet.
    pub fn place(&self, quiet: &CpuSet) -> Place {
        match self.cpus_allowed.known() {
            None => Place::Unknown,
            Some(allowed) if self.is_kernel && *allowed == CpuSet::of(self.cpu) => Place::Bound,
            Some(allowed) if !allowed.is_empty() && allowed.is_subset(quiet) => Place::Pinned,
            Some(_) => Place::Intruder,
        }
    }

    /// Its label: "cron (pid 812)", or "md/feed (pid 70, thread 71)".
    pub fn label(&self) -> String {
        if self.pid == self.tid {
            format!("{} (pid {})", self.comm, self.pid)
        } else {
            format!("{} (pid {}, thread {})", self.comm, self.pid, self.tid)
        }
    }
}

/// Interruptions of the sampled CPUs in an interval.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Sampled {
    /// In order of the CPUs.
    pub cpus: Vec<SampledCpu>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SampledCpu {
    pub cpu: CpuId,
    pub count: u64,
    pub ns_total: u64,
    pub ns_max: u64,
    /// By main cause, the longest total first.
    pub causes: Vec<SampledCause>,
    /// Interruptions that are missing here because they came faster than they were read.
    pub lost_count: u64,
}

/// Interruptions with one main cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SampledCause {
    pub cause: Cause,
    pub count: u64,
    pub ns_total: u64,
    pub ns_max: u64,
}

impl Sampled {
    /// Adds the interruptions of a later interval.
    pub fn add(&mut self, later: Self) {
        for cpu in later.cpus {
            match self.cpus.iter_mut().find(|known| known.cpu == cpu.cpu) {
                Some(known) => known.add(cpu),
                None => self.cpus.push(cpu),
            }
        }
        self.cpus.sort_by_key(|cpu| cpu.cpu);
    }
}

impl SampledCpu {
    /// Adds the interruptions of a later interval on this CPU.
    pub fn add(&mut self, later: Self) {
        self.count = self.count.saturating_add(later.count);
        self.ns_total = self.ns_total.saturating_add(later.ns_total);
        self.ns_max = self.ns_max.max(later.ns_max);
        self.lost_count = self.lost_count.saturating_add(later.lost_count);
        for cause in later.causes {
            match self.causes.iter_mut().find(|known| known.cause == cause.cause) {
                Some(known) => {
                    known.count = known.count.saturating_add(cause.count);
                    known.ns_total = known.ns_total.saturating_add(cause.ns_total);
                    known.ns_max = known.ns_max.max(cause.ns_max);
                }
                None => self.causes.push(cause),
            }
        }
        self.causes.sort_by(|a, b| b.ns_total.cmp(&a.ns_total).then_with(|| a.cause.cmp(&b.cause)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CauseKind;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    #[test]
    fn a_thread_that_could_run_elsewhere_is_an_intruder() {
        let on_3 = |allowed: &str, is_kernel| {
            let cpus_allowed = Reading::Known(set(allowed));
            RanThread { cpu: 3, is_kernel, cpus_allowed, ..RanThread::default() }.place(&set("2-3"))
        };
        assert_eq!(on_3("0-3", false), Place::Intruder);
        assert_eq!(on_3("0-3", true), Place::Intruder, "an unbound kworker");
        assert_eq!(on_3("3", true), Place::Bound);
        assert_eq!(on_3("3", false), Place::Pinned);
        assert_eq!(on_3("2-3", true), Place::Pinned);
        let unknown = RanThread { cpu: 3, ..RanThread::default() };
        assert_eq!(unknown.place(&set("2-3")), Place::Unknown);
    }

    #[test]
    fn threads_are_named_with_their_process() {
        let thread = RanThread { pid: 70, tid: 70, comm: "md".to_owned(), ..RanThread::default() };
        assert_eq!(thread.label(), "md (pid 70)");
        assert_eq!(RanThread { tid: 71, ..thread }.label(), "md (pid 70, thread 71)");
    }

    #[test]
    fn intervals_add_up_by_cause() {
        let part = |cpu, kind, ns| {
            let cause = SampledCause { cause: Cause::of(kind), count: 1, ns_total: ns, ns_max: ns };
            Sampled {
                cpus: vec![SampledCpu {
                    cpu,
                    count: 1,
                    ns_total: ns,
                    ns_max: ns,
                    causes: vec![cause],
                    lost_count: 1,
                }],
            }
        };
        let mut sum = part(3, CauseKind::Irq, 5);
        sum.add(part(3, CauseKind::Nmi, 9));
        sum.add(part(3, CauseKind::Irq, 7));
        sum.add(part(2, CauseKind::Irq, 1));
        let cpus: Vec<CpuId> = sum.cpus.iter().map(|cpu| cpu.cpu).collect();
        let cpu = &sum.cpus[1];
        assert_eq!((cpus, cpu.count, cpu.ns_total, cpu.ns_max, cpu.lost_count), (vec![2, 3], 3, 21, 9, 3));
        let causes: Vec<(CauseKind, u64, u64)> =
            cpu.causes.iter().map(|cause| (cause.cause.kind, cause.count, cause.ns_total)).collect();
        assert_eq!(causes, [(CauseKind::Irq, 2, 12), (CauseKind::Nmi, 1, 9)], "the longest first");
    }
}
