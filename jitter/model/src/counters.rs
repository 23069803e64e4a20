//! Causes for the kernel's counters, and the increase of a counter between two readings.

use super::{Cause, CauseKind, CauseTotal, CounterDelta, Warning, cause::LOCAL_TIMER, watch::ReadCounters};
use lowlat_host::CpuId;

/// Counters of /proc/interrupts and /proc/softirqs are 32 bits wide (`kstat_irqs`, `irq_cpustat_t`).
const COUNTER_SPAN: u64 = 1 << 32;

/// The increase of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Movement {
    By(u64),
    /// It was reset in between and has this value since, so it increased by at least that much.
    AtLeast(u64),
}

impl Movement {
    /// From one reading to the next. A decrease is a wrap of a 32-bit counter if that means less than half of
    /// its range. Otherwise the counter was recreated, like those of an interrupt that a driver frees and
    /// requests again.
    pub fn of_counter(before: u64, after: u64) -> Self {
        if let Some(by) = after.checked_sub(before) {
            return Self::By(by);
        }
        match after.saturating_add(COUNTER_SPAN).checked_sub(before) {
            Some(by) if before < COUNTER_SPAN && by < COUNTER_SPAN / 2 => Self::By(by),
            _ => Self::AtLeast(after),
        }
    }

    /// Returns the increase, or its lower bound.
    pub fn count(self) -> u64 {
        match self {
            Self::By(count) | Self::AtLeast(count) => count,
        }
    }
}

/// Rows of x86 by the name before the colon (arch/x86/kernel/irq.c), with the trace's names for them.
///
/// Some rows are included in another: PMI in NMI, TLB in CAL.
const X86_ROWS: [(&str, CauseKind, &str); 19] = [
    ("NMI", CauseKind::Nmi, ""),
    ("LOC", CauseKind::Vector, LOCAL_TIMER),
    ("SPU", CauseKind::Vector, "spurious APIC"),
    ("PMI", CauseKind::Nmi, "performance monitoring"),
    ("IWI", CauseKind::Vector, "irq work"),
    ("PLT", CauseKind::Vector, "platform IPI"),
    ("RES", CauseKind::Vector, "reschedule"),
    ("CAL", CauseKind::Vector, "call function"),
    ("TLB", CauseKind::CallFunction, "flush_tlb_func"),
    ("TRM", CauseKind::Vector, "thermal"),
    ("THR", CauseKind::Vector, "threshold"),
    ("DFR", CauseKind::Vector, "deferred error"),
    ("MCE", CauseKind::Vector, "machine check"),
    // Corrected errors are polled by a timer.
    ("MCP", CauseKind::Timer, "mce_timer_fn"),
    ("HYP", CauseKind::Vector, "hypervisor callback"),
    ("HVS", CauseKind::Vector, "Hyper-V timer"),
    ("PIN", CauseKind::Vector, "posted interrupt"),
    ("NPI", CauseKind::Vector, "nested posted interrupt"),
    ("PIW", CauseKind::Vector, "posted interrupt wake-up"),
];

/// Rows whose name is a number (IPI0, …) by their text after the counts (arch/arm64/kernel/smp.c).
const DESCRIBED_ROWS: [(&str, &str); 4] = [
    ("Rescheduling interrupts", "reschedule"),
    ("Function call interrupts", "call function"),
    ("IRQ work interrupts", "irq work"),
    ("Timer broadcast interrupts", "timer broadcast"),
];

/// The cause that a row of the processor's own interrupts counts; `None` for a row that counts no
/// interruption (RTR: repeated reads of a register).
pub fn cause_of_row(name: &str, description: &str) -> Option<Cause> {
    if name == "RTR" {
        return None;
    }
    if let Some((_, kind, word)) = X86_ROWS.iter().find(|(row, ..)| *row == name) {
        return Some(Cause::named(*kind, *word));
    }
    if let Some((_, word)) = DESCRIBED_ROWS.iter().find(|(text, _)| *text == description) {
        return Some(Cause::named(CauseKind::Vector, *word));
    }
    let described = description.trim_end_matches(" interrupts");
    Some(Cause::named(CauseKind::Vector, if described.is_empty() { name } else { described }))
}

/// A device interrupt with the names of its handlers.
pub fn cause_of_irq(number: u32, actions: &[String]) -> Cause {
    Cause { number: Some(i64::from(number)), ..Cause::named(CauseKind::Irq, actions.join("+")) }
}

/// A softirq by the kernel's name: "RCU".
pub fn cause_of_softirq(name: &str) -> Cause {
    Cause::named(CauseKind::Softirq, name)
}

/// Timeslices of /proc/schedstat: how often any thread got the CPU, including the sampler.
pub fn timeslices() -> Cause {
    Cause::named(CauseKind::Thread, "timeslices of any thread")
}

/// Steal time of /proc/stat, counted in clock ticks of the kernel's accounting.
pub fn steal_ticks() -> Cause {
    Cause::named(CauseKind::FirmwareOrHypervisor, "steal time in clock ticks")
}

/// Reports where the trace of a CPU has more interruptions by a device interrupt, vector, softirq or NMI than
/// the kernel counted: one of the two is then wrong.
///
/// The counters must have been read before the trace started and after it ended, and the named tables must
/// have been readable. The kernel may count more: interruptions below the threshold or outside the run.
pub fn contradictions(
    cpu: CpuId,
    traced: &[CauseTotal],
    counted: &[CounterDelta],
    tables: ReadCounters,
) -> Vec<Warning> {
    let is_same = |one: &Cause, other: &Cause| match one.kind {
        CauseKind::Irq => one.kind == other.kind && one.number == other.number,
        // All of them are counted in one row, which includes the others named NMI.
        CauseKind::Nmi => one.kind == other.kind && other.name.is_empty(),
        CauseKind::Vector => one.kind == other.kind && row_of_vector(&one.name) == other.name,
        _ => one.kind == other.kind && one.name == other.name,
    };
    traced
        .iter()
        .filter(|total| tables.counts(&total.cause))
        .filter_map(|total| {
            let same = counted.iter().filter(|delta| is_same(&total.cause, &delta.cause));
            let counted_count: u64 = same.fold(0, |sum, delta| sum.saturating_add(delta.count));
            let (cause, traced_count) = (total.cause.label(), total.count);
            (traced_count > counted_count).then_some(Warning::MoreThanCounted {
                cpu,
                cause,
                traced_count,
                counted_count,
            })
        })
        .collect()
}

/// The kernel counts both kinds of function calls in one row, and so the timer's interrupts.
fn row_of_vector(name: &str) -> &str {
    ["call function", LOCAL_TIMER].into_iter().find(|row| name.starts_with(row)).unwrap_or(name)
}

impl ReadCounters {
    /// True if a table of interrupts or softirqs that was read has a row for this cause.
    fn counts(self, cause: &Cause) -> bool {
        match cause.kind {
            // aarch64 handles interrupts between CPUs as device interrupts with this name, and counts them in
            // separate rows (IPI0, ...; arch/arm64/kernel/smp.c).
            CauseKind::Irq => self.interrupts && cause.name != "IPI",
            CauseKind::Nmi => self.interrupts,
            // Vectors without a known row are not compared.
            CauseKind::Vector => {
                let row = row_of_vector(&cause.name);
                self.interrupts && X86_ROWS.iter().any(|(_, kind, name)| *kind == cause.kind && *name == row)
            }
            CauseKind::Softirq => self.softirqs,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_that_wrap_or_start_again_are_distinguished() {
        use Movement::{AtLeast, By};
        assert_eq!(Movement::of_counter(5, 9), By(4));
        assert_eq!(Movement::of_counter(7, 7), By(0));
        assert_eq!(Movement::of_counter((1 << 32) - 10, 15), By(25), "wrapped");
        assert_eq!(Movement::of_counter(5_000_000, 12), AtLeast(12), "recreated");
        assert_eq!(Movement::of_counter(u64::MAX, 3), AtLeast(3), "a wide counter does not wrap");
        assert_eq!(Movement::of_counter(u64::MAX, u64::MAX - 1), AtLeast(u64::MAX - 1));
    }

    #[test]
    fn rows_are_named_as_the_trace_names_them() {
        let label =
            |name: &str, text: &str| cause_of_row(name, text).map(|cause| cause.label()).unwrap_or_default();
        assert_eq!(label("LOC", "Local timer interrupts"), "local timer");
        assert_eq!(label("RES", "Rescheduling interrupts"), "reschedule");
        assert_eq!(label("NMI", "Non-maskable interrupts"), "NMI");
        assert_eq!(label("TLB", "TLB shootdowns"), "call function flush_tlb_func");
        assert_eq!(label("MCP", "Machine check polls"), "timer mce_timer_fn");
        assert_eq!(label("IPI1", "Function call interrupts"), "call function");
        assert_eq!(label("IPI3", "CPU stop interrupts"), "CPU stop");
        assert_eq!(label("XYZ", ""), "XYZ");
        assert_eq!(cause_of_row("RTR", "APIC ICR read retries"), None);
        let shared = cause_of_irq(16, &["ehci_hcd:usb1".into(), "i801_smbus".into()]);
        assert_eq!(shared.label(), "irq 16 ehci_hcd:usb1+i801_smbus");
        assert_eq!(cause_of_softirq("RCU").label(), "softirq RCU");
    }

    fn total(cause: Cause, count: u64) -> CauseTotal {
        CauseTotal { cause, count, ..CauseTotal::default() }
    }

    #[test]
    fn more_in_the_trace_than_the_kernel_counted_is_reported() {
        let counted = [
            CounterDelta { cause: Cause::named(CauseKind::Vector, "call function"), count: 5 },
            CounterDelta { cause: cause_of_irq(47, &["nvme0q3".into()]), count: 2 },
            CounterDelta { cause: Cause::of(CauseKind::Nmi), count: 1 },
            CounterDelta { cause: Cause::named(CauseKind::Nmi, "performance monitoring"), count: 1 },
        ];
        let traced = [
            total(Cause::named(CauseKind::Vector, "call function single"), 5),
            total(cause_of_irq(47, &[]), 3),
            total(Cause::of(CauseKind::Nmi), 2),
            total(cause_of_softirq("RCU"), 4),
            total(Cause::named(CauseKind::Work, "vmstat_update"), 9),
            total(Cause::named(CauseKind::Vector, "never heard of"), 9),
            // Counted as IPI0 and so on.
            total(cause_of_irq(2, &["IPI".into()]), 9),
        ];
        let all = ReadCounters { interrupts: true, softirqs: true, ..ReadCounters::default() };
        let told = contradictions(4, &traced, &counted, all);
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 3, "{told:?}");
        assert_eq!(
            told[0],
            "CPU 4: The trace has 3 interruptions with irq 47, but the kernel counted 2 in the same time."
        );
        assert!(told[1].contains("2 interruptions with NMI") && told[2].contains("softirq RCU"), "{told:?}");
        assert_eq!(contradictions(4, &traced, &counted, ReadCounters::default()), []);
    }
}
