//! /proc/stat: the kernel's CPU time counters.

use lowlat_host::{CPU_ID_MAX, CpuId};

/// Position of `steal` after the CPU's name (Documentation/filesystems/proc.rst, since Linux 2.6.11).
const STEAL_FIELD: usize = 7;

/// The CPU of a "cpuN …" line and the time that the hypervisor took from it since boot, in clock ticks.
/// `None` for the line of all CPUs together and for all other lines.
pub fn steal_of_line(line: &str) -> Option<(CpuId, u64)> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok().filter(|cpu| *cpu <= CPU_ID_MAX)?;
    Some((cpu, words.nth(STEAL_FIELD)?.parse().ok()?))
}

/// The CPU of a "cpuN …" line, the time since boot in which it ran something of this host, and all its time, in clock
/// ticks.
pub fn busy_of_line(line: &str) -> Option<(CpuId, u64, u64)> {
    let (cpu, not_running) = not_running_of_line(line)?;
    // Time of guests, which follows, is part of the first two.
    let all = line.split_ascii_whitespace().skip(1).take(STEAL_FIELD + 1);
    let all: u64 = all.map_while(|field| field.parse::<u64>().ok()).fold(0, u64::saturating_add);
    Some((cpu, all.saturating_sub(not_running), all))
}

/// Position of `idle` and `iowait` after the CPU's name.
const IDLE_FIELD: usize = 3;

/// The CPU of a "cpuN …" line and the time since boot in which it ran nothing of this host, in clock ticks:
/// idle, waiting for a disk, or taken by the hypervisor. `None` for all other lines.
pub fn not_running_of_line(line: &str) -> Option<(CpuId, u64)> {
    let (cpu, steal) = steal_of_line(line)?;
    let mut fields = line.split_ascii_whitespace().skip(1 + IDLE_FIELD);
    let (idle, iowait): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((cpu, idle.saturating_add(iowait).saturating_add(steal)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_iowait_and_steal_are_time_in_which_nothing_ran() {
        assert_eq!(not_running_of_line("cpu12 1 2 3 4 5 6 7 8 9 10"), Some((12, 17)));
        assert_eq!(not_running_of_line("cpu  1 2 3 4 5 6 7 8"), None);
        assert_eq!(not_running_of_line("cpu0 1 2 3 x 5 6 7 8"), None);
        assert_eq!(busy_of_line("cpu12 1 2 3 4 5 6 7 8 9 10"), Some((12, 19, 36)));
    }

    #[test]
    fn the_eighth_number_is_steal() {
        assert_eq!(steal_of_line("cpu12 1 2 3 4 5 6 7 8 9 10"), Some((12, 8)));
        for line in [
            "cpu  1 2 3 4 5 6 7 8",
            "cpu0 1 2 3",
            "cpu0 1 2 3 4 5 6 7 x",
            "cpu70000 1 2 3 4 5 6 7 8",
            "intr 1",
            "",
        ] {
            assert_eq!(steal_of_line(line), None, "{line}");
        }
    }
}
