//! Attribution: the share of each cause in each interruption of a CPU.
//!
//! One [`CpuAttributor`] per CPU takes that CPU's trace events and the interruptions that its sampler saw,
//! both in time order, and matches them. The sampler's own code ran right before and right after an
//! interruption, so the kernel's nesting starts out empty, and every tick in between belongs to the innermost
//! running activity. While there is none, the kernel is entering or leaving an activity, and that time
//! belongs to this activity. Time without an event is firmware, hypervisor or unexplained; where events were
//! lost, it is not attributed. Parts always sum to the interruption, whatever the events are, and memory does
//! not grow with their number.
//!
//! [`GroupFinder`] finds interruptions that hit several CPUs at once.

mod engine;
mod groups;
mod kept;
mod keys;
mod names;
mod nesting;
mod parts;
mod queue;
mod record;
mod replay;
mod senders;
mod timeline;
mod totals;
mod windows;

#[cfg(test)]
mod tests;

pub use engine::{AttributionPlan, CpuAttributor, ENTRY_EXIT_NS_MAX, EVENTS_MAX, Main, Sleep};
pub use groups::{GROUPS_WORST_MAX, GroupFinder, GroupPlan, Hit};
pub use keys::{CauseKey, KEYS_MAX};
pub use names::{ASLEEP_NAME, CauseNames, DEADLINE, IDLE_NAME};
pub use senders::{NOTES_MAX, Note, SENDERS_MAX, SenderBook, SenderId, SenderNames};
