//! Work requested by code on the same CPU: it ends when the scheduler keeps other threads away.

use super::{Advice, case::Case};

/// Advice to isolate the CPUs, or `when_isolated` if they are.
pub(super) fn isolate(case: &Case<'_>, why: &str, when_isolated: &str) -> Advice {
    if case.is_isolated() {
        return Advice::Act(format!("{why}, although {} {} isolated: {when_isolated}", case.on(), case.is()));
    }
    Advice::Act(format!(
        "{why}: boot with {}, or put {} into an isolated cpuset partition, so that no other thread runs \
         there",
        case.isolcpus(),
        case.on()
    ))
}

/// Another CPU woke a thread on this one.
pub(super) const RESCHEDULE: [&str; 2] = [
    "another CPU woke a thread that may run here",
    "the threads in this list are pinned here by their own affinity, so move them",
];
/// Load balancing by the scheduler.
pub(super) const BALANCE: [&str; 2] = [
    "the scheduler balances load here",
    "a cpuset with cpuset.sched_load_balance may still contain them (control groups version 1)",
];
/// Work of the block layer: a request completes on the CPU that submitted it.
pub(super) const BLOCK: [&str; 2] = [
    "a disk request completes here, usually one that was submitted here",
    "submit no disk requests on these CPUs (log and record from threads on housekeeping CPUs)",
];
/// A soft high-resolution timer, and other timers without a separate rule.
pub(super) const OTHER_TIMER: [&str; 2] = [
    "{function} was armed by code that ran here",
    "a system call or an interrupt on these CPUs arms it; the timeline shows which",
];
