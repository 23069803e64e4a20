//! A cause on a host, with helpers for wording its remedy.

use super::{Advice, RemedyContext, by_program};
use crate::{Cause, CauseKind, CauseStudy, JitterStudy, SenderStudy};
use lowlat_host::{CpuSet, Reading};

/// Maximum number of characters shown of a name from the host.
const NAME_CHARS_MAX: usize = 40;

pub(super) struct Case<'a> {
    pub(super) cause: &'a Cause,
    /// The CPUs to remove it from: all but housekeeping, or all if there are no others.
    pub(super) cpus: CpuSet,
    pub(super) context: &'a RemedyContext<'a>,
    /// Other findings of the run; empty if unknown.
    pub(super) study: &'a JitterStudy,
    pub(super) is_on_housekeeping: bool,
}

impl<'a> Case<'a> {
    pub(super) fn new(
        cause: &'a Cause,
        cpus: &CpuSet,
        context: &'a RemedyContext<'a>,
        study: &'a JitterStudy,
    ) -> Self {
        let off = cpus.difference(&context.allocation.housekeeping);
        let is_on_housekeeping = off.is_empty() && !cpus.is_empty();
        let cpus = if is_on_housekeeping { cpus.clone() } else { off };
        Self { cause, cpus, context, study, is_on_housekeeping }
    }

    /// The causes of a kind that the run found on these CPUs, the largest first.
    pub(super) fn beside(&self, kind: CauseKind) -> impl Iterator<Item = &'a CauseStudy> {
        let is_meant = move |of: &&CauseStudy| of.cause.kind == kind && !of.cpus.is_disjoint(&self.cpus);
        self.study.causes.iter().filter(is_meant)
    }

    /// Returns the run's finding about this cause; `None` if unknown.
    pub(super) fn found(&self) -> Option<&'a CauseStudy> {
        let id = |cause: &'a Cause| (cause.kind, &cause.name, cause.is_own);
        self.study.causes.iter().find(|found| id(&found.cause) == id(self.cause))
    }

    /// Advice about the sender that interrupted these CPUs most for a reason that contains this, if there is one.
    pub(super) fn by_sender(&self, reason: &str) -> Option<Advice> {
        let is_meant = |of: &&SenderStudy| {
            // A stopper thread acts for other threads.
            let is_stopper = of.who.starts_with("migration/");
            !of.is_own && !is_stopper && of.what.contains(reason) && !of.cpus.is_disjoint(&self.cpus)
        };
        let sender = self.study.senders.iter().find(is_meant)?;
        sender.remedy.as_ref().map(|remedy| by_program(&remedy.action))
    }

    /// Text for a cause that is not a fault.
    pub(super) fn leave_it_on_housekeeping(&self) -> String {
        let keep = if self.cpus.len() == 1 { "is a housekeeping CPU" } else { "are housekeeping CPUs" };
        let isolated = &self.context.allocation.isolated;
        let place = if isolated.is_empty() { "elsewhere".to_owned() } else { format!("on {isolated:#}") };
        format!("{} {keep} and the place for it: run trading threads {place}", self.on())
    }

    /// Advice about the rule's own setting. `{on}`, `{label}` and so on stand for what [`Case::value`] returns.
    pub(super) fn say(&self, text: &'static str) -> Advice {
        Advice::Act(self.fill(text))
    }

    /// The same about another setting; an empty one if a program must change.
    pub(super) fn elsewhere(&self, setting: &'static str, text: &'static str) -> Advice {
        Advice::Elsewhere(setting, self.fill(text))
    }

    pub(super) fn fill(&self, text: &str) -> String {
        let filled = text.split_inclusive('}').map(|piece| match piece.split_once('{') {
            Some((before, key)) => before.to_owned() + &self.value(key.trim_end_matches('}')),
            None => piece.to_owned(),
        });
        filled.collect()
    }

    fn value(&self, key: &str) -> String {
        match key {
            "name" => self.name(),
            "label" => self.label(),
            "function" => self.function(),
            "on" => self.on(),
            "is" => self.is().to_owned(),
            "isolated" => self.isolated_list(),
            "isolcpus" => self.isolcpus(),
            "housekeeping" => self.housekeeping(),
            _ => key.to_owned(),
        }
    }

    /// "CPU 3", "CPUs 3-5", "these CPUs".
    pub(super) fn on(&self) -> String {
        if self.cpus.is_empty() { "these CPUs".into() } else { format!("{:#}", self.cpus) }
    }

    /// Returns "is" or "are", to follow [`Case::on`].
    pub(super) fn is(&self) -> &'static str {
        if self.cpus.len() == 1 { "is" } else { "are" }
    }

    /// The list for a parameter with isolated CPUs, or a placeholder if none were chosen.
    pub(super) fn isolated_list(&self) -> String {
        let isolated = &self.context.allocation.isolated;
        if isolated.is_empty() { "ISOLATED_CPUS".into() } else { isolated.to_list() }
    }

    /// Housekeeping CPUs as a list for a command, if known.
    pub(super) fn housekeeping_list(&self) -> Option<String> {
        let cpus = &self.context.allocation.housekeeping;
        (!cpus.is_empty()).then(|| cpus.to_list())
    }

    /// "housekeeping CPU 0", "housekeeping CPUs 0,8", "a housekeeping CPU".
    pub(super) fn housekeeping(&self) -> String {
        let cpus = &self.context.allocation.housekeeping;
        if cpus.is_empty() { "a housekeeping CPU".into() } else { format!("housekeeping {cpus:#}") }
    }

    /// The cause's name, which comes from the host: without control characters, and truncated if long.
    pub(super) fn name(&self) -> String {
        self.cause.name.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()
    }

    /// The cause's label, cleaned in the same way.
    pub(super) fn label(&self) -> String {
        let name = self.name();
        match (self.cause.kind, self.cause.number) {
            (CauseKind::Irq, Some(number)) => format!("irq {number} {name}").trim_end().to_owned(),
            (CauseKind::Thread, Some(number)) => format!("thread {name} (pid {number})"),
            (CauseKind::Held, _) => name,
            (kind, _) => format!("{} {name}", kind.word()).trim_end().to_owned(),
        }
    }

    /// Function that was armed or queued. Kernel functions known only by address have no name to show.
    pub(super) fn function(&self) -> String {
        if self.cause.kind == CauseKind::Softirq {
            "a timer".into()
        } else if self.cause.is_nameless() {
            "the function".into()
        } else {
            self.name()
        }
    }

    /// Text of a small file, if it was read.
    pub(super) fn knob(&self, path: &str) -> Option<&str> {
        self.context.host.files.get(path).and_then(Reading::known).map(String::as_str)
    }

    /// A sysctl as a number, if it was read and is one.
    pub(super) fn sysctl(&self, key: &str) -> Option<i64> {
        self.knob(&lowlat_host::snapshot::sysctl_path(key))?.trim().parse().ok()
    }

    /// The CPUs that the kernel's lockup detectors check, if known.
    pub(super) fn watchdog_cpus(&self) -> Option<CpuSet> {
        CpuSet::parse_list(self.knob("/proc/sys/kernel/watchdog_cpumask")?.trim()).ok()
    }

    /// True if the kernel is known to be built without an option.
    pub(super) fn is_built_without(&self, option: &str) -> bool {
        self.context.host.kernel.config_option(option) == Reading::Known(None)
    }

    /// True if a unit of the service manager is running.
    pub(super) fn is_active(&self, unit: &str) -> bool {
        self.context.host.services.units.get(unit).is_some_and(|unit| unit.active.text() == "active")
    }

    /// True if the host is known to be a virtual machine.
    pub(super) fn is_virtual(&self) -> bool {
        self.context.host.virtualization.is_virtual == Reading::Known(true)
    }

    /// The isolation parameter for this kernel: "isolcpus=managed_irq,domain,1-7".
    pub(super) fn isolcpus(&self) -> String {
        let known = ["managed_irq", "domain"]
            .into_iter()
            .filter(|flag| self.context.host.knows_isolcpus_flag(flag) != Some(false));
        format!("isolcpus={}", known.chain([self.isolated_list().as_str()]).collect::<Vec<_>>().join(","))
    }

    /// True if the scheduler excludes all these CPUs from load balancing: isolated at boot or by cpuset partitions.
    pub(super) fn is_isolated(&self) -> bool {
        !self.cpus.is_empty() && self.cpus.is_subset(&self.context.host.cpus_isolated())
    }

    /// True if these CPUs may run without a tick.
    pub(super) fn is_tickless(&self) -> bool {
        let tickless = self.context.host.topology.nohz_full.known();
        !self.cpus.is_empty() && tickless.is_some_and(|held| self.cpus.is_subset(held))
    }

    /// Advice to write a sysctl, or `when_set` if it already has the value.
    pub(super) fn set_sysctl(&self, key: &str, value: i64, when_set: &str) -> Advice {
        if self.sysctl(key) == Some(value) {
            return Advice::Act(format!("{key} is {value} already: {when_set}"));
        }
        Advice::Act(format!("sysctl -w {key}={value}, and in /etc/sysctl.d to keep it"))
    }
}
