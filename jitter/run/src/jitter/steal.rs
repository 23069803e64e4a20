//! Time taken by the hypervisor and time in which something ran, per CPU, from /proc/stat.

use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_host_run::{
    Root,
    proc_stat::{busy_of_line, steal_of_line},
};
use std::collections::BTreeMap;

const STAT: &str = "/proc/stat";

/// Steal time, busy time and all time per CPU, in ticks of the kernel's accounting (10 ms on nearly all kernels).
#[derive(Debug, Clone)]
pub struct Steal {
    cpus: Reading<BTreeMap<CpuId, [u64; 3]>>,
    ticks_per_s: u64,
}

impl Steal {
    pub fn read(root: &Root) -> Self {
        let cpus = root.read(STAT).parse(STAT, "lines such as \"cpu0 1 2 3 4 5 6 7 8\"", parse);
        Self { cpus, ticks_per_s: rustix::param::clock_ticks_per_second().max(1) }
    }

    /// True if /proc/stat was read and parsed.
    pub fn is_known(&self) -> bool {
        self.cpus.is_known()
    }

    /// Time taken from a CPU between two readings, in clock ticks. Absent if the CPU was offline at either.
    pub fn ticks_until(&self, after: &Self, cpu: CpuId) -> Reading<u64> {
        // The kernel's sums can decrease by rounding; nothing was taken then.
        self.of(cpu).and_then(|before| after.of(cpu).map(|after| after.saturating_sub(before)))
    }

    /// Time taken from a CPU between two readings, in nanoseconds.
    pub fn ns_until(&self, after: &Self, cpu: CpuId) -> Reading<u64> {
        self.ticks_until(after, cpu).map(|ticks| {
            let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_s);
            u64::try_from(ns).unwrap_or(u64::MAX)
        })
    }

    fn of(&self, cpu: CpuId) -> Reading<u64> {
        self.cpus.as_ref().and_then(|cpus| Reading::from_option(cpus.get(&cpu).map(|[steal, ..]| *steal)))
    }

    /// The share of the time between two readings in which the CPUs beside these ran something; absent without others.
    pub fn busy_share_beside(&self, after: &Self, cpus: &CpuSet) -> Reading<f64> {
        self.cpus.as_ref().and_then(|before| {
            after.cpus.as_ref().and_then(|after| {
                let others = before.iter().filter(|(cpu, _)| !cpus.contains(**cpu));
                let pairs = others.filter_map(|(cpu, from)| Some((from, after.get(cpu)?)));
                let (busy, all) =
                    pairs.fold((0, 0), |(busy, all), ([_, busy_from, from], [_, busy_to, to])| {
                        (busy + busy_to.saturating_sub(*busy_from), all + to.saturating_sub(*from))
                    });
                Reading::from_option((all > 0).then(|| busy as f64 / all as f64))
            })
        })
    }
}

/// `None` if a line of a CPU is malformed, or there is none.
fn parse(text: &str) -> Option<BTreeMap<CpuId, [u64; 3]>> {
    let mut cpus = BTreeMap::new();
    for line in text.lines() {
        match line.split_ascii_whitespace().next() {
            Some("cpu") => {}
            Some(name) if name.starts_with("cpu") => {
                let ((cpu, steal), (_, busy, all)) = (steal_of_line(line)?, busy_of_line(line)?);
                cpus.insert(cpu, [steal, busy, all]);
            }
            _ => break,
        }
    }
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steal(text: &str) -> Steal {
        let root = Root::in_memory("test", [(STAT.to_owned(), text.as_bytes().to_vec())]);
        Steal { ticks_per_s: 100, ..Steal::read(&root) }
    }

    #[test]
    fn the_difference_is_per_cpu() {
        let before =
            steal("cpu  9 9 9 9 9 9 9 12 0 0\ncpu0 1 0 1 1 1 0 1 5 0 0\ncpu3 1 0 1 1 1 0 1 7 0 0\nintr 9\n");
        let after =
            steal("cpu  9 9 9 9 9 9 9 16 0 0\ncpu0 1 0 1 1 1 0 1 8 0 0\ncpu3 1 0 1 1 1 0 1 6 0 0\nintr 9\n");
        assert_eq!(before.ns_until(&after, 0), Reading::Known(30_000_000));
        assert_eq!(before.ns_until(&after, 3), Reading::Known(0), "never below zero");
        assert_eq!(before.ns_until(&after, 1), Reading::Absent);
        let before = steal("cpu0 10 0 10 80 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\n");
        let after = steal("cpu0 30 0 10 160 0 0 0 0 0 0\ncpu1 90 0 0 110 0 0 0 0 0 0\n");
        assert_eq!(before.busy_share_beside(&after, &CpuSet::of(1)), Reading::Known(0.2));
        assert_eq!(before.busy_share_beside(&after, &CpuSet::first(2)), Reading::Absent);
    }

    #[test]
    fn malformed_stat_is_unparsable() {
        for junk in ["", "cpu0 1 2 3", "cpu0 1 2 3 4 5 6 7 x", "cpux 1 2 3 4 5 6 7 8", "intr 1"] {
            assert!(matches!(steal(junk).ns_until(&steal(junk), 0), Reading::Unparsable(_)), "{junk:?}");
        }
        let gone = Steal::read(&Root::in_memory("test", []));
        assert_eq!(gone.ns_until(&gone, 0), Reading::Absent);
    }

    #[test]
    fn this_host_is_read() {
        let root = Root::live();
        let (before, after) = (Steal::read(&root), Steal::read(&root));
        assert!(before.ns_until(&after, 0).is_known());
    }
}
