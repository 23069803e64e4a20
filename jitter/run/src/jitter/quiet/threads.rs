//! Threads that use CPU time, from two walks over /proc.

use lowlat_host::{CpuSet, Reading};
use lowlat_host_run::{
    Root,
    task_stat::{TaskStat, TaskUsage},
};
use lowlat_jitter::{BUSY_KEPT_MAX, BusyThread, BusyThreads};
use std::{cmp::Reverse, collections::HashMap};

/// Maximum number of threads per walk, which bounds its memory and time.
const THREADS_MAX: usize = 1 << 18;
/// Longest name kept, in characters; kernel threads with their work queue have the longest.
const COMM_CHARS_MAX: usize = 64;

/// All visible threads, and the CPU time they had used.
#[derive(Debug)]
pub(super) struct Threads {
    seen: HashMap<i32, ThreadSample>,
    /// Start of the youngest of them. A thread that the first walk did not see started after it if it is not
    /// older than that.
    youngest_start_ticks: u64,
}

#[derive(Debug, Clone, Copy)]
struct ThreadSample {
    usage: TaskUsage,
    is_whole: bool,
}

/// A thread found by a walk.
pub(in crate::jitter) struct Met {
    pub(in crate::jitter) pid: i32,
    pub(in crate::jitter) tid: i32,
    /// The figures are those of its process. They are the same for single-threaded processes, the common case, and need
    /// one file instead of a directory.
    is_whole: bool,
    pub(in crate::jitter) usage: TaskUsage,
    pub(in crate::jitter) stat: TaskStat,
}

impl Met {
    /// Path of one of its files in /proc.
    pub(in crate::jitter) fn path(&self, file: &str) -> String {
        if self.is_whole {
            format!("/proc/{}/{file}", self.pid)
        } else {
            format!("/proc/{}/task/{}/{file}", self.pid, self.tid)
        }
    }
}

impl Threads {
    /// Makes the first walk over /proc.
    pub(super) fn of(root: &Root) -> Reading<Self> {
        let mut threads = Self { seen: HashMap::new(), youngest_start_ticks: 0 };
        walk(root, &mut |met| {
            threads.youngest_start_ticks = threads.youngest_start_ticks.max(met.usage.start_ticks);
            let sample = ThreadSample { usage: met.usage, is_whole: met.is_whole };
            threads.seen.entry(met.tid).or_insert(sample);
        })
        .map(|_| threads)
    }

    /// The second walk: threads that used CPU time since the first, with the CPU on which they last ran.
    ///
    /// The kernel reports CPU time in clock ticks, so a thread that used less than one may be missed; on a CPU
    /// where it matters, the next check or the measurement itself will reveal it.
    pub(super) fn busy_since(&self, root: &Root, measured: &CpuSet) -> Reading<BusyThreads> {
        let tick_ms = 1_000 / rustix::param::clock_ticks_per_second().clamp(1, 1_000);
        let mut busy = BusyThreads::default();
        let walked = walk(root, &mut |met| {
            let used_ticks = self.used_since(&met);
            if used_ticks == 0 {
                return;
            }
            let thread = BusyThread {
                pid: met.pid,
                tid: met.tid,
                comm: printable(&met.stat.comm),
                cpu: met.usage.cpu,
                used_ms: used_ticks.saturating_mul(tick_ms),
                is_kernel: met.stat.is_kernel_thread(),
            };
            if measured.contains(thread.cpu) {
                busy.measured.push(thread);
            } else {
                busy.elsewhere.push(thread);
            }
        });
        walked.map(|unseen| {
            (busy.measured_count, busy.elsewhere_count) = (busy.measured.len(), busy.elsewhere.len());
            for threads in [&mut busy.measured, &mut busy.elsewhere] {
                threads.sort_by_key(|thread| (Reverse(thread.used_ms), thread.tid));
                threads.truncate(BUSY_KEPT_MAX);
            }
            BusyThreads { unseen, ..busy }
        })
    }

    fn used_since(&self, met: &Met) -> u64 {
        let start_ticks = met.usage.start_ticks;
        match self.seen.get(&met.tid).filter(|seen| seen.usage.start_ticks == start_ticks) {
            Some(seen) if seen.is_whole == met.is_whole => {
                met.usage.cpu_ticks.saturating_sub(seen.usage.cpu_ticks)
            }
            // The number was reused by a new thread, or the thread is new.
            None if start_ticks >= self.youngest_start_ticks => met.usage.cpu_ticks,
            // Figures of a process and of one of its threads cannot be compared.
            _ => 0,
        }
    }
}

/// Visits all visible threads except those of this process. Skips threads that end meanwhile. Returns why some
/// were invisible; empty if none were.
pub(in crate::jitter) fn walk(root: &Root, visit: &mut dyn FnMut(Met)) -> Reading<String> {
    let own_pid = root.read_link("/proc/self").into_known();
    root.list("/proc").map(|names| {
        let mut walk = Walk { root, visit, denied_count: 0, left: THREADS_MAX };
        let numbers = names.iter().filter(|name| Some(*name) != own_pid.as_ref());
        for pid in numbers.filter_map(|name| name.parse().ok()) {
            walk.process(pid);
        }
        let hides_init = !names.iter().any(|name| name == "1");
        walk.unseen(hides_init)
    })
}

/// The host's PID namespace (kernel: PROC_PID_INIT_INO, the same on every host).
const HOST_PIDS: &str = "pid:[4026531836]";

/// This process's PID namespace if it is not the host's, as in a container.
pub(in crate::jitter) fn private_pids(root: &Root) -> Option<String> {
    root.read_link("/proc/self/ns/pid").into_known().filter(|own| own != HOST_PIDS)
}

struct Walk<'a> {
    root: &'a Root,
    visit: &'a mut dyn FnMut(Met),
    denied_count: usize,
    left: usize,
}

impl Walk<'_> {
    fn process(&mut self, pid: i32) {
        let Some((stat, usage)) = self.stat(&format!("/proc/{pid}/stat")) else { return };
        if usage.thread_count <= 1 {
            self.meet(Met { pid, tid: pid, is_whole: true, usage, stat });
            return;
        }
        let names = self.root.list(&format!("/proc/{pid}/task")).into_known().unwrap_or_default();
        for tid in names.iter().filter_map(|name| name.parse().ok()) {
            if let Some((stat, usage)) = self.stat(&format!("/proc/{pid}/task/{tid}/stat")) {
                self.meet(Met { pid, tid, is_whole: false, usage, stat });
            }
        }
    }

    fn stat(&mut self, path: &str) -> Option<(TaskStat, TaskUsage)> {
        if self.left == 0 {
            return None;
        }
        match TaskStat::read(self.root, path) {
            Reading::Known(stat) => stat.usage.map(|usage| (stat, usage)),
            Reading::Denied => {
                self.denied_count += 1;
                None
            }
            // It ended meanwhile.
            Reading::Absent | Reading::Unparsable(_) => None,
        }
    }

    fn meet(&mut self, met: Met) {
        self.left = self.left.saturating_sub(1);
        (self.visit)(met);
    }

    fn unseen(&self, hides_init: bool) -> String {
        if self.left == 0 {
            return format!("only the first {THREADS_MAX} threads were checked");
        }
        if let Some(own) = private_pids(self.root) {
            return format!("threads outside of this private PID namespace ({own}) are hidden");
        }
        if hides_init || self.denied_count > 0 {
            return "processes of other users are hidden (hidepid)".to_owned();
        }
        String::new()
    }
}

/// Names may be any bytes chosen by their owner.
pub(in crate::jitter) fn printable(comm: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().collect() } else { vec![c] };
    comm.chars().flat_map(shown).take(COMM_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path};

    /// A stat line: field 14 contains the ticks, 20 the threads, 22 the start, 39 the CPU.
    fn line(comm: &str, flags: u64, ticks: u64, threads: u64, start: u64, cpu: u32) -> String {
        let fields = (4..=52).map(|number| match number {
            9 => flags,
            14 => ticks,
            20 => threads,
            22 => start,
            39 => u64::from(cpu),
            _ => 0,
        });
        let fields: Vec<String> = fields.map(|field| field.to_string()).collect();
        format!("1 ({comm}) S {}\n", fields.join(" "))
    }

    fn put(dir: &Path, task: &str, line: &str) {
        let place = dir.join("proc").join(task);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join("stat"), line).unwrap();
    }

    fn host() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "1", &line("init", 0, 500, 1, 10, 0));
        put(dir.path(), "30", &line("ksoftirqd/3", 0x0020_0000, 40, 1, 11, 3));
        put(dir.path(), "70", &line("md", 0, 900, 2, 700, 0));
        put(dir.path(), "70/task/70", &line("md", 0, 100, 2, 700, 0));
        put(dir.path(), "70/task/71", &line("md\nfeed", 0, 800, 2, 701, 4));
        put(dir.path(), "80", &line("old", 0, 5_000, 1, 750, 5));
        put(dir.path(), "99", &line("lowlat", 0, 60, 1, 800, 3));
        std::os::unix::fs::symlink("99", dir.path().join("proc/self")).unwrap();
        dir
    }

    fn measured() -> CpuSet {
        CpuSet::parse_list("3-5").unwrap()
    }

    #[test]
    fn threads_that_used_time_are_named_except_ours() {
        let dir = host();
        let root = Root::open(dir.path()).unwrap();
        let threads = Threads::of(&root).into_known().unwrap();
        let at = dir.path();
        put(at, "1", &line("init", 0, 502, 1, 10, 0));
        put(at, "30", &line("ksoftirqd/3", 0x0020_0000, 41, 1, 11, 3));
        put(at, "70/task/71", &line("md\nfeed", 0, 825, 2, 701, 4));
        put(at, "80", &line("young", 0, 3, 1, 900, 5));
        put(at, "81", &line("younger", 0, 2, 1, 901, 5));
        put(at, "82", &line("missed before", 0, 4_000, 1, 20, 5));
        put(at, "83", "junk");
        put(at, "99", &line("lowlat", 0, 90, 1, 800, 3));
        let busy = threads.busy_since(&root, &measured()).into_known().unwrap();
        let tick_ms = 1_000 / rustix::param::clock_ticks_per_second();
        let shown: Vec<(&str, i32, i32, u32, u64, bool)> = busy
            .measured
            .iter()
            .map(|t| (t.comm.as_str(), t.pid, t.tid, t.cpu, t.used_ms / tick_ms, t.is_kernel))
            .collect();
        assert_eq!(
            shown,
            [
                ("md\\nfeed", 70, 71, 4, 25, false),
                ("young", 80, 80, 5, 3, false),
                ("younger", 81, 81, 5, 2, false),
                ("ksoftirqd/3", 30, 30, 3, 1, true),
            ]
        );
        assert_eq!((busy.measured_count, busy.elsewhere_count, busy.unseen.as_str()), (4, 1, ""));
        assert_eq!(busy.elsewhere[0].comm, "init");
    }

    #[test]
    fn a_process_with_changing_threads_is_not_compared_with_its_sum() {
        let dir = host();
        let root = Root::open(dir.path()).unwrap();
        let threads = Threads::of(&root).into_known().unwrap();
        put(dir.path(), "70", &line("md", 0, 901, 1, 700, 4));
        let busy = threads.busy_since(&root, &measured()).into_known().unwrap();
        assert_eq!((busy.measured_count, busy.elsewhere_count), (0, 0), "{busy:?}");
    }

    #[test]
    fn hidden_processes_are_reported() {
        let dir = host();
        fs::remove_dir_all(dir.path().join("proc/1")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let busy =
            Threads::of(&root).into_known().unwrap().busy_since(&root, &measured()).into_known().unwrap();
        assert!(busy.unseen.contains("hidden"), "{busy:?}");
        let none = Root::in_memory("test", []);
        assert!(Threads::of(&none).is_absent());
    }

    #[test]
    fn lists_are_bounded() {
        let dir = host();
        let root = Root::open(dir.path()).unwrap();
        let threads = Threads::of(&root).into_known().unwrap();
        for pid in 1_000..1_100 {
            put(dir.path(), &pid.to_string(), &line("many", 0, u64::from(pid == 1_099) + 1, 1, 2_000, 3));
        }
        let busy = threads.busy_since(&root, &measured()).into_known().unwrap();
        assert_eq!((busy.measured_count, busy.measured.len()), (100, BUSY_KEPT_MAX));
        assert_eq!(busy.measured[0].pid, 1_099, "the busiest is kept");
    }
}
