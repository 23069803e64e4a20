//! Kernel counters of each CPU, before and after a run: what ran there, without a trace.
//!
//! Read on the caller's CPU, before the samplers start and after they end: the tables of a large host are
//! megabytes, and freeing that memory interrupts every CPU with a thread of this process.

mod smi;

pub use smi::SmiCounts;

use super::steal::Steal;
use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_host_run::{
    Root,
    counter_table::{Row, TOTALS, Table, chip_and_actions},
};
use lowlat_jitter::{
    Cause, CauseTotal, CounterDelta, Movement, Warning, cause_of_irq, cause_of_row, cause_of_softirq,
    contradictions, steal_ticks, timeslices, watch::ReadCounters,
};
use std::collections::{BTreeMap, HashMap};

const INTERRUPTS: &str = "/proc/interrupts";
const SOFTIRQS: &str = "/proc/softirqs";
const SCHEDSTAT: &str = "/proc/schedstat";

/// Position of the number of timeslices after a CPU's name (Documentation/scheduler/sched-stats.rst).
const TIMESLICES_FIELD: usize = 8;

/// Counters of some CPUs at one moment.
#[derive(Debug, Clone)]
pub struct CpuCounters {
    interrupts: Reading<Table>,
    softirqs: Reading<Table>,
    timeslices: Reading<BTreeMap<CpuId, u64>>,
    steal: Steal,
}

/// Increase of the counters of some CPUs during a run.
#[derive(Debug, Clone, Default)]
pub struct CountersOfRun {
    /// Counters that increased on each CPU, largest increase first.
    pub by_cpu: BTreeMap<CpuId, Vec<CounterDelta>>,
    /// The counters that were read both times.
    pub read: ReadCounters,
    /// Warnings about counters that are unknown.
    pub doubts: Vec<Warning>,
}

impl CpuCounters {
    /// Reads the counters of these CPUs.
    pub fn read(root: &Root, cpus: &CpuSet) -> Self {
        Self {
            interrupts: Table::read(root, INTERRUPTS, Some(cpus)),
            softirqs: Table::read(root, SOFTIRQS, Some(cpus)),
            timeslices: root.read(SCHEDSTAT).parse(
                SCHEDSTAT,
                "lines such as \"cpu0 0 0 1 2 3 4 5 6 7\"",
                |text| timeslices_of(text, cpus),
            ),
            steal: Steal::read(root),
        }
    }

    /// Increase until they were read again.
    pub fn until(&self, after: &Self, cpus: &CpuSet) -> CountersOfRun {
        let mut run = CountersOfRun::default();
        run.add_tables(&self.interrupts, &after.interrupts, INTERRUPTS, cpus, |name, text| {
            match name.parse() {
                Ok(number) => Some(cause_of_irq(number, &chip_and_actions(text).1)),
                Err(_) if TOTALS.contains(&name) => None,
                Err(_) => cause_of_row(name, text),
            }
        });
        run.add_tables(&self.softirqs, &after.softirqs, SOFTIRQS, cpus, |name, _| {
            Some(cause_of_softirq(name))
        });
        run.read = ReadCounters {
            interrupts: self.interrupts.is_known() && after.interrupts.is_known(),
            softirqs: self.softirqs.is_known() && after.softirqs.is_known(),
            switches: self.timeslices.is_known() && after.timeslices.is_known(),
            steal: self.steal.is_known() && after.steal.is_known(),
        };
        for cpu in cpus.iter() {
            // Kernels without CONFIG_SCHEDSTATS lack this file, which needs no warning.
            if let (Some(before), Some(after)) = (self.timeslices_of(cpu), after.timeslices_of(cpu)) {
                run.add(cpu, timeslices(), after.saturating_sub(before));
            }
            if let Reading::Known(ticks) = self.steal.ticks_until(&after.steal, cpu) {
                run.add(cpu, steal_ticks(), ticks);
            }
        }
        for deltas in run.by_cpu.values_mut() {
            deltas.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cause.cmp(&b.cause)));
        }
        run
    }

    fn timeslices_of(&self, cpu: CpuId) -> Option<u64> {
        self.timeslices.known()?.get(&cpu).copied()
    }
}

/// `None` if a line of a requested CPU is malformed.
fn timeslices_of(text: &str, cpus: &CpuSet) -> Option<BTreeMap<CpuId, u64>> {
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let cpu =
            words.next().and_then(|name| name.strip_prefix("cpu")).and_then(|number| number.parse().ok());
        if let Some(cpu) = cpu.filter(|cpu| cpus.contains(*cpu)) {
            counts.insert(cpu, words.nth(TIMESLICES_FIELD)?.parse().ok()?);
        }
    }
    Some(counts)
}

impl CountersOfRun {
    /// Counters that increased on a CPU, largest increase first. Empty if none did, or none are known.
    pub fn of(&self, cpu: CpuId) -> Vec<CounterDelta> {
        self.by_cpu.get(&cpu).cloned().unwrap_or_default()
    }

    /// Causes of which the trace contains more on a CPU than the kernel counted.
    pub fn contradictions(&self, cpu: CpuId, traced: &[CauseTotal]) -> Vec<Warning> {
        let counted = self.by_cpu.get(&cpu).map_or(&[][..], Vec::as_slice);
        contradictions(cpu, traced, counted, self.read)
    }

    fn add(&mut self, cpu: CpuId, cause: Cause, count: u64) {
        if count > 0 {
            self.by_cpu.entry(cpu).or_default().push(CounterDelta { cause, count });
        }
    }

    fn add_tables(
        &mut self,
        before: &Reading<Table>,
        after: &Reading<Table>,
        path: &'static str,
        cpus: &CpuSet,
        cause_of: impl Fn(&str, &str) -> Option<Cause>,
    ) {
        let (before, after) = match (before, after) {
            (Reading::Known(before), Reading::Known(after)) => (before, after),
            (Reading::Known(_), missing) | (missing, _) => {
                let why = missing.missing_in_words().unwrap_or_default();
                self.doubts.push(Warning::CountsUnknown { path, why });
                return;
            }
        };
        let there = cpus.intersection(&before.cpus).intersection(&after.cpus);
        let gone = cpus.difference(&there);
        if !gone.is_empty() {
            self.doubts.push(Warning::CountsOffline { cpus: gone, path });
        }
        self.add_rows(before, after, &there, cause_of);
    }

    /// A row is identified by its name and text: an interrupt number that was reassigned to another device is
    /// another row, and started at zero.
    fn add_rows<'a>(
        &mut self,
        before: &'a Table,
        after: &'a Table,
        cpus: &CpuSet,
        cause_of: impl Fn(&str, &str) -> Option<Cause>,
    ) {
        let key = |row: &'a Row| (row.name.as_str(), row.text.as_str());
        let rows_before: HashMap<_, _> =
            before.rows.iter().map(|row| (key(row), &row.count_by_cpu)).collect();
        let mut anew: BTreeMap<String, CpuSet> = BTreeMap::new();
        for row in &after.rows {
            let Some(cause) = cause_of(&row.name, &row.text) else { continue };
            let was = rows_before.get(&key(row));
            for cpu in cpus.iter() {
                let count_before = was.and_then(|counts| counts.get(&cpu)).copied().unwrap_or(0);
                let count_after = row.count_by_cpu.get(&cpu).copied().unwrap_or(0);
                let movement = Movement::of_counter(count_before, count_after);
                if matches!(movement, Movement::AtLeast(_)) {
                    anew.entry(cause.label()).or_default().insert(cpu);
                }
                self.add(cpu, cause.clone(), movement.count());
            }
        }
        if !anew.is_empty() {
            self.doubts.push(Warning::CountersRestarted { counters: anew.into_iter().collect() });
        }
    }
}

#[cfg(test)]
mod tests;
