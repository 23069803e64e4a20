//! Senders that interrupted a CPU from another one, as in a record.

mod reason;
mod study;

pub use reason::Reason;
pub use study::SenderStudy;
pub(crate) use study::senders_of;

use crate::CpuCauses;
use lowlat_host::CpuSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sender of interrupts to measured CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Sender {
    /// Its thread ID; `None` if an interrupt or the idle task sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i32>,
    /// The thread's name; empty if it ended before it could be read, or if an interrupt sent.
    pub name: String,
    /// Its process's name; empty if it is the same or unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub process: String,
    /// Activity of the CPU when it sent.
    pub level: SenderLevel,
    /// The CPUs from which it sent.
    pub cpus: CpuSet,
    /// The kernel function that was requested; empty if none was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// Functions on the kernel's stack, innermost first; only the requesting one if there is no stack.
    pub path: Vec<String>,
    /// True if it is lowlat itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
}

/// Activity of a CPU when it sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SenderLevel {
    /// A thread's work in the kernel.
    #[default]
    Thread,
    /// A softirq, which no thread asked for.
    Softirq,
    /// An interrupt, which no thread asked for.
    Interrupt,
}

/// Interruptions by one sender on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SenderTotal {
    /// Index into [`crate::JitterCauses::senders`]; `None`: unknown senders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender: Option<usize>,
    /// Interruptions that contained an interrupt or a function of it.
    pub count: u64,
    /// Time that these took, with entry and exit, but without what the scheduler ran then.
    pub ns_total: u64,
    /// Longest time in one interruption.
    pub ns_max: u64,
}

impl Sender {
    /// True if only the CPUs differ.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let Self { thread, name, process, level, cpus: _, function, path, is_own } = other;
        (self.thread, self.level, self.is_own) == (*thread, *level, *is_own)
            && (&self.name, &self.process, &self.function, &self.path) == (name, process, function, path)
    }
}

impl CpuCauses {
    /// Gives senders their final indexes: `places` has that of each former one.
    pub fn place_senders(&mut self, places: &[usize]) {
        let place = |sender: Option<usize>| sender.and_then(|former| places.get(former).copied());
        let mut totals: Vec<SenderTotal> = Vec::with_capacity(self.senders.len());
        for total in self.senders.drain(..) {
            let sender = place(total.sender);
            match totals.iter_mut().find(|other| other.sender == sender) {
                Some(other) => {
                    other.count = other.count.saturating_add(total.count);
                    other.ns_total = other.ns_total.saturating_add(total.ns_total);
                    other.ns_max = other.ns_max.max(total.ns_max);
                }
                None => totals.push(SenderTotal { sender, ..total }),
            }
        }
        totals.sort_by(|a, b| b.ns_total.cmp(&a.ns_total).then_with(|| a.sender.cmp(&b.sender)));
        self.senders = totals;
        let steps = self.worst.iter_mut().chain(&mut self.first).flat_map(|of| &mut of.timeline);
        for step in steps {
            step.sender = place(step.sender);
        }
    }
}
