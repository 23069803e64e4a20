//! What a process uses, as the kernel counts it.

use std::fs;

/// Counters of one process since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Use {
    /// CPU time in user and kernel mode, in ticks of the kernel's clock.
    pub cpu_ticks: u64,
    /// Page faults without a disk.
    pub minor_faults: u64,
    /// Page faults that read a disk.
    pub major_faults: u64,
    /// Switches away because it waited.
    pub voluntary: u64,
    /// Switches away because something else ran.
    pub involuntary: u64,
}

impl Use {
    /// Reads them; none when the process has gone, or /proc does not tell.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // Switches are counted per thread; of a process that has ended the first one's are left.
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
        let statuses = tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
        Self::parse(&stat, statuses)
    }

    /// Fields 10, 12, 14 and 15 of /proc/PID/stat, and two lines of each thread's status (proc(5)).
    fn parse(stat: &str, statuses: impl Iterator<Item = String>) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let mut used = Self {
            minor_faults: field(10)?,
            major_faults: field(12)?,
            cpu_ticks: field(14)? + field(15)?,
            ..Self::default()
        };
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

    /// What was counted since then.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            cpu_ticks: self.cpu_ticks.saturating_sub(before.cpu_ticks),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_and_subtracted() {
        let stat = |minor, ticks| format!("9 (a) b) S 1 2 3 4 5 6 {minor} 0 3 0 {ticks} 5 0 0");
        let status = |switches| {
            format!("Name:\tx\nvoluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t2\n")
        };
        let before = Use::parse(&stat(10, 100), [status(7)].into_iter()).unwrap();
        let after = Use::parse(&stat(14, 300), [status(4), status(5)].into_iter()).unwrap();
        assert_eq!((before.major_faults, before.cpu_ticks, before.involuntary), (3, 105, 2));
        let used = after.since(before);
        assert_eq!((used.minor_faults, used.major_faults, used.voluntary, used.cpu_ticks), (4, 0, 2, 200));
        assert_eq!(Use::parse("9 (a) S 1", std::iter::empty()), None);
        assert!(Use::of(std::process::id()).is_some());
    }
}
