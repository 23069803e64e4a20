//! Resources that a process has used.

use super::clock::ns_of;
use anyhow::Context;
use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// Counters of this process, all its threads, since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_ns: u64,
    /// Context switches because it waited.
    pub voluntary: u64,
    /// Context switches because something else ran.
    pub involuntary: u64,
    /// Page faults without a disk.
    pub minor_faults: u64,
    /// Page faults that read a disk.
    pub major_faults: u64,
}

impl Usage {
    /// Reads the counters of this process.
    pub fn now() -> anyhow::Result<Self> {
        let stat = fs::read_to_string("/proc/self/stat").context("/proc/self/stat")?;
        let (minor_faults, major_faults) = faults(&stat)
            .with_context(|| format!("/proc/self/stat: found {stat:?}, expected the fields of proc(5)"))?;
        let mut usage = Self {
            cpu_ns: ns_of(clock_gettime(ClockId::ProcessCPUTime)),
            minor_faults,
            major_faults,
            ..Self::default()
        };
        for task in fs::read_dir("/proc/self/task").context("/proc/self/task")? {
            let path = task.context("/proc/self/task")?.path().join("status");
            // A thread may have ended since the folder was read.
            let Ok(status) = fs::read_to_string(path) else { continue };
            usage.voluntary += field(&status, "voluntary_ctxt_switches:").unwrap_or(0);
            usage.involuntary += field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0);
        }
        Ok(usage)
    }

    /// Returns what was used since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
        }
    }
}

/// Fields 10 and 12 of /proc/PID/stat.
fn faults(stat: &str) -> Option<(u64, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let minor = fields.nth(7)?.parse().ok()?;
    let major = fields.nth(1)?.parse().ok()?;
    Some((minor, major))
}

fn field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        assert_eq!(faults("7 (a) b) S 1 2 3 4 5 6 1000 11 12 13 14 15"), Some((1000, 12)));
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(field(status, "voluntary_ctxt_switches:"), Some(12));
        assert_eq!(field(status, "nonvoluntary_ctxt_switches:"), Some(3));
        assert_eq!(field(status, "other:"), None);
    }

    #[test]
    fn work_counts() {
        // Switches are not compared: they are those of existing threads, and other tests start and end threads.
        let before = Usage::now().unwrap();
        let after = std::iter::repeat_with(|| Usage::now().unwrap()).find(|now| now.cpu_ns > before.cpu_ns);
        assert!(after.unwrap().since(&before).cpu_ns > 0);
    }
}
