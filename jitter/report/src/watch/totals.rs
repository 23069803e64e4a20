//! Sums since the start of a watch, for metrics.

use crate::watch::{
    cpu_row::CpuRow,
    watcher::{Step, intruders},
};
use lowlat_host::CpuId;
use lowlat_jitter::{
    Cause, CauseKind,
    watch::{Place, RanThread},
};
use std::collections::BTreeMap;

/// Series of one metric at most. Further causes and threads are summed under [`OTHER`].
const SERIES_MAX: usize = 10_000;
const NS_PER_S: u64 = 1_000_000_000;
/// Name of the sum of everything without a separate series.
const OTHER: &str = "other";

/// A cause as a label of a metric: kind and name. Numbers of threads are left out: each would make a series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CauseLabel {
    /// "irq", "vector", "softirq", "thread".
    pub kind: &'static str,
    /// "nvme0q3", "local timer", "RCU".
    pub name: String,
}

impl CauseLabel {
    fn of(cause: &Cause) -> Self {
        let name = match (cause.kind, cause.number) {
            (CauseKind::Irq, Some(number)) => format!("{number} {}", cause.name).trim_end().to_owned(),
            (CauseKind::Thread, _) => family(&cause.name).to_owned(),
            _ => cause.name.clone(),
        };
        Self { kind: cause.kind.word(), name }
    }

    fn other() -> Self {
        Self { kind: OTHER, name: OTHER.to_owned() }
    }
}

/// The name of a thread without the parts that change while the host runs: a kernel worker's pool, number and work, as
/// in `kworker/u8:2-events_unbound`.
fn family(comm: &str) -> &str {
    if comm.starts_with("kworker/") { "kworker" } else { comm }
}

/// Interruptions with one main cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InterruptionTotal {
    pub count: u64,
    pub ns: u64,
}

/// Sums by CPU since the start of a watch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    pub elapsed_ns: u64,
    /// CPU time that lowlat used.
    pub own_cpu_ns: u64,
    /// Interrupts and softirqs by cause.
    pub events: BTreeMap<(CpuId, CauseLabel), u64>,
    pub switches: BTreeMap<CpuId, u64>,
    /// Time that the hypervisor took.
    pub steal_ns: BTreeMap<CpuId, u64>,
    /// Time that intruders ran for on quiet CPUs, by name.
    pub intruder_ns: BTreeMap<(CpuId, String), u64>,
    /// Interruptions of sampled CPUs by main cause.
    pub interruptions: BTreeMap<(CpuId, CauseLabel), InterruptionTotal>,
    /// The longest interruption of each sampled CPU.
    pub ns_max: BTreeMap<CpuId, u64>,
    /// Interruptions that were lost before they were read.
    pub lost: BTreeMap<CpuId, u64>,
}

impl Totals {
    pub(crate) fn add(&mut self, step: &Step, rows: &[CpuRow], threads: &[(Place, RanThread)]) {
        self.elapsed_ns = self.elapsed_ns.saturating_add(step.interval.elapsed_ns);
        self.own_cpu_ns = self.own_cpu_ns.saturating_add(step.interval.own_cpu_ns);
        let tick_ns = NS_PER_S / step.interval.ticks_per_s.max(1);
        for row in rows {
            if let Some(switches) = row.switches {
                *self.switches.entry(row.cpu).or_default() += switches;
            }
            if let Some(ticks) = row.steal_ticks {
                let steal = self.steal_ns.entry(row.cpu).or_default();
                *steal = steal.saturating_add(ticks.saturating_mul(tick_ns));
            }
            for delta in &row.causes {
                let label = CauseLabel::of(&delta.cause);
                *series(&mut self.events, (row.cpu, label), (row.cpu, CauseLabel::other())) += delta.count;
            }
            if let Some(sampled) = &row.sampled {
                for cause in &sampled.causes {
                    let key = (row.cpu, CauseLabel::of(&cause.cause));
                    let sum = series(&mut self.interruptions, key, (row.cpu, CauseLabel::other()));
                    sum.count += cause.count;
                    sum.ns = sum.ns.saturating_add(cause.ns_total);
                }
                let max = self.ns_max.entry(row.cpu).or_default();
                *max = sampled.ns_max.max(*max);
                *self.lost.entry(row.cpu).or_default() += sampled.lost_count;
            }
        }
        for thread in intruders(threads) {
            let ran = thread.ran_ns.unwrap_or(0);
            let (key, other) =
                ((thread.cpu, family(&thread.comm).to_owned()), (thread.cpu, OTHER.to_owned()));
            *series(&mut self.intruder_ns, key, other) += ran;
        }
    }
}

/// The sum of a key, or of `other` if there are too many keys.
fn series<K: Ord, V: Default>(sums: &mut BTreeMap<K, V>, key: K, other: K) -> &mut V {
    let is_full = sums.len() >= SERIES_MAX && !sums.contains_key(&key);
    sums.entry(if is_full { other } else { key }).or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_bounded() {
        let mut sums: BTreeMap<u64, u64> = (1..=SERIES_MAX as u64).map(|key| (key, 1)).collect();
        *series(&mut sums, 5, 0) += 1;
        *series(&mut sums, 1 << 40, 0) += 7;
        *series(&mut sums, 1 << 41, 0) += 1;
        assert_eq!((sums.len(), sums[&5], sums[&0]), (SERIES_MAX + 1, 2, 8));
    }

    #[test]
    fn a_thread_is_labelled_without_its_number() {
        let thread = Cause { name: "cron".into(), number: Some(812), ..Cause::of(CauseKind::Thread) };
        assert_eq!(CauseLabel::of(&thread), CauseLabel { kind: "thread", name: "cron".into() });
        for name in ["kworker/u8:2-events_unbound", "kworker/3:1H-kblockd", "kworker/R-mm_percpu_wq"] {
            let worker = Cause { name: name.into(), ..Cause::of(CauseKind::Thread) };
            assert_eq!(CauseLabel::of(&worker).name, "kworker");
        }
        let irq = Cause { name: "nvme0q3".into(), number: Some(47), ..Cause::of(CauseKind::Irq) };
        assert_eq!(CauseLabel::of(&irq).name, "47 nvme0q3");
    }
}
