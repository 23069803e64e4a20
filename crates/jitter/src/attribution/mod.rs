//! Attribution: which cause took how much of each interruption of a CPU.
//!
//! One [`CpuAttributor`] per CPU takes that CPU's trace events and the interruptions that its sampler saw, both in
//! time order, and holds one against the other. The sampler's own code ran right before an interruption and right
//! after, so the kernel's nesting starts out empty and every tick between belongs to the innermost activity that
//! runs. While none does, the kernel is on the way to an activity or back from it, and that time belongs to this
//! activity. What no event explains is firmware, hypervisor or
//! unexplained; where events were lost nothing is said. Parts always add up to the interruption, whatever the
//! events are, and no memory grows with their number.
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
mod share;
mod timeline;
mod totals;
mod windows;

#[cfg(test)]
mod tests;

pub use engine::{AttributionPlan, CpuAttributor, ENTRY_EXIT_NS_MAX, EVENTS_MAX, Main};
pub use groups::{GROUPS_WORST_MAX, GroupFinder, GroupPlan, Hit};
pub use keys::{CauseKey, KEYS_MAX};
pub use names::{CauseNames, IDLE_NAME};
