//! Kernel threads and workqueues.

use super::judge::{Scene, UnjudgedTarget};
use super::{Row, Standing, culprit};
use lowlat_host::{CpuSet, Reading, snapshot::KernelThread};
use lowlat_settings::change::{Change, Target, kthread::scheduling};

/// The present thread of a change. Process IDs change with each boot, so of several threads of one name the
/// change's index among them decides.
fn find<'a>(
    scene: &Scene<'a>,
    at: usize,
    change: &Change,
    (comm, pid): (&str, u32),
) -> Option<&'a KernelThread> {
    let threads = || scene.host.tasks.kernel_threads.iter().filter(|thread| thread.comm == comm);
    let is_like = |other: &&Change| {
        std::mem::discriminant(&other.target) == std::mem::discriminant(&change.target)
            && matches!(&other.target, Target::KernelThreadAffinity { comm: other, .. }
                | Target::KernelThreadScheduling { comm: other, .. } if other == comm)
    };
    let place = || scene.plan.changes.iter().take(at).filter(is_like).count();
    threads().find(|thread| thread.pid == pid).or_else(|| threads().nth(place()))
}

fn not_found(scene: &Scene<'_>, look: UnjudgedTarget<'_>) -> Row {
    // A host always has kernel threads: none means that /proc was not read.
    let (standing, note) = if scene.host.tasks.kernel_threads.is_empty() {
        (Standing::Unreadable, "/proc contains no kernel threads")
    } else {
        (Standing::Gone, "no kernel thread has this name now")
    };
    look.row(standing, note)
}

pub(super) fn affinity_row(scene: &Scene<'_>, at: usize, change: &Change, comm: &str, pid: u32) -> Row {
    let look = UnjudgedTarget::of(at, change, format!("CPUs of {comm}"), Reading::Absent);
    let Some(thread) = find(scene, at, change, (comm, pid)) else { return not_found(scene, look) };
    let planned = CpuSet::parse_list(&change.after).unwrap_or_default();
    let is_planned = thread.cpus_allowed.known().is_some_and(|cpus| scene.same_cpus(cpus, &planned));
    let observed = thread.cpus_allowed.clone().map(|cpus| cpus.to_list());
    let look = UnjudgedTarget { observed, is_planned, claims: culprit::threads(scene.evidence), ..look };
    if thread.is_bound && !is_planned && look.observed.is_known() {
        let note = "the kernel has bound this thread to its CPU (PF_NO_SETAFFINITY) and rejects moving it with EINVAL";
        return look.row(Standing::Ineffective, note);
    }
    look.judge(scene)
}

pub(super) fn scheduling_row(scene: &Scene<'_>, at: usize, change: &Change, comm: &str, pid: u32) -> Row {
    let look = UnjudgedTarget::of(at, change, format!("{comm} scheduling"), Reading::Absent);
    let Some(thread) = find(scene, at, change, (comm, pid)) else { return not_found(scene, look) };
    let observed = scheduling(thread.policy, thread.rt_priority);
    let (is_planned, claims) = (observed == change.after, culprit::threads(scene.evidence));
    UnjudgedTarget { observed: Reading::Known(observed), is_planned, claims, ..look }.judge(scene)
}
