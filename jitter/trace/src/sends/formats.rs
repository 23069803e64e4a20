//! The formats of the senders' events on one host.

use super::Channel;
use crate::{
    EventFormat, Field, FormatError, PageLayout, Vector, check_entry_layout,
    formats::{ipi_reasons, type_offset_of},
};
use lowlat_host::Unparsable;
use std::collections::BTreeMap;

/// Trace event of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SendEvent {
    /// Its path below `events/`.
    pub path: &'static str,
    /// The field with the CPU or the CPUs that it concerns.
    pub target: Option<&'static str>,
    /// True if the kernel's stack is wanted after it.
    pub has_stack: bool,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Queue,
    SendOne,
    SendMany,
    Raise,
    Exit,
    Wake,
    Stack,
}

impl Kind {
    /// The fields that are read, in the order in which the decoder takes them.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Queue => &["cpu", "func", "csd", "callsite"],
            Self::SendOne => &["cpu", "callsite", "callback"],
            Self::SendMany => &["cpumask", "callsite", "callback"],
            Self::Raise => &["target_cpus", "reason"],
            Self::Exit => &["comm"],
            Self::Wake => &["pid"],
            // The format declares eight addresses; a record has as many as it counts.
            Self::Stack => &["size", "caller"],
        }
    }
}

const fn event(path: &'static str, target: Option<&'static str>, has_stack: bool, kind: Kind) -> SendEvent {
    SendEvent { path, target, has_stack, kind }
}

/// Every event of a sender that is read. Those that a kernel lacks are left out on that kernel.
pub const SEND_EVENTS: &[SendEvent] = &[
    event("csd/csd_queue_cpu", Some("cpu"), false, Kind::Queue),
    event("ipi/ipi_send_cpu", Some("cpu"), true, Kind::SendOne),
    event("ipi/ipi_send_cpumask", Some("cpumask"), true, Kind::SendMany),
    event("ipi/ipi_raise", None, true, Kind::Raise),
    event("sched/sched_process_exit", None, false, Kind::Exit),
    // A thread that is woken on the CPU where it last ran, one that gets another CPU, and a new one.
    event("sched/sched_waking", Some("target_cpu"), true, Kind::Wake),
    event("sched/sched_migrate_task", Some("dest_cpu"), true, Kind::Wake),
    event("sched/sched_wakeup_new", Some("target_cpu"), true, Kind::Wake),
    event("ftrace/kernel_stack", None, false, Kind::Stack),
];

impl SendEvent {
    /// True if a thread is woken or gets another CPU. If that is the CPU that does it, no stack is wanted: it would
    /// lengthen an interruption there, and the trace of that CPU has what ran.
    pub fn is_wake(&self) -> bool {
        self.kind == Kind::Wake
    }

    /// True if it must be switched on. Stacks come with the events that they follow.
    pub fn is_switched(&self) -> bool {
        self.kind != Kind::Stack
    }
}

/// The senders' formats of a host.
#[derive(Debug, Clone)]
pub struct SendFormats {
    /// The header of a sub-buffer.
    pub page: PageLayout,
    /// The events of this kernel that are read.
    pub present: Vec<&'static SendEvent>,
    pub(super) type_offset: usize,
    pub(super) flags: Field,
    pub(super) thread: Field,
    /// Kinds of events and their fields ([`Kind::fields`]), by the number of the format.
    pub(super) known: BTreeMap<u16, (Kind, Vec<Field>)>,
    pub(super) reasons: BTreeMap<u64, Vector>,
}

impl SendFormats {
    /// Parses the formats; `format_of` returns the text of `events/PATH/format`, if the kernel has it.
    /// `Ok(None)` if this kernel traces neither interrupts between CPUs at their sender nor, `with_wakes`, wake-ups.
    ///
    /// # Errors
    /// [`FormatError`] if sub-buffers or an event cannot be read.
    pub fn parse(
        header_page: &str,
        header_event: &str,
        printk_formats: &str,
        with_wakes: bool,
        mut format_of: impl FnMut(&str) -> Option<String>,
    ) -> Result<Option<Self>, FormatError> {
        check_entry_layout(header_event)?;
        let mut formats: Option<Self> = None;
        for event in SEND_EVENTS {
            let has_send_one = formats.as_ref().is_some_and(|formats| formats.has(Kind::SendOne));
            let is_wanted = match event.kind {
                // If both exist, they report the same interrupts.
                Kind::Raise => !has_send_one,
                Kind::Wake => with_wakes,
                _ => true,
            };
            let Some(text) = is_wanted.then(|| format_of(event.path)).flatten() else { continue };
            let format = EventFormat::parse(event.path, &text)?;
            let error = |expected: &str| FormatError(Unparsable::new(event.path, &text, expected));
            let fields = event.kind.fields().iter().map(|name| format.field(name).cloned());
            let fields = fields
                .collect::<Option<Vec<Field>>>()
                .ok_or_else(|| error("the fields of this event in Linux 6.4 or newer"))?;
            let common = |name: &str| format.field(name).cloned().ok_or_else(|| error(name));
            let formats = match &mut formats {
                Some(formats) => formats,
                None => formats.insert(Self {
                    page: PageLayout::parse(header_page)?,
                    present: Vec::new(),
                    type_offset: type_offset_of(&format).ok_or_else(|| error("a common_type of 2 bytes"))?,
                    flags: common("common_flags")?,
                    thread: common("common_pid")?,
                    known: BTreeMap::new(),
                    reasons: ipi_reasons(printk_formats),
                }),
            };
            formats.known.insert(format.id, (event.kind, fields));
            formats.present.push(event);
        }
        Ok(formats.filter(|formats| formats.has_sends() || formats.has(Kind::Wake)))
    }

    /// True if this kernel traces the senders of interrupts between CPUs.
    pub fn has_sends(&self) -> bool {
        self.has(Kind::SendOne) || self.has(Kind::Raise)
    }

    fn has(&self, kind: Kind) -> bool {
        self.present.iter().any(|event| event.kind == kind)
    }

    /// Returns the channel of an interrupt of older arm64 kernels, by the address of its reason.
    pub(super) fn channel_of(&self, reason: u64) -> Option<Channel> {
        match self.reasons.get(&reason)? {
            Vector::Reschedule => Some(Channel::Reschedule),
            Vector::CallFunction => Some(Channel::Call),
            _ => None,
        }
    }
}
