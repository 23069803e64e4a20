//! What processes use, as the kernel counts it.

use lowlat_model::pipeline::ProcessUse;
use rustix::param::clock_ticks_per_second;
use std::{collections::BTreeMap, fs};

/// Counters of one process since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Use {
    cpu_ticks: u64,
    minor_faults: u64,
    major_faults: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Use {
    /// Reads them; none when the process has gone, or /proc does not tell.
    pub(super) fn of(pid: u32) -> Option<Self> {
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

    fn since(self, before: Self) -> Self {
        Self {
            cpu_ticks: self.cpu_ticks.saturating_sub(before.cpu_ticks),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            voluntary: self.voluntary.saturating_sub(before.voluntary),
            involuntary: self.involuntary.saturating_sub(before.involuntary),
        }
    }
}

/// All processes at one moment: role and counters by process id.
pub(super) type Uses = BTreeMap<u32, (String, Use)>;

/// Reads all of them. Input: name, role and process id of each.
pub(super) fn read(processes: &[(String, String, u32)]) -> Uses {
    let uses = processes.iter().filter_map(|(_, role, pid)| Some((*pid, (role.clone(), Use::of(*pid)?))));
    uses.collect()
}

/// What was used between two moments, a row per role. A process that was started in between counts from its start.
pub(super) fn between(before: &Uses, after: &Uses) -> Vec<ProcessUse> {
    let mut rows: BTreeMap<&str, ProcessUse> = BTreeMap::new();
    let ticks_per_s = clock_ticks_per_second();
    for (pid, (role, used)) in after {
        let used = used.since(before.get(pid).map_or_else(Use::default, |(_, before)| *before));
        let row = rows.entry(role).or_insert_with(|| ProcessUse { role: role.clone(), ..ProcessUse::default() });
        row.processes += 1;
        row.cpu_s += used.cpu_ticks as f64 / ticks_per_s as f64;
        row.voluntary_switches += used.voluntary;
        row.involuntary_switches += used.involuntary;
        row.minor_faults += used.minor_faults;
        row.major_faults += used.major_faults;
    }
    rows.into_values().collect()
}

/// Pages that the host moved to and from swap since its start (pswpin and pswpout of /proc/vmstat); none when the kernel
/// does not tell.
pub(super) fn swapped_pages() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    let count = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    Some(count("pswpin ")? + count("pswpout ")?)
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
        let uses = |used| BTreeMap::from([(9, ("md".to_owned(), used))]);
        let rows = between(&uses(before), &uses(after));
        let row = rows.first().unwrap();
        assert_eq!((row.processes, row.minor_faults, row.major_faults, row.voluntary_switches), (1, 4, 0, 2));
        assert!((row.cpu_s * clock_ticks_per_second() as f64 - 200.0).abs() < 1e-6);
        assert_eq!(Use::parse("9 (a) S 1", ""), None);
        assert!(Use::of(std::process::id()).is_some());
    }
}
