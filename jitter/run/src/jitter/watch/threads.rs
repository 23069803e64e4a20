//! Threads that ran on the CPUs that are kept quiet, from one walk over /proc per interval.

use crate::jitter::quiet::threads::{Met, printable, walk};
use lowlat_host::{CpuSet, Reading};
use lowlat_host_run::{Root, task_stat::cpus_allowed};
use lowlat_jitter::watch::RanThread;
use std::collections::HashMap;

const NS_PER_S: u64 = 1_000_000_000;

/// The run times of threads at the end of the last interval.
#[derive(Debug)]
pub(super) struct ThreadTimes {
    quiet: CpuSet,
    seen: HashMap<i32, Seen>,
    /// Start of the youngest thread. One that the last walk did not see started after it.
    youngest_start_ticks: u64,
}

/// A thread in the last walk.
#[derive(Debug, Clone, Copy)]
struct Seen {
    start_ticks: u64,
    /// Time that it had run for; `None` if it was on another CPU.
    ran_ns: Option<u64>,
}

impl ThreadTimes {
    /// Makes the first walk over /proc.
    pub(super) fn start(root: &Root, quiet: &CpuSet) -> Self {
        let mut times = Self { quiet: quiet.clone(), seen: HashMap::new(), youngest_start_ticks: 0 };
        let _ = times.ran(root);
        times
    }

    /// Threads that ran on the quiet CPUs since the last walk. A thread that ran there and left again is missed.
    pub(super) fn ran(&mut self, root: &Root) -> Reading<Vec<RanThread>> {
        let (mut now, mut youngest) = (HashMap::with_capacity(self.seen.len()), 0);
        let mut ran = Vec::new();
        let walked = walk(root, &mut |met| {
            youngest = youngest.max(met.usage.start_ticks);
            let is_here = self.quiet.contains(met.usage.cpu);
            let ran_ns = is_here.then(|| ran_ns(root, &met));
            if let Some(ns) = ran_ns {
                match self.since(&met, ns) {
                    Ran::Not => {}
                    Ran::For(ns) => ran.push(thread_of(root, &met, Some(ns))),
                    Ran::Unmeasured => ran.push(thread_of(root, &met, None)),
                }
            }
            now.insert(met.tid, Seen { start_ticks: met.usage.start_ticks, ran_ns });
        });
        (self.seen, self.youngest_start_ticks) = (now, youngest);
        walked.and_then(|unseen| {
            if ran.is_empty() && !unseen.is_empty() {
                return Reading::unparsable("/proc", &unseen, "the threads of all processes");
            }
            ran.sort_by_key(|thread| (thread.cpu, std::cmp::Reverse(thread.ran_ns), thread.tid));
            Reading::Known(ran)
        })
    }

    /// Time that a thread ran on a quiet CPU since the last walk.
    fn since(&self, met: &Met, ran_ns: u64) -> Ran {
        let measured = |ns: u64| if ns > 0 { Ran::For(ns) } else { Ran::Not };
        let before = self.seen.get(&met.tid).filter(|seen| seen.start_ticks == met.usage.start_ticks);
        match before {
            Some(Seen { ran_ns: Some(before), .. }) => measured(ran_ns.saturating_sub(*before)),
            Some(Seen { ran_ns: None, .. }) => Ran::Unmeasured,
            // It is new, or the last walk missed it.
            None if met.usage.start_ticks >= self.youngest_start_ticks => measured(ran_ns),
            None => Ran::Not,
        }
    }
}

/// Time that a thread ran on a quiet CPU.
enum Ran {
    /// It did not run there.
    Not,
    /// It ran for this many nanoseconds.
    For(u64),
    /// It came from a CPU where its time was not read.
    Unmeasured,
}

/// Time that a thread has run for, in nanoseconds where the kernel counts them, else in clock ticks.
fn ran_ns(root: &Root, met: &Met) -> u64 {
    let precise = root.read(&met.path("schedstat")).into_known();
    let precise = precise.and_then(|text| text.split_ascii_whitespace().next()?.parse().ok());
    precise.unwrap_or_else(|| {
        let ticks_per_s = rustix::param::clock_ticks_per_second().max(1);
        met.usage.cpu_ticks.saturating_mul(NS_PER_S / ticks_per_s)
    })
}

fn thread_of(root: &Root, met: &Met, ran_ns: Option<u64>) -> RanThread {
    RanThread {
        pid: met.pid,
        tid: met.tid,
        comm: printable(&met.stat.comm),
        cpu: met.usage.cpu,
        ran_ns,
        is_kernel: met.stat.is_kernel_thread(),
        cpus_allowed: cpus_allowed(root, &met.path("status")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    /// A thread on a CPU: field 22 of its stat line is the start, 39 the CPU.
    fn put(dir: &Path, pid: u32, start: u64, cpu: u32, ran_ns: u64) {
        let place = dir.join(format!("proc/{pid}"));
        fs::create_dir_all(&place).unwrap();
        let fields = (4..=52).map(|number| match number {
            20 => 1,
            22 => start,
            39 => u64::from(cpu),
            _ => 0,
        });
        let fields: Vec<String> = fields.map(|field| field.to_string()).collect();
        fs::write(place.join("stat"), format!("{pid} (t{pid}) S {}\n", fields.join(" "))).unwrap();
        fs::write(place.join("schedstat"), format!("{ran_ns} 0 1\n")).unwrap();
        fs::write(place.join("status"), "Cpus_allowed_list:\t0-3\n").unwrap();
    }

    /// If threads are hidden, an empty result is unknown; threads that were found are still reported.
    #[test]
    fn hidden_threads_are_not_none() {
        let tree = tempfile::tempdir().unwrap();
        put(tree.path(), 1, 10, 3, 500);
        let root = Root::open(tree.path()).unwrap();
        let quiet = CpuSet::of(3);
        let mut times = ThreadTimes::start(&root, &quiet);
        assert_eq!(times.ran(&root), Reading::Known(Vec::new()));
        let ns = tree.path().join("proc/self/ns");
        fs::create_dir_all(&ns).unwrap();
        std::os::unix::fs::symlink("pid:[4026532201]", ns.join("pid")).unwrap();
        let why = times.ran(&root).missing_in_words().unwrap();
        assert!(
            why.contains("threads outside of this private PID namespace (pid:[4026532201]) are hidden"),
            "{why}"
        );
        put(tree.path(), 1, 10, 3, 900);
        assert_eq!(times.ran(&root).into_known().unwrap().len(), 1);
    }

    #[test]
    fn threads_that_ran_on_quiet_cpus_are_found_with_their_time() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        put(at, 1, 10, 3, 500);
        put(at, 2, 11, 3, 600);
        put(at, 3, 12, 0, 700);
        put(at, 4, 12, 0, 800);
        let root = Root::open(at).unwrap();
        let quiet = CpuSet::parse_list("2-3").unwrap();
        let mut times = ThreadTimes::start(&root, &quiet);
        put(at, 1, 10, 3, 900);
        put(at, 3, 12, 2, 750);
        put(at, 4, 12, 0, 9_000);
        put(at, 5, 20, 3, 30);
        let shown = |times: &mut ThreadTimes| -> Vec<(i32, u32, Option<u64>)> {
            let ran = times.ran(&root).into_known().unwrap();
            ran.iter().map(|thread| (thread.pid, thread.cpu, thread.ran_ns)).collect()
        };
        assert_eq!(
            shown(&mut times),
            [(3, 2, None), (1, 3, Some(400)), (5, 3, Some(30))],
            "not 2, which slept, nor 4, which ran elsewhere"
        );
        put(at, 3, 12, 2, 760);
        assert_eq!(shown(&mut times), [(3, 2, Some(10))]);
        put(at, 1, 99, 3, 5);
        assert_eq!(shown(&mut times), [(1, 3, Some(5))], "another thread with the same number");
    }
}
