//! Causes of interruptions, prepared for display: coloured families, the longest interruptions with their explanations,
//! timelines as spans, and sentences shared by the terminal and the page.

pub mod ranked;
pub mod spans;
pub mod words;

use lowlat_host::{CPU_ID_MAX, CpuId, CpuSet};
use lowlat_jitter::{Cause, CauseKind, CauseSource, CauseStudy, CpuCauses, JitterCauses, Remedy};

/// Causes that share a colour, in the order of legends and stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CauseFamily {
    /// The local timer and what it runs.
    Timer,
    Device,
    /// Interrupts by which other CPUs request work.
    OtherCpu,
    Softirq,
    /// Threads and functions on work queues.
    Thread,
    /// NMIs, thermal and error interrupts.
    Machine,
    /// Kernel work for the measured program: page faults and signals.
    PageFault,
    EntryExit,
    /// Time taken by firmware or the hypervisor.
    Firmware,
    Unexplained,
    /// Time that was not traced, or whose events were lost.
    NotTraced,
}

impl CauseFamily {
    pub const ALL: [Self; 11] = [
        Self::Timer,
        Self::Device,
        Self::OtherCpu,
        Self::Softirq,
        Self::Thread,
        Self::Machine,
        Self::PageFault,
        Self::EntryExit,
        Self::Firmware,
        Self::Unexplained,
        Self::NotTraced,
    ];

    /// Returns the family of a cause.
    pub fn of(cause: &Cause) -> Self {
        match cause.kind {
            CauseKind::Hrtimer | CauseKind::Timer => Self::Timer,
            CauseKind::Irq => Self::Device,
            CauseKind::Vector => Self::of_vector(&cause.name),
            CauseKind::CallFunction => Self::OtherCpu,
            CauseKind::Softirq | CauseKind::Tasklet => Self::Softirq,
            CauseKind::Work | CauseKind::Thread | CauseKind::Held => Self::Thread,
            CauseKind::Nmi => Self::Machine,
            CauseKind::PageFault | CauseKind::Signal => Self::PageFault,
            CauseKind::EntryExit => Self::EntryExit,
            CauseKind::FirmwareOrHypervisor => Self::Firmware,
            CauseKind::Unexplained => Self::Unexplained,
            CauseKind::NotTraced => Self::NotTraced,
        }
    }

    /// Classifies the processor's own interrupts by name: timer, from another CPU, or machine.
    fn of_vector(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let is = |words: &[&str]| words.iter().any(|word| name.contains(word));
        if is(&["timer"]) {
            Self::Timer
        } else if is(&["reschedule", "call function", "irq work", "another cpu", "ipi"]) {
            Self::OtherCpu
        } else {
            Self::Machine
        }
    }

    /// Names for legends and CSS classes of the colours, in the order of [`CauseFamily::ALL`].
    const WORDS: [(&str, &str); 11] = [
        ("timer", "timer"),
        ("device interrupt", "device"),
        ("from another CPU", "ipi"),
        ("softirq", "softirq"),
        ("thread or work", "thread"),
        ("NMI, thermal, errors", "machine"),
        ("page fault or signal", "fault"),
        ("kernel entry and exit", "entry"),
        ("firmware or hypervisor", "firmware"),
        ("unexplained", "unexplained"),
        ("not traced", "nottraced"),
    ];

    /// Returns the name for legends.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize].0
    }

    /// Returns the CSS class of its colour.
    pub fn class(self) -> &'static str {
        Self::WORDS[self as usize].1
    }
}

/// Returns the display name of a cause; causes by lowlat itself are marked.
pub fn label(cause: &Cause) -> String {
    let own = if cause.is_own { ", lowlat's own" } else { "" };
    lowlat_text::units::clean(&format!("{}{own}", cause.label()))
}

/// Shortens [`label`] to a number of characters; a thread's number and scheduling are dropped first.
pub fn label_within(cause: &Cause, chars_max: usize) -> String {
    let whole = label(cause);
    if whole.chars().count() <= chars_max {
        return whole;
    }
    let short = Cause { priority: None, number: None, ..cause.clone() };
    lowlat_text::text::cut(&if cause.kind == CauseKind::Thread { label(&short) } else { whole }, chars_max)
}

/// Returns the time of each family on one CPU, in the order of [`CauseFamily::ALL`].
pub fn by_family(cpu: &CpuCauses) -> [u64; CauseFamily::ALL.len()] {
    let mut sums = [0u64; CauseFamily::ALL.len()];
    for total in &cpu.totals {
        let sum = &mut sums[CauseFamily::of(&total.cause) as usize];
        *sum = sum.saturating_add(total.ns_total);
    }
    sums
}

/// Formats a remedy: "boot.nohz_full: add …", or only the action if no setting helps.
pub fn remedy_text(remedy: &Remedy) -> String {
    let setting = if remedy.setting.is_empty() { String::new() } else { format!("{}: ", remedy.setting) };
    lowlat_text::units::clean(&format!("{setting}{}", remedy.action))
}

/// Returns whether two remedies recommend the same action, even for different reasons: "thread md may run here: boot
/// with …" and "the scheduler balances load here: boot with …".
pub fn is_same_advice(one: &Remedy, other: &Remedy) -> bool {
    one.setting == other.setting && advice(&one.action) == advice(&other.action)
}

/// Returns the action without its reason: "boot with …".
pub fn advice(action: &str) -> &str {
    action.split_once(": ").map_or(action, |(_, advice)| advice)
}

/// Returns the causes of a record if each interruption was compared with the trace.
pub fn traced(causes: Option<&JitterCauses>) -> Option<&JitterCauses> {
    causes.filter(|causes| causes.source == CauseSource::Trace)
}

/// Returns the study of a cause, which may have a different number there.
pub fn study_of<'a>(causes: &'a [CauseStudy], cause: &Cause) -> Option<&'a CauseStudy> {
    let is_kin = |of: &&CauseStudy| of.cause.kind == cause.kind && of.cause.name == cause.name;
    causes.iter().find(|of| of.cause == *cause).or_else(|| causes.iter().find(is_kin))
}

/// Sum of a kernel counter over all CPUs.
#[derive(Debug, PartialEq, Eq)]
pub struct CounterSum {
    pub cause: Cause,
    /// CPUs on which it increased.
    pub cpus: CpuSet,
    /// Increase on all of them.
    pub count: u64,
    /// CPU with the largest increase, and the increase.
    pub most: (CpuId, u64),
}

/// Returns the counters over all CPUs, largest increase first.
pub fn counters(causes: &JitterCauses) -> Vec<CounterSum> {
    let mut sums: std::collections::BTreeMap<&Cause, CounterSum> = std::collections::BTreeMap::new();
    for cpu in &causes.cpus {
        for counter in cpu.counters.iter().filter(|counter| counter.count > 0) {
            let (cause, cpus) = (counter.cause.clone(), CpuSet::new());
            let new = || CounterSum { cause, cpus, count: 0, most: (cpu.cpu, 0) };
            let sum = sums.entry(&counter.cause).or_insert_with(new);
            if cpu.cpu <= CPU_ID_MAX {
                sum.cpus.insert(cpu.cpu);
            }
            sum.count = sum.count.saturating_add(counter.count);
            if counter.count > sum.most.1 {
                sum.most = (cpu.cpu, counter.count);
            }
        }
    }
    let mut sums: Vec<CounterSum> = sums.into_values().collect();
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.count));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_family_and_vectors_are_classified_by_name() {
        let vector =
            |name: &str| CauseFamily::of(&Cause { name: name.into(), ..Cause::of(CauseKind::Vector) });
        assert_eq!(vector("local timer"), CauseFamily::Timer);
        assert_eq!(vector("call function single"), CauseFamily::OtherCpu);
        assert_eq!(vector("reschedule"), CauseFamily::OtherCpu);
        assert_eq!(vector("thermal"), CauseFamily::Machine);
        assert_eq!(CauseFamily::of(&Cause::of(CauseKind::Work)), CauseFamily::Thread);
        let classes: std::collections::BTreeSet<_> = CauseFamily::ALL.iter().map(|of| of.class()).collect();
        assert_eq!(classes.len(), CauseFamily::ALL.len());
    }
}
