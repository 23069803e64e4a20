//! Reads kernel threads, workqueues and the CPUs that this process may use.

use crate::{
    Root,
    task_stat::{TaskStat, cpus_allowed},
};
use lowlat_host::{
    Reading,
    snapshot::{KernelThread, TaskFacts, Workqueue},
};

/// The kernel refuses to change the task's affinity.
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

pub(super) fn read(root: &Root) -> TaskFacts {
    TaskFacts {
        kernel_threads: kernel_threads(root),
        workqueues: workqueues(root),
        workqueue_cpus: root.read_cpu_mask("/sys/devices/virtual/workqueue/cpumask"),
        allowed_cpus: cpus_allowed(root, "/proc/self/status"),
        first_process_cpus: cpus_allowed(root, "/proc/1/status"),
    }
}

fn kernel_threads(root: &Root) -> Vec<KernelThread> {
    let names = root.or_unread("/proc", root.list("/proc"));
    let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    pids.into_iter().filter_map(|pid| kernel_thread(root, pid)).collect()
}

/// The thread if it is a kernel thread; `None` for a task that ended in the meantime.
fn kernel_thread(root: &Root, pid: u32) -> Option<KernelThread> {
    let stat = match TaskStat::read(root, &format!("/proc/{pid}/stat")) {
        Reading::Absent => None,
        stat => root.or_unread("/proc/*/stat", stat.map(Some)),
    }?;
    if !stat.is_kernel_thread() {
        return None;
    }
    Some(KernelThread {
        pid,
        cpus_allowed: cpus_allowed(root, &format!("/proc/{pid}/status")),
        policy: stat.policy,
        rt_priority: stat.rt_priority,
        is_bound: stat.flags & PF_NO_SETAFFINITY != 0,
        comm: stat.comm,
    })
}

/// Workqueues that expose their attributes (WQ_SYSFS); per-CPU ones have no cpumask, which stays absent.
fn workqueues(root: &Root) -> Vec<Workqueue> {
    let names = root.list("/sys/bus/workqueue/devices").into_known().unwrap_or_default();
    let queue = |name: String| Workqueue {
        cpus: root.read_cpu_mask(&format!("/sys/bus/workqueue/devices/{name}/cpumask")),
        name,
    };
    names.into_iter().map(queue).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{task_stat::PF_KTHREAD, testing::TestTree};

    const FLAGS: usize = 9;
    const RT_PRIORITY: usize = 40;
    const POLICY: usize = 41;

    /// A stat line with the given name, flags, real-time priority and policy; the other fields contain their
    /// number.
    fn stat(comm: &str, flags: u64, rt_priority: u32, policy: u32) -> String {
        let fields = (4..=52).map(|number| match number {
            FLAGS => flags.to_string(),
            RT_PRIORITY => rt_priority.to_string(),
            POLICY => policy.to_string(),
            number => number.to_string(),
        });
        format!("1 ({comm}) S {}\n", fields.collect::<Vec<_>>().join(" "))
    }

    fn host() -> TestTree {
        TestTree::new()
            .file("/proc/2/stat", stat("kthreadd", PF_KTHREAD | 0x8040, 0, 0))
            .file("/proc/2/status", "Name:\tkthreadd\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n")
            .file("/proc/10/stat", stat("migration/1", PF_KTHREAD | PF_NO_SETAFFINITY, 99, 1))
            .file("/proc/10/status", "Cpus_allowed:\tff,00000002\n")
            .file("/proc/9/stat", stat("odd) S (1) name", PF_KTHREAD, 0, 7))
            .file("/proc/9/status", "Cpus_allowed_list:\t1-\n")
            .file("/proc/11/stat", stat("bash", 0x0040_0000, 0, 0))
            .file("/proc/12/stat", "12 (cut) S 1 2 3 4 5 2129984 0")
            .file("/proc/self/status", "Cpus_allowed_list:\t0,2\n")
            .file("/proc/1/status", "Name:\tsystemd\nCpus_allowed_list:\t0-2\n")
            .file("/sys/devices/virtual/workqueue/cpumask", "3\n")
            .file("/sys/devices/virtual/workqueue/writeback/cpumask", "2\n")
            .file("/sys/devices/virtual/workqueue/percpu/per_cpu", "1\n")
            .link("/sys/bus/workqueue/devices/writeback", "../../../devices/virtual/workqueue/writeback")
            .link("/sys/bus/workqueue/devices/percpu", "../../../devices/virtual/workqueue/percpu")
    }

    #[test]
    fn only_kernel_threads_are_kept_with_affinity_and_policy() {
        let facts = read(&host().root());
        let shown: Vec<String> = facts
            .kernel_threads
            .iter()
            .map(|t| format!("{} {} {:?} {} {}", t.pid, t.comm, t.policy, t.rt_priority, t.is_bound))
            .collect();
        assert_eq!(
            shown,
            [
                "2 kthreadd Other 0 false",
                "9 odd) S (1) name Ext 0 false",
                "10 migration/1 Fifo 99 true",
                "12 cut Unknown 0 false",
            ]
        );
        let [kthreadd, odd, migration, cut] = &facts.kernel_threads[..] else { panic!() };
        assert_eq!(kthreadd.cpus_allowed.to_string(), "0-1");
        assert!(matches!(odd.cpus_allowed, Reading::Unparsable(_)));
        assert_eq!(migration.cpus_allowed.to_string(), "1,32-39");
        assert!(cut.cpus_allowed.is_absent());
    }

    #[test]
    fn workqueues_and_own_cpus_are_read() {
        let facts = read(&host().root());
        let shown: Vec<String> = facts.workqueues.iter().map(|w| format!("{} {}", w.name, w.cpus)).collect();
        assert_eq!(shown, ["percpu absent", "writeback 1"]);
        assert_eq!(
            (facts.workqueue_cpus.to_string(), facts.allowed_cpus.to_string()),
            ("0-1".into(), "0,2".into())
        );
        assert_eq!(facts.first_process_cpus.to_string(), "0-2");
    }

    #[test]
    fn the_live_host_tells_where_this_process_may_run() {
        let facts = read(&Root::live());
        assert!(!facts.allowed_cpus.into_known().unwrap().is_empty());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..120), cut in 0usize..150) {
            let line = stat("a) b", PF_KTHREAD, 1, 1);
            let kept = line.as_bytes().get(..cut).unwrap_or(line.as_bytes());
            let tree = TestTree::new()
                .file("/proc/1/stat", &bytes)
                .file("/proc/2/stat", kept)
                .file("/proc/2/status", [b"Cpus_allowed_list:\t", &bytes[..]].concat())
                .file("/proc/self/status", &bytes)
                .file("/sys/devices/virtual/workqueue/cpumask", &bytes);
            let _ = read(&tree.root());
        }
    }
}
