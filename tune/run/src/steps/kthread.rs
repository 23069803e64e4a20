//! Kernel threads, found by name: their process IDs change with each boot.

use super::{Gathering, gathering::cpu_list};
use crate::targets::kthread::KernelThreads;
use lowlat_host::snapshot::KernelThread;
use lowlat_plan::Plan;
use lowlat_settings::change::{Change, Target};
use lowlat_undo::UndoError;

/// A change of one thread.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    change: usize,
    pid: u32,
    after: &'a str,
}

/// Prepares all changes of threads with one name and kind, at the first of them.
/// A thread with an unchanged process ID keeps its change; the others are assigned in the order of their
/// IDs. If there are more threads than planned and all have the same change, each gets it.
pub(super) fn prepare(
    gathering: &mut Gathering<'_>,
    plan: &Plan,
    change: usize,
    comm: &str,
) -> Result<(), UndoError> {
    let Some(kind) = plan.changes.get(change).and_then(|change| kind_of(change, comm)) else { return Ok(()) };
    if !gathering.is_first_of(kind.kind(), comm) {
        return Ok(());
    }
    let all = wanted_of(plan, kind, comm);
    let mut threads: Vec<&KernelThread> =
        gathering.host.tasks.kernel_threads.iter().filter(|thread| thread.comm == comm).collect();
    let (mut pairs, mut renumbered) = (Vec::new(), Vec::new());
    for wanted in &all {
        match threads.iter().position(|thread| thread.pid == wanted.pid) {
            Some(at) => pairs.push((*wanted, threads.remove(at))),
            None => renumbered.push(*wanted),
        }
    }
    let is_same = all.windows(2).all(|pair| matches!(pair, [a, b] if a.after == b.after));
    let mut threads = threads.into_iter();
    for wanted in renumbered {
        match threads.next() {
            Some(thread) => pairs.push((wanted, thread)),
            None => gathering.leave(wanted.change, format!("kernel thread {comm} no longer exists")),
        }
    }
    if let Some(first) = all.first().filter(|_| is_same) {
        pairs.extend(threads.map(|thread| (*first, thread)));
    } else if let Some(first) = all.first() {
        for thread in threads {
            let text = format!(
                "thread {} {comm} is new and was not changed, because the planned values for threads of this name \
                 differ",
                thread.pid
            );
            gathering.note(first.change, text);
        }
    }
    pairs.sort_by_key(|(_, thread)| thread.pid);
    for (wanted, thread) in pairs {
        one(gathering, kind, wanted, thread)?;
    }
    Ok(())
}

/// The kind of target if the change is of a thread with this name.
fn kind_of(change: &Change, wanted: &str) -> Option<KernelThreads> {
    match &change.target {
        Target::KernelThreadAffinity { comm, .. } if comm == wanted => Some(KernelThreads::Affinity),
        Target::KernelThreadScheduling { comm, .. } if comm == wanted => Some(KernelThreads::Scheduling),
        _ => None,
    }
}

fn wanted_of<'a>(plan: &'a Plan, kind: KernelThreads, comm: &str) -> Vec<Wanted<'a>> {
    let of_kind = plan.changes.iter().enumerate().filter(|(_, change)| kind_of(change, comm) == Some(kind));
    let mut wanted: Vec<Wanted<'_>> = of_kind
        .filter_map(|(change, planned)| match planned.target {
            Target::KernelThreadAffinity { pid, .. } | Target::KernelThreadScheduling { pid, .. } => {
                Some(Wanted { change, pid, after: &planned.after })
            }
            _ => None,
        })
        .collect();
    wanted.sort_by_key(|wanted| wanted.pid);
    wanted
}

fn one(
    gathering: &mut Gathering<'_>,
    kind: KernelThreads,
    wanted: Wanted<'_>,
    thread: &KernelThread,
) -> Result<(), UndoError> {
    let name = format!("{} {}", thread.pid, thread.comm);
    let is_affinity = kind == KernelThreads::Affinity;
    if is_affinity && thread.is_bound {
        gathering.leave(
            wanted.change,
            format!("thread {name} is bound to its CPU by the kernel, which does not allow moving it"),
        );
        return Ok(());
    }
    if is_affinity && cpu_list(gathering, wanted.change, wanted.after).is_none() {
        return Ok(());
    }
    gathering.value(wanted.change, kind.spec(thread.pid, &thread.comm), wanted.after)
}
