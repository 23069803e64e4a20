//! One CPU in an interval, and the verdict on it.

use lowlat_host::CpuId;
use lowlat_jitter::{
    Cause, CauseKind, CounterDelta, steal_ticks, timeslices,
    watch::{Interval, ReadCounters, SampledCpu},
};
use lowlat_plan::verify::Verification;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Verdict on a CPU in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is kept quiet, and a thread that belongs elsewhere ran there.
    Intruder,
    /// It is kept quiet, and its timer tick runs.
    Ticking,
    /// It is kept quiet, and other interrupts arrive.
    Interrupted,
    /// It is kept quiet; whether it is quiet is unknown, because its interrupts or its threads were not read.
    Unknown,
    /// It is kept quiet, and is.
    Quiet,
    /// It is not kept quiet, so there is no verdict.
    Shared,
}

impl State {
    /// All verdicts, the worst first.
    pub const WORST_FIRST: [Self; 6] =
        [Self::Intruder, Self::Ticking, Self::Interrupted, Self::Unknown, Self::Quiet, Self::Shared];

    pub fn word(self) -> &'static str {
        match self {
            Self::Intruder => "intruder",
            Self::Ticking => "ticking",
            Self::Interrupted => "interrupted",
            Self::Unknown => "unknown",
            Self::Quiet => "quiet",
            Self::Shared => "shared",
        }
    }
}

/// Counts of one CPU in an interval, with the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CpuRow {
    pub cpu: CpuId,
    pub state: State,
    /// Interrupts of devices and of the processor; `None` if they were not read.
    pub interrupts: Option<u64>,
    /// Softirqs; `None` if they were not read.
    pub softirqs: Option<u64>,
    /// Switches between threads; `None` if the kernel does not count them.
    pub switches: Option<u64>,
    /// Time that the hypervisor took, in ticks of the kernel's accounting; `None` if it was not read.
    pub steal_ticks: Option<u64>,
    /// Interrupts and softirqs by cause, the most frequent first.
    pub causes: Vec<CounterDelta>,
    /// Interruptions with their lengths, if the CPU is sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampled: Option<SampledCpu>,
}

/// Shortest time by which a CPU is judged. In a shorter interval, two interrupts would be a steady source.
const JUDGED_NS_MIN: u64 = 1_000_000_000;

/// Counts of one CPU's interrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Interrupts {
    all: u64,
    /// Those of the CPU's timer.
    ticks: u64,
}

impl Interrupts {
    fn of(counted: &[CounterDelta]) -> Self {
        Self { all: count(counted, is_interrupt), ticks: count(counted, is_tick) }
    }
}

/// The latest intervals with their lengths, as many as a verdict takes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Recent(VecDeque<(u64, BTreeMap<CpuId, Interrupts>)>);

impl Recent {
    /// Adds an interval, and removes those that no verdict needs any more.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let of_cpu = |(cpu, counted): (&CpuId, &Vec<CounterDelta>)| (*cpu, Interrupts::of(counted));
        self.0.push_back((interval.elapsed_ns, interval.counted.iter().map(of_cpu).collect()));
        while let Some((oldest_ns, _)) = self.0.front()
            && self.elapsed_ns() - oldest_ns >= JUDGED_NS_MIN
        {
            self.0.pop_front();
        }
    }

    /// Returns the intervals' total length.
    pub(crate) fn elapsed_ns(&self) -> u64 {
        self.0.iter().map(|(elapsed_ns, _)| elapsed_ns).sum()
    }

    /// All interrupts of a CPU in them.
    pub(crate) fn of(&self, cpu: CpuId) -> Interrupts {
        let of_cpu = self.0.iter().filter_map(|(_, interrupts)| interrupts.get(&cpu));
        of_cpu.fold(Interrupts::default(), |sum, more| Interrupts {
            all: sum.all + more.all,
            ticks: sum.ticks + more.ticks,
        })
    }
}

/// Part of a row that decides the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Judged {
    /// The CPU is kept quiet.
    pub(crate) is_quiet: bool,
    pub(crate) has_intruder: bool,
    /// Length of the recent intervals.
    pub(crate) recent_ns: u64,
    /// The CPU's interrupts in these intervals.
    pub(crate) recent: Interrupts,
    pub(crate) read: ReadCounters,
    /// The threads that ran were read.
    pub(crate) has_threads: bool,
}

impl CpuRow {
    /// A row of what the kernel counted on a CPU.
    pub(crate) fn of(
        cpu: CpuId,
        counted: &[CounterDelta],
        sampled: Option<SampledCpu>,
        judged: Judged,
    ) -> Self {
        let read = judged.read;
        Self {
            cpu,
            state: state(judged),
            interrupts: read.interrupts.then(|| count(counted, is_interrupt)),
            softirqs: read.softirqs.then(|| count(counted, |cause| cause.kind == CauseKind::Softirq)),
            switches: read.switches.then(|| count(counted, |cause| *cause == timeslices())),
            steal_ticks: read.steal.then(|| count(counted, |cause| *cause == steal_ticks())),
            causes: counted
                .iter()
                .filter(|delta| is_interrupt(&delta.cause) || delta.cause.kind == CauseKind::Softirq)
                .cloned()
                .collect(),
            sampled,
        }
    }
}

fn state(judged: Judged) -> State {
    // More than this is a running tick or a steady source: the rule of `tune verify`. At the start of a watch, the rest
    // of the first second counts as quiet.
    let judged_ns = judged.recent_ns.max(JUDGED_NS_MIN);
    let is_steady = |count| per_second(count, judged_ns) > Verification::ticks_per_s_max() as f64;
    match judged {
        Judged { is_quiet: false, .. } => State::Shared,
        Judged { has_intruder: true, .. } => State::Intruder,
        _ if is_steady(judged.recent.ticks) => State::Ticking,
        _ if is_steady(judged.recent.all) => State::Interrupted,
        _ if !judged.read.interrupts || !judged.has_threads => State::Unknown,
        _ => State::Quiet,
    }
}

fn count(counted: &[CounterDelta], is: fn(&Cause) -> bool) -> u64 {
    counted.iter().filter(|delta| is(&delta.cause)).map(|delta| delta.count).sum()
}

/// True if the cause is an interrupt that no other row of /proc/interrupts contains: TLB flushes are function calls,
/// and performance monitoring is an NMI.
fn is_interrupt(cause: &Cause) -> bool {
    match cause.kind {
        CauseKind::Irq | CauseKind::Vector => true,
        CauseKind::Nmi => cause.name.is_empty(),
        _ => false,
    }
}

/// True if the cause is the CPU's timer: a vector on x86, an interrupt with a handler on ARM.
fn is_tick(cause: &Cause) -> bool {
    match cause.kind {
        CauseKind::Vector => cause.is_local_timer(),
        CauseKind::Irq => cause.name == "arch_timer",
        _ => false,
    }
}

/// A rate; zero without an interval.
pub(crate) fn per_second(count: u64, elapsed_ns: u64) -> f64 {
    if elapsed_ns == 0 { 0.0 } else { count as f64 * 1e9 / elapsed_ns as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_jitter::{cause_of_irq, cause_of_row, cause_of_softirq};

    fn row(counted: &[(Cause, u64)], judged: Judged) -> CpuRow {
        let counted: Vec<CounterDelta> = counted
            .iter()
            .map(|(cause, count)| CounterDelta { cause: cause.clone(), count: *count })
            .collect();
        CpuRow::of(3, &counted, None, Judged { recent: Interrupts::of(&counted), ..judged })
    }

    fn judged(is_quiet: bool, has_intruder: bool) -> Judged {
        let recent = Interrupts::default();
        let read = ReadCounters { interrupts: true, softirqs: true, switches: true, steal: true };
        Judged { is_quiet, has_intruder, recent_ns: JUDGED_NS_MIN, recent, read, has_threads: true }
    }

    #[test]
    fn what_was_not_read_is_neither_zero_nor_quiet() {
        let blind = Judged { read: ReadCounters::default(), ..judged(true, false) };
        let seen = row(&[], blind);
        assert_eq!(seen.state, State::Unknown);
        assert_eq!(
            (seen.interrupts, seen.softirqs, seen.switches, seen.steal_ticks),
            (None, None, None, None)
        );
        let without_threads = Judged { has_threads: false, ..judged(true, false) };
        assert_eq!(row(&[], without_threads).state, State::Unknown);
        assert_eq!(row(&[], Judged { has_intruder: true, ..blind }).state, State::Intruder);
        assert_eq!(row(&[], Judged { is_quiet: false, ..blind }).state, State::Shared);
        assert_eq!(row(&[], judged(true, false)).interrupts, Some(0));
    }

    #[test]
    fn counters_are_counted_once() {
        let vector = |name: &str| cause_of_row(name, "").unwrap();
        let counted = [
            (vector("LOC"), 250),
            (vector("CAL"), 7),
            (vector("TLB"), 5),
            (vector("NMI"), 2),
            (vector("PMI"), 2),
            (cause_of_irq(47, &["nvme0q3".to_owned()]), 3),
            (cause_of_softirq("RCU"), 40),
            (timeslices(), 9),
            (steal_ticks(), 4),
        ];
        let row = row(&counted, judged(true, false));
        assert_eq!(
            (row.interrupts, row.softirqs, row.switches, row.steal_ticks),
            (Some(262), Some(40), Some(9), Some(4)),
            "TLB is in CAL, PMI in NMI"
        );
        assert!(row.causes.iter().all(|delta| delta.cause.name != "flush_tlb_func"));
    }

    #[test]
    fn the_worst_reason_decides() {
        let timer = cause_of_row("LOC", "").unwrap();
        let device = cause_of_irq(47, &["nvme0q3".to_owned()]);
        let state = |counted: &[(Cause, u64)], judged| row(counted, judged).state;
        assert_eq!(state(&[(timer.clone(), 250)], judged(true, true)), State::Intruder);
        assert_eq!(state(&[(timer.clone(), 11)], judged(true, false)), State::Ticking);
        assert_eq!(
            state(&[(device.clone(), 11), (timer.clone(), 1)], judged(true, false)),
            State::Interrupted
        );
        assert_eq!(state(&[(device, 9), (timer.clone(), 1)], judged(true, false)), State::Quiet);
        assert_eq!(state(&[(timer, 250)], judged(false, true)), State::Shared);
        let arm = cause_of_irq(27, &["arch_timer".to_owned()]);
        assert_eq!(state(&[(arm, 11)], judged(true, false)), State::Ticking);
    }
}
