//! Remedies: which setting of the catalogue removes a cause, and what to do with it on this host.
//!
//! An entry of [`rules::RULES`] is one rule: kind, names, setting, and the words of the action.
//! The action takes into account what is in force on the host, if the snapshot shows it.

mod calls;
mod case;
mod interrupts;
mod memory;
mod rules;
#[cfg(test)]
mod tests;
mod threads;
mod ticks;

use super::{Cause, CauseKind, JitterStudy, Remedy};
use case::Case;
use lowlat_host::{Allocation, CpuId, CpuSet, HostSnapshot, Role, snapshot::component_matches};
use std::borrow::Cow;

/// Context for wording a remedy: the host, and the requirements for it.
#[derive(Debug, Clone, Copy)]
pub struct RemedyContext<'a> {
    /// The facts about the host.
    pub host: &'a HostSnapshot,
    /// The CPUs chosen for housekeeping and isolation.
    pub allocation: &'a Allocation,
    /// The user's requirements for the host.
    pub role: &'a Role,
}

/// Returns the remedy that removes this cause from these CPUs; `None` if lowlat knows none. `study` has the other
/// findings of the run; empty if unknown.
///
/// The setting is empty if no setting of the host removes it. The action then names the program to change.
pub fn remedy(
    cause: &Cause,
    cpus: &CpuSet,
    context: &RemedyContext<'_>,
    study: &JitterStudy,
) -> Option<Remedy> {
    let behind = behind(cause, cpus, study);
    let cause = behind.as_ref();
    let hit = Case::new(cause, cpus, context, study);
    if cause.is_own && cause.kind != CauseKind::Held {
        let on = hit.on();
        let action =
            format!("lowlat's own work: measure fewer CPUs, so that its collector need not run on {on}");
        return Some(Remedy { setting: String::new(), action });
    }
    let rule = rules::RULES.iter().find(|rule| rule.fits(cause))?;
    let advice = if rule.belongs_to_housekeeping && hit.is_on_housekeeping {
        Advice::Act(hit.leave_it_on_housekeeping())
    } else {
        match rule.act {
            RuleAct::Say(text) => hit.say(text),
            RuleAct::Isolate([why, when_isolated]) => memory::isolate(&hit, &hit.fill(why), when_isolated),
            RuleAct::By(act) => act(&hit),
        }
    };
    let (setting, action) = match advice {
        Advice::Act(action) => (rule.setting, action),
        Advice::Elsewhere(setting, action) => (setting, action),
    };
    Some(Remedy { setting: setting.to_owned(), action })
}

/// Returns the cause to remove: for the interrupt of a timer, the timer's function; for one from another CPU, the
/// function that took the most time.
fn behind<'a>(cause: &'a Cause, cpus: &CpuSet, study: &'a JitterStudy) -> Cow<'a, Cause> {
    if cause.kind == CauseKind::Vector && cause.name.starts_with("call function") {
        let mut functions = study.causes.iter().filter(|of| of.cause.kind == CauseKind::CallFunction);
        return Cow::Borrowed(functions.find(|of| !of.cpus.is_disjoint(cpus)).map_or(cause, |of| &of.cause));
    }
    cause.timer_function().map_or(Cow::Borrowed(cause), |name| {
        Cow::Owned(Cause { kind: CauseKind::Hrtimer, name: name.to_owned(), ..cause.clone() })
    })
}

/// True if the remedy of a cause helps a CPU. A cause that belongs on housekeeping CPUs stays there.
pub(super) fn helps(cause: &Cause, cpu: CpuId, context: &RemedyContext<'_>, study: &JitterStudy) -> bool {
    let behind = behind(cause, &CpuSet::of(cpu), study);
    let rule = rules::RULES.iter().find(|rule| rule.fits(&behind));
    rule.is_some_and(|rule| !rule.belongs_to_housekeeping || !context.allocation.housekeeping.contains(cpu))
}

/// Result of a rule for a case.
#[derive(Debug)]
enum Advice {
    /// Advice about the rule's own setting.
    Act(String),
    /// That setting is in force or does not apply here; advice for another one. Empty: no setting helps.
    Elsewhere(&'static str, String),
}

/// No setting of the host helps; a program must change.
fn by_program(action: impl Into<String>) -> Advice {
    Advice::Elsewhere("", action.into())
}

/// One rule. The first one that matches a cause applies.
struct Rule {
    kind: CauseKind,
    /// Names with `*` for any run of characters, compared without case; empty for every name.
    names: &'static [&'static str],
    /// ID of the setting in the catalogue.
    setting: &'static str,
    /// The cause is acceptable on a housekeeping CPU.
    belongs_to_housekeeping: bool,
    act: RuleAct,
}

/// How a rule words its action.
enum RuleAct {
    /// A text as in [`Case::say`].
    Say(&'static str),
    /// Advice to isolate the CPUs: the reason, as in [`Case::say`], and what to do if they are isolated.
    Isolate([&'static str; 2]),
    By(fn(&Case<'_>) -> Advice),
}

impl Rule {
    fn fits(&self, cause: &Cause) -> bool {
        let name = cause.name.to_ascii_lowercase();
        self.kind == cause.kind
            && (self.names.is_empty() || self.names.iter().any(|pattern| component_matches(pattern, &name)))
    }
}

/// Settings that decide which CPUs get an interrupt.
const AFFINITY: &[&str] = &["irq.irqbalance_banned", "boot.irqaffinity", "irq.default_affinity"];

/// A setting, and those that decide its state.
///
/// A remedy names the state that lets a cause reach a CPU: an interrupt's affinity. If another setting decides this
/// state and differs (irqbalance runs), that setting must be changed.
const ORIGINS: &[(&str, &[&str])] = &[
    ("irq.affinity", AFFINITY),
    ("irq.spread_nic_queues", AFFINITY),
    ("irq.default_affinity", &["boot.irqaffinity"]),
    ("irq.managed", &["boot.isolcpus"]),
    ("nic.rps", &["nic.queue_count"]),
    ("boot.nohz_full", &["boot.nohz", "kernel.config.no_hz_full"]),
    ("boot.rcu_nocbs", &["boot.nohz_full", "kernel.config.rcu_nocb_cpu"]),
    ("sysfs.clocksource", &["boot.tsc", "boot.clocksource"]),
    ("sysctl.kernel.nmi_watchdog", &["sysctl.kernel.watchdog", "boot.nmi_watchdog"]),
    ("sysctl.kernel.watchdog_cpumask", &["sysctl.kernel.watchdog", "boot.nosoftlockup"]),
    ("sysctl.vm.compaction_proactiveness", &["memory.thp_defrag"]),
    ("memory.thp_enabled", &["boot.transparent_hugepage"]),
    ("memory.ksm", &["service.ksm"]),
    ("sysfs.cpufreq.governor", &["service.cpuspeed", "service.tuned.profile"]),
    ("sysfs.machinecheck.check_interval", &["boot.mce"]),
    ("kthread.rcu", &["boot.rcu_nocbs"]),
    ("kthread.workqueue.global", &["boot.isolcpus"]),
    ("sysfs.cpuset.partition", &["boot.isolcpus"]),
];

/// Returns the settings that decide the state of this one, the most likely first; empty if there are none.
pub fn origins(setting: &str) -> &'static [&'static str] {
    ORIGINS.iter().find(|(of, _)| *of == setting).map_or(&[], |(_, origins)| origins)
}
