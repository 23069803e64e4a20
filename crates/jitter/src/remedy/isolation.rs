//! What is asked of a CPU by code that ran there: it ends where the scheduler keeps other threads off.

use super::{Advice, case::Case};

/// Isolation of the CPUs; where it is in force, what else to do.
pub(super) fn isolate(case: &Case<'_>, why: &str, when_isolated: &str) -> Advice {
    if case.is_isolated() {
        return Advice::Act(format!("{why}, although {} {} isolated: {when_isolated}", case.on(), case.is()));
    }
    Advice::Act(format!(
        "{why}: boot with {}, or hold {} in an isolated cpuset partition, so that no other thread runs there",
        case.isolcpus(),
        case.on()
    ))
}

/// Another CPU woke a thread for this one.
pub(super) fn reschedule(case: &Case<'_>) -> Advice {
    isolate(
        case,
        "another CPU woke a thread that may run here",
        "the threads in this list are pinned here by their own affinity, so move them",
    )
}

/// The load balancer.
pub(super) fn balance(case: &Case<'_>) -> Advice {
    isolate(
        case,
        "the scheduler balances load here",
        "a cpuset with cpuset.sched_load_balance may still hold them (control groups version 1)",
    )
}

/// Work of the block layer: the completion runs where the request was made.
pub(super) fn block(case: &Case<'_>) -> Advice {
    isolate(
        case,
        "a request to a disk ends here, as a rule one that was made here",
        "make no disk requests on these CPUs (log and record from threads on housekeeping CPUs)",
    )
}

/// A function on a work queue.
pub(super) fn work(case: &Case<'_>) -> Advice {
    let why = format!("{} was queued by code that ran here", case.function());
    isolate(case, &why, "a system call or an interrupt on these CPUs queues it; the timeline shows which")
}

/// A soft high-resolution timer and other timers without a rule of their own.
pub(super) fn other_timer(case: &Case<'_>) -> Advice {
    let why = format!("{} was armed by code that ran here", case.function());
    isolate(case, &why, "a system call or an interrupt on these CPUs arms it; the timeline shows which")
}
