//! Kernel threads and workqueues. Threads that the kernel has bound to their CPU are never moved: it returns
//! EINVAL.

use super::{Proposal, Target, irq::house_near};
use crate::{Context, Setting};
use lowlat_host::{
    CpuSet, Reading,
    snapshot::{KernelThread, SchedPolicy},
};

/// Movable threads of a name that may use isolated CPUs.
pub fn off_isolated(context: &Context<'_>, is_named: fn(&str) -> bool) -> Proposal {
    let isolated = &context.allocation.isolated;
    let mut proposal = Proposal::default();
    let threads = context.host.tasks.kernel_threads.iter();
    for thread in threads.filter(|thread| !thread.is_bound && is_named(&thread.comm)) {
        let Reading::Known(cpus) = &thread.cpus_allowed else { continue };
        if cpus.is_disjoint(isolated) {
            continue;
        }
        let target = Target::KernelThreadAffinity { comm: thread.comm.clone(), pid: thread.pid };
        let before = Reading::Known(cpus.to_list());
        proposal = proposal.step(target, before, home(context, thread).to_list());
    }
    proposal
}

/// kswapdN stays on its node if that has a housekeeping CPU; all others may use every housekeeping CPU.
fn home(context: &Context<'_>, thread: &KernelThread) -> CpuSet {
    house_near(context, thread.comm.strip_prefix("kswapd").and_then(|id| id.parse().ok()))
}

/// Gives threads of a name SCHED_FIFO with a priority. Their affinity is unchanged.
pub fn fifo(context: &Context<'_>, prefix: &str, priority: u32) -> Proposal {
    let mut proposal = Proposal::default();
    let threads = context.host.tasks.kernel_threads.iter();
    for thread in threads.filter(|thread| thread.comm.starts_with(prefix)) {
        if thread.policy != SchedPolicy::Fifo || thread.rt_priority != priority {
            let target = Target::KernelThreadScheduling { comm: thread.comm.clone(), pid: thread.pid };
            let before = Reading::Known(scheduling(thread.policy, thread.rt_priority));
            proposal = proposal.step(target, before, scheduling(SchedPolicy::Fifo, priority));
        }
    }
    proposal
}

/// A policy and priority as plans name them: "SCHED_FIFO 2".
pub fn scheduling(policy: SchedPolicy, priority: u32) -> String {
    let name = policy.name();
    if priority == 0 { name.to_owned() } else { format!("{name} {priority}") }
}

/// The workers of the queue `writeback`.
pub fn writeback(context: &Context<'_>, _: &Setting) -> Proposal {
    let mut proposal = Proposal::default();
    for queue in context.host.tasks.workqueues.iter().filter(|queue| queue.name == "writeback") {
        proposal = workqueue(context, proposal, Some(queue.name.clone()), &queue.cpus);
    }
    proposal
}

/// The CPUs of all unbound work.
pub fn unbound(context: &Context<'_>, _: &Setting) -> Proposal {
    workqueue(context, Proposal::default(), None, &context.host.tasks.workqueue_cpus)
}

fn workqueue(
    context: &Context<'_>,
    proposal: Proposal,
    name: Option<String>,
    cpus: &Reading<CpuSet>,
) -> Proposal {
    let before = cpus.clone().map(|cpus| cpus.to_list());
    proposal.step(Target::WorkqueueCpus { name }, before, context.allocation.housekeeping.to_list())
}
