//! The changes of a plan as calls of the shell functions in `sh/`.

use super::brief::Brief;
use super::text::{here_document, shell_pattern, shell_word};
use lowlat_host::{CpuSet, snapshot::SchedPolicy};
use lowlat_settings::change::{Change, Mechanism};
use std::collections::BTreeMap;

/// The section of a call in the script, in the order of applying: queues are changed before their
/// interrupts, some of which vanish with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Section {
    Sysctls,
    Values,
    HugePages,
    Interfaces,
    Interrupts,
    Workqueues,
    Threads,
    Policies,
    Files,
    Services,
}

impl Section {
    fn title(self) -> &'static str {
        match self {
            Self::Sysctls => "Sysctls",
            Self::Values => "Values below /sys and /proc",
            Self::HugePages => "Huge pages",
            Self::Interfaces => "Network interfaces",
            Self::Interrupts => "Interrupts: number in the plan, index among those of its name, name, CPUs",
            Self::Workqueues => "Workqueues",
            Self::Threads => "CPUs of kernel threads",
            Self::Policies => "Policy and priority of kernel threads",
            Self::Files => "Files",
            Self::Services => "Services",
        }
    }

    /// True for sections that survive a reboot.
    pub(super) fn is_kept(self) -> bool {
        matches!(self, Self::Files | Self::Services)
    }
}

/// The calls of a plan by section.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_section: BTreeMap<Section, Vec<String>>,
}

impl Calls {
    pub(super) fn of(brief: &Brief<'_>) -> Self {
        let mut calls = Self::default();
        for change in &brief.plan.changes {
            if let Some((section, call)) = call(brief, change) {
                calls.by_section.entry(section).or_default().push(call);
            }
        }
        calls
    }

    /// The calls that no other section makes.
    pub(super) fn without(mut self, is_made: impl Fn(&str) -> bool) -> Self {
        for calls in self.by_section.values_mut() {
            calls.retain(|call| !is_made(call));
        }
        self.by_section.retain(|_, calls| !calls.is_empty());
        self
    }

    pub(super) fn has(&self, section: Section) -> bool {
        self.by_section.contains_key(&section)
    }

    /// The body of a shell function with the calls of some sections.
    pub(super) fn body(&self, is_meant: impl Fn(Section) -> bool) -> String {
        let sections = self.by_section.iter().filter(|(section, _)| is_meant(**section));
        let parts: Vec<String> = sections
            .map(|(section, calls)| {
                let title = format!("section {}", shell_word(section.title()));
                lines([title].iter().chain(calls).cloned())
            })
            .collect();
        if parts.is_empty() { lines([]) } else { parts.join("\n") }
    }
}

/// The lines of a shell function's body.
pub(super) fn lines(calls: impl IntoIterator<Item = String>) -> String {
    let body: String = calls.into_iter().map(|call| format!("    {call}\n")).collect();
    if body.is_empty() { "    :\n".to_owned() } else { body }
}

/// One change as a call, by its mechanism. None for the command line, which has a separate function, for
/// TuneD's profile, which is not changed (see [`Brief::of`]), for partitions of CPUs and caches, which are not exported,
/// and for running processes: systemd's setting for later boots is a file.
fn call(brief: &Brief<'_>, change: &Change) -> Option<(Section, String)> {
    let after = change.after.as_str();
    let kind = change.target.kind();
    Some(match kind.facts().mechanism {
        Mechanism::BootLoader { .. }
        | Mechanism::TunedProfile
        | Mechanism::CacheGroup { .. }
        | Mechanism::CpusetPartition { .. }
        | Mechanism::UserProcesses => {
            return None;
        }
        Mechanism::Value { path } => (section(&path), value(&path, after)),
        Mechanism::Mask { path } => (section(&path), mask(&path, after)),
        Mechanism::Ethtool { nic, group, name } => {
            let words = [nic, name, after].map(shell_word).join(" ");
            (Section::Interfaces, format!("nic {} {words}", group.option))
        }
        Mechanism::IdleState { name, cpus } => {
            let is_off = u8::from(after == "disabled");
            (Section::Values, format!("idle_state {} {cpus} {is_off}", shell_word(name)))
        }
        Mechanism::Interrupt { number, actions } => {
            (Section::Interrupts, irq_call(brief, number, actions, after))
        }
        Mechanism::ThreadAffinity { comm, .. } => {
            (Section::Threads, format!("thread {} {}", shell_pattern(comm), shell_word(after)))
        }
        Mechanism::ThreadScheduling { comm, .. } => {
            let call = format!("thread_policy {} {}", shell_pattern(comm), shell_word(&policy(after)));
            (Section::Policies, call)
        }
        Mechanism::FileKey { path, key } => {
            let words = [path, key, after].map(shell_word).join(" ");
            (Section::Files, format!("key_in_file {words}"))
        }
        Mechanism::OwnedFile { path } => (
            Section::Files,
            format!("whole_file {}{} {}", shell_word(path), whom(path), here_document(after)),
        ),
        Mechanism::Unit { name } => {
            let enablement = if after.ends_with(", disabled") { "disabled" } else { "''" };
            (Section::Services, format!("service {} {enablement}", shell_word(name)))
        }
    })
}

/// Files of the kernel by subject.
fn section(path: &str) -> Section {
    const SECTIONS: [(&str, Section); 5] = [
        ("/proc/sys/", Section::Sysctls),
        ("/proc/irq/", Section::Interrupts),
        ("/sys/devices/virtual/workqueue/", Section::Workqueues),
        ("/hugepages/hugepages-", Section::HugePages),
        ("/queues/", Section::Interfaces),
    ];
    SECTIONS.iter().find(|(part, _)| path.contains(part)).map_or(Section::Values, |(_, section)| *section)
}

/// The value of one file.
pub(super) fn value(path: &str, value: &str) -> String {
    format!("value {} {}", shell_word(path), shell_word(value))
}

/// A literal mask: shells compute with 64 bits, and hosts have more CPUs.
pub(super) fn mask(path: &str, list: &str) -> String {
    let mask = CpuSet::parse_list(list).map_or_else(|_| list.to_owned(), |cpus| cpus.to_mask());
    format!("mask {} {}", shell_word(path), shell_word(&mask))
}

/// The unit that reads a file of its drop-in directory.
fn whom(path: &str) -> String {
    let unit =
        path.split('/').find_map(|part| part.strip_suffix(".d").filter(|unit| unit.ends_with(".service")));
    unit.map(|unit| format!(" {}", shell_word(unit))).unwrap_or_default()
}

/// An interrupt. Several may have the same name, so its index among them, from 1, finds it after a reboot.
fn irq_call(brief: &Brief<'_>, number: u32, actions: &[String], after: &str) -> String {
    let irqs = brief.context.host.interrupts.irqs.iter();
    let nth = irqs.filter(|irq| irq.actions == actions && irq.number < number).count() + 1;
    format!("irq {number} {nth} {} {}", shell_word(&actions.join(", ")), shell_word(after))
}

/// Policy and priority as numbers of sched(7): "SCHED_FIFO 2" is "1 2".
fn policy(text: &str) -> String {
    let (name, priority) = text.split_once(' ').unwrap_or((text, "0"));
    let number = SchedPolicy::from_name(name).and_then(SchedPolicy::number).unwrap_or(0);
    format!("{number} {priority}")
}
