//! Resource use of a process, as counted by the kernel.

use rustix::param::clock_ticks_per_second;
use std::fs;

const NS_PER_S: u64 = 1_000_000_000;

/// Counters of a process since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Use {
    /// CPU time in user and kernel mode, ns.
    pub cpu_ns: u64,
    pub minor_faults: u64,
    /// Major page faults, which read a disk.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Involuntary context switches.
    pub involuntary: u64,
}

impl Use {
    /// Reads them; `None` if the process has ended, or /proc is unavailable.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Switches are counted per thread; for an ended process only those of its first thread remain.
        let tasks: Vec<_> = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten().collect();
        let texts = |name: &'static str| {
            tasks.iter().filter_map(move |task| fs::read_to_string(task.path().join(name)).ok())
        };
        Self::parse(&stat, texts("status"), texts("schedstat"))
    }

    /// Fields 10, 12, 14 and 15 of /proc/PID/stat, two lines of each thread's status, and the first field of
    /// each thread's schedstat (proc(5), sched-stats.rst). A process that seldom runs uses less than a tick of
    /// the kernel's clock, so nanoseconds are used if available; ended threads are included only in ticks.
    fn parse(
        stat: &str,
        statuses: impl Iterator<Item = String>,
        schedstats: impl Iterator<Item = String>,
    ) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let mut used = Self {
            minor_faults: field(10)?,
            major_faults: field(12)?,
            cpu_ns: (field(14)? + field(15)?).saturating_mul(NS_PER_S / clock_ticks_per_second().max(1)),
            ..Self::default()
        };
        let running_ns =
            schedstats.filter_map(|text| text.split_ascii_whitespace().next()?.parse::<u64>().ok());
        used.cpu_ns = used.cpu_ns.max(running_ns.sum());
        for status in statuses {
            let line = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name))?;
                line.trim_start_matches(':').trim().parse::<u64>().ok()
            };
            used.voluntary += line("voluntary_ctxt_switches")?;
            used.involuntary += line("nonvoluntary_ctxt_switches")?;
        }
        Some(used)
    }

    /// The sum of two processes.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            minor_faults: self.minor_faults.saturating_add(other.minor_faults),
            major_faults: self.major_faults.saturating_add(other.major_faults),
            voluntary: self.voluntary.saturating_add(other.voluntary),
            involuntary: self.involuntary.saturating_add(other.involuntary),
        }
    }

    /// Increase since an earlier reading.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

/// Memory that only this process uses: its own pages and its page tables, bytes. Unchanged pages of files are left out:
/// how many of them no other process maps depends on what else runs. `None` if the process has ended, or
/// /proc/PID/smaps_rollup is unavailable (Linux before 4.14).
pub fn private_bytes(pid: u32) -> Option<u64> {
    let text = |name| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    private(&text("smaps_rollup")?, &text("status")?)
}

/// The sum of the private lines of smaps_rollup without the clean ones, and the page tables of status, which are in kB.
fn private(rollup: &str, status: &str) -> Option<u64> {
    let kib = |line: &str| line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok();
    let is_own = |line: &&str| line.starts_with("Private_") && !line.starts_with("Private_Clean");
    let pages: Option<u64> = rollup.lines().filter(is_own).map(kib).sum();
    let tables = status.lines().find(|line| line.starts_with("VmPTE:")).and_then(kib)?;
    pages.filter(|_| rollup.contains("Private_Dirty:")).map(|pages| (pages + tables) << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_memory_is_own_pages_and_page_tables() {
        let rollup = "00-ff ---p 00:00 0 [rollup]\nRss: 900 kB\nPrivate_Clean: 8 kB\nPrivate_Dirty: 30 kB\nPrivate_Hugetlb: 0 kB\n";
        assert_eq!(private(rollup, "VmSwap: 0 kB\nVmPTE:\t 44 kB\n"), Some(74 << 10));
        assert_eq!((private("", "VmPTE: 44 kB\n"), private(rollup, "")), (None, None));
        assert!(private_bytes(std::process::id()).is_some_and(|bytes| bytes > 4096));
        assert_eq!(private_bytes(u32::MAX), None);
    }

    #[test]
    fn counters_are_read_and_subtracted() {
        let stat = |minor, ticks| format!("9 (a) b) S 1 2 3 4 5 6 {minor} 0 3 0 {ticks} 5 0 0");
        let status = |switches| {
            format!("Name:\tx\nvoluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t2\n")
        };
        let tick_ns = NS_PER_S / clock_ticks_per_second();
        let schedstat = |ns: u64| format!("{ns} 17 3\n");
        let none = std::iter::empty::<String>;
        let before = Use::parse(&stat(10, 100), [status(7)].into_iter(), none()).unwrap();
        let after = Use::parse(&stat(14, 300), [status(4), status(5)].into_iter(), none()).unwrap();
        assert_eq!((before.major_faults, before.cpu_ns, before.involuntary), (3, 105 * tick_ns, 2));
        let used = after.since(before);
        let expected = (4, 0, 2, 200 * tick_ns);
        assert_eq!((used.minor_faults, used.major_faults, used.voluntary, used.cpu_ns), expected);
        assert_eq!(Use::parse("9 (a) S 1", none(), none()), None);
        // Less than a tick, in two threads.
        let idle = "9 (a) S 1 2 3 4 5 6 0 0 0 0 0 0 0 0";
        let used = Use::parse(idle, none(), [schedstat(41_000), schedstat(1)].into_iter()).unwrap();
        assert_eq!(used.cpu_ns, 41_001);
        assert!(Use::of(std::process::id()).is_some());
    }
}
