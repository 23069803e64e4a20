//! Counters that are read twice.

use lowlat_host::{CpuId, CpuSet, Reading};
use lowlat_host_run::{
    Root,
    counter_table::{Row, Table, chip_and_actions},
    proc_stat::not_running_of_line,
};
use std::{collections::BTreeMap, time::Duration};

const INTERRUPTS: &str = "/proc/interrupts";
const SOFTIRQS: &str = "/proc/softirqs";
const STAT: &str = "/proc/stat";

/// A CPU that was idle for a smaller share of the time counts as busy.
const NOT_RUNNING_PERCENT: u128 = 80;

/// Per-CPU timers, on architectures where their interrupts have numbers.
const TIMERS: [&str; 3] = ["arch_timer", "riscv-timer", "timer-riscv"];

/// Timer interrupts and soft interrupts of some CPUs at one moment.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    interrupts: Reading<Table>,
    softirqs: Reading<Table>,
}

/// Returns the name of a row that counts local timer interrupts: "LOC" on x86, PowerPC and s390, elsewhere the
/// interrupt of the per-CPU timer.
fn timer_name(row: &Row) -> Option<String> {
    if row.name == "LOC" {
        return Some(row.name.clone());
    }
    let (_, actions) = chip_and_actions(&row.text);
    actions.into_iter().find(|action| TIMERS.contains(&action.as_str()))
}

impl Counts {
    pub(super) fn read(root: &Root, cpus: &CpuSet) -> Self {
        Self {
            interrupts: Table::read(root, INTERRUPTS, Some(cpus)),
            softirqs: Table::read(root, SOFTIRQS, Some(cpus)),
        }
    }

    /// The row that counts timer interrupts; empty if there is none.
    pub(super) fn source(&self) -> String {
        let rows = self.interrupts.known().map_or(&[][..], |table| &table.rows);
        rows.iter().find_map(timer_name).unwrap_or_default()
    }

    /// Timer interrupts of a CPU until the counters were read again.
    pub(super) fn ticks_until(&self, after: &Self, cpu: CpuId) -> Reading<u64> {
        between(&self.interrupts, &after.interrupts, cpu, |row| timer_name(row).is_some())
    }

    /// Runs of RCU's soft interrupt on a CPU until the counters were read again.
    pub(super) fn rcu_until(&self, after: &Self, cpu: CpuId) -> Reading<u64> {
        between(&self.softirqs, &after.softirqs, cpu, |row| row.name == "RCU")
    }
}

/// Absent for a CPU without a column at either time, or if there is no such row.
fn between(
    before: &Reading<Table>,
    after: &Reading<Table>,
    cpu: CpuId,
    is_meant: impl Fn(&Row) -> bool,
) -> Reading<u64> {
    let of = |table: &Table| -> Reading<u64> {
        let rows: Vec<&Row> = table.rows.iter().filter(|row| is_meant(row)).collect();
        if rows.is_empty() || !table.cpus.contains(cpu) {
            return Reading::Absent;
        }
        let counts = rows.iter().filter_map(|row| row.count_by_cpu.get(&cpu));
        Reading::Known(counts.fold(0_u64, |sum, count| sum.saturating_add(*count)))
    };
    before
        .as_ref()
        .and_then(of)
        .and_then(|before| after.as_ref().and_then(of).map(|after| after.saturating_sub(before)))
}

/// Idle time of each CPU. /proc/schedstat includes a task only once it was switched out: a task that spins for
/// hours on an isolated CPU does not show there, while idle time does not increase.
#[derive(Debug, Clone)]
pub(super) struct Idleness {
    not_running_ticks: Reading<BTreeMap<CpuId, u64>>,
    ticks_per_s: u64,
}

impl Idleness {
    pub(super) fn read(root: &Root) -> Self {
        let expected = "lines such as \"cpu0 1 2 3 4 5 6 7 8\"";
        let not_running_ticks = root.read(STAT).parse(STAT, expected, |text| {
            let cpus: BTreeMap<CpuId, u64> = text.lines().filter_map(not_running_of_line).collect();
            (!cpus.is_empty()).then_some(cpus)
        });
        Self { not_running_ticks, ticks_per_s: rustix::param::clock_ticks_per_second().max(1) }
    }

    /// Those of `cpus` that were busy until this was read again, or why that is unknown.
    pub(super) fn busy_until(&self, after: &Self, passed: Duration, cpus: &CpuSet) -> Result<CpuSet, String> {
        let known = |reading: &Reading<BTreeMap<CpuId, u64>>| {
            reading
                .known()
                .cloned()
                .ok_or_else(|| format!("{STAT}: {}", reading.missing_in_words().unwrap_or_default()))
        };
        let (before, after) = (known(&self.not_running_ticks)?, known(&after.not_running_ticks)?);
        let passed_ticks = passed.as_millis() * u128::from(self.ticks_per_s) / 1_000;
        let is_busy = |cpu: &CpuId| {
            let (Some(before), Some(after)) = (before.get(cpu), after.get(cpu)) else { return false };
            u128::from(after.saturating_sub(*before)) * 100 < passed_ticks * NOT_RUNNING_PERCENT
        };
        Ok(cpus.iter().filter(is_busy).collect())
    }
}
