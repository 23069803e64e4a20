//! CPUs on which firmware or a hypervisor was recently active, checked about once a second during a run.

use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_host_run::{PolledFile, Root, proc_stat::steal_of_line};

const STAT: &str = "/proc/stat";

/// Longest line of a CPU, in bytes: a name and ten numbers of twenty digits with separators.
const LINE_BYTES_MAX: usize = 256;

/// CPUs on which steal time increased since the last check.
///
/// For the collecting thread, off the measured CPUs: a check reads one open file into a preallocated buffer and
/// does not involve the measured CPUs. So it cannot detect system-management interrupts, because a CPU must be
/// interrupted to read their count: those are counted before and after the run ([`super::SmiCounts`]).
///
/// The kernel reports steal time in steps of a clock tick, 10 ms on nearly all kernels. Shorter pieces only
/// show once they add up to a step, so a window without an increase proves nothing.
#[derive(Debug)]
pub struct StealWatch {
    stat: Reading<PolledFile>,
    /// The measured CPUs in order, with their last known steal time.
    last: Vec<(CpuId, Option<u64>)>,
    moved: CpuSet,
    is_readable: bool,
}

impl StealWatch {
    /// Opens /proc/stat and reads it for the first time.
    pub fn new(root: &Root, cpus: &CpuSet) -> Self {
        // The file has a line per online CPU, ours or not, after the line of their total.
        let present = root.read_cpu_list("/sys/devices/system/cpu/possible").into_known();
        let count = present.map_or(0, |cpus| cpus.len()).max(cpus.len());
        let mut windows = Self {
            stat: root.open_to_poll(STAT, (count + 1) * LINE_BYTES_MAX),
            last: cpus.iter().map(|cpu| (cpu, None)).collect(),
            // Already grown to its full length.
            moved: cpus.clone(),
            is_readable: false,
        };
        windows.poll();
        windows
    }

    /// Checks again: the CPUs on which steal time increased since the last check. A CPU that was offline at
    /// either check is left out.
    pub fn poll(&mut self) -> &CpuSet {
        for (cpu, _) in &self.last {
            self.moved.remove(*cpu);
        }
        let bytes = match &mut self.stat {
            Reading::Known(stat) => stat.read().into_known(),
            _ => None,
        };
        self.is_readable = bytes.is_some_and(|bytes| note(bytes, &mut self.last, &mut self.moved));
        &self.moved
    }

    /// True if the last check succeeded: /proc/stat existed and contained the measured CPUs.
    pub fn is_readable(&self) -> bool {
        self.is_readable
    }
}

/// Stores the steal time of each line; returns false if there was none of a measured CPU.
fn note(bytes: &[u8], last: &mut [(CpuId, Option<u64>)], moved: &mut CpuSet) -> bool {
    let mut is_any = false;
    let mut next = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        // The buffer may end within a line.
        let Some(line) = line.strip_suffix(b"\n") else { break };
        if !line.starts_with(b"cpu") {
            break;
        }
        let Some((cpu, steal)) = std::str::from_utf8(line).ok().and_then(steal_of_line) else { continue };
        // CPUs without a line are offline: their next value does not count as an increase.
        while let Some((_, seen)) = last.get_mut(next).filter(|(measured, _)| *measured < cpu) {
            *seen = None;
            next += 1;
        }
        if let Some((_, seen)) = last.get_mut(next).filter(|(measured, _)| *measured == cpu) {
            if seen.is_some_and(|seen| steal > seen) {
                moved.insert(cpu);
            }
            *seen = Some(steal);
            is_any = true;
            next += 1;
        }
    }
    for (_, seen) in last.iter_mut().skip(next) {
        *seen = None;
    }
    is_any
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn stat(steals: &[(CpuId, u64)]) -> String {
        let line = |(cpu, steal): &(CpuId, u64)| format!("cpu{cpu} 1 2 3 4 5 6 7 {steal} 0 0\n");
        let lines = steals.iter().map(line).collect::<Vec<_>>().concat();
        format!("cpu  1 2 3 4 5 6 7 99 0 0\n{lines}intr 12 3\nctxt 4\n")
    }

    struct Host {
        dir: tempfile::TempDir,
    }

    impl Host {
        fn new(steals: &[(CpuId, u64)]) -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("proc")).unwrap();
            let host = Self { dir };
            host.set(&stat(steals));
            host
        }

        fn set(&self, text: &str) {
            fs::write(self.dir.path().join("proc/stat"), text).unwrap();
        }

        fn windows(&self, cpus: &str) -> StealWatch {
            let root = Root::open(self.dir.path()).unwrap();
            StealWatch::new(&root, &CpuSet::parse_list(cpus).unwrap())
        }
    }

    #[test]
    fn each_window_reports_only_its_own_increase() {
        let host = Host::new(&[(0, 5), (1, 7), (2, 9)]);
        let mut windows = host.windows("1-2");
        assert!(windows.is_readable());
        assert_eq!(windows.poll().to_list(), "");
        host.set(&stat(&[(0, 50), (1, 8), (2, 9)]));
        assert_eq!(windows.poll().to_list(), "1", "CPU 0 is not measured");
        assert_eq!(windows.poll().to_list(), "");
        host.set(&stat(&[(0, 50), (1, 7), (2, 11)]));
        assert_eq!(windows.poll().to_list(), "2", "a decrease is not an increase");
    }

    #[test]
    fn a_cpu_that_was_offline_has_no_increase() {
        let host = Host::new(&[(0, 5), (1, 7), (4, 9)]);
        let mut windows = host.windows("0-1,4");
        host.set(&stat(&[(0, 5)]));
        assert_eq!(windows.poll().to_list(), "");
        host.set(&stat(&[(0, 6), (1, 90), (4, 90)]));
        assert_eq!(windows.poll().to_list(), "0");
        host.set(&stat(&[(0, 6), (1, 91), (4, 91)]));
        assert_eq!(windows.poll().to_list(), "1,4");
        assert!(windows.is_readable());
    }

    #[test]
    fn an_unreadable_file_is_reported() {
        let host = Host::new(&[(0, 5), (1, 7)]);
        let mut windows = host.windows("0-1");
        for junk in ["", "cpu", "cpu0 1 2 3\n", "cpu1 1 2 3 4 5 6 7 x\n", "cpu0 1 2 3 4 5 6 7 8", "intr 1\n"]
        {
            host.set(junk);
            assert_eq!(windows.poll().to_list(), "", "{junk}");
            assert!(!windows.is_readable(), "{junk}");
        }
        host.set(&stat(&[(0, 99), (1, 99)]));
        assert_eq!(windows.poll().to_list(), "", "there was nothing to compare it with");
        assert!(windows.is_readable());

        let mut none = StealWatch::new(&Root::in_memory("test", []), &CpuSet::first(2));
        assert!(none.poll().is_empty() && !none.is_readable());
    }

    #[test]
    fn this_host_is_polled() {
        let cpus = lowlat_host_run::affinity::current().unwrap();
        let mut windows = StealWatch::new(&Root::live(), &cpus);
        for _ in 0..3 {
            assert!(windows.poll().is_subset(&cpus));
            assert!(windows.is_readable());
        }
    }
}
