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
        // Switches are counted per thread, and these processes have one that matters.
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        Self::parse(&stat, &status)
    }

    /// Fields 10, 12, 14 and 15 of /proc/PID/stat, and two lines of /proc/PID/status (proc(5)).
    fn parse(stat: &str, status: &str) -> Option<Self> {
        let (_, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let line = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim_start_matches(':').trim().parse::<u64>().ok()
        };
        Some(Self {
            minor_faults: field(10)?,
            major_faults: field(12)?,
            cpu_ticks: field(14)? + field(15)?,
            voluntary: line("voluntary_ctxt_switches")?,
            involuntary: line("nonvoluntary_ctxt_switches")?,
        })
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
        let before = Use::parse(&stat(10, 100), &status(7)).unwrap();
        let after = Use::parse(&stat(14, 300), &status(9)).unwrap();
        assert_eq!((before.major_faults, before.cpu_ticks, before.involuntary), (3, 105, 2));
        let used = after.since(before);
        assert_eq!((used.minor_faults, used.major_faults, used.voluntary, used.cpu_ticks), (4, 0, 2, 200));
        assert_eq!(Use::parse("9 (a) S 1", ""), None);
        assert!(Use::of(std::process::id()).is_some());
    }
}
