//! Kernel threads, found by name: their process IDs change with each boot.

use super::{
    Gathering,
    gathering::cpu_list,
    value::{Paired, numbered, paired},
};
use crate::targets::kthread::KernelThreads;
use lowlat_host::snapshot::KernelThread;
use lowlat_settings::change::Target;
use lowlat_undo::UndoError;

/// Prepares all changes of threads with one name and kind, at the first of them.
/// A thread with an unchanged process ID keeps its change; the others are assigned in the order of their
/// IDs. If there are more threads than planned and all have the same change, each gets it.
pub(super) fn prepare(
    gathering: &mut Gathering<'_>,
    kind: KernelThreads,
    comm: &str,
) -> Result<(), UndoError> {
    if !gathering.is_first_of(kind.kind(), comm) {
        return Ok(());
    }
    let all = numbered(gathering.plan, |target| match (kind, target) {
        (KernelThreads::Affinity, Target::KernelThreadAffinity { pid, comm: found })
        | (KernelThreads::Scheduling, Target::KernelThreadScheduling { pid, comm: found })
            if found == comm =>
        {
            Some(*pid)
        }
        _ => None,
    });
    let threads = gathering.host.tasks.kernel_threads.iter().filter(|thread| thread.comm == comm).collect();
    let Paired { mut pairs, renumbered, others: mut threads } =
        paired(&all, threads, |thread: &&KernelThread| thread.pid);
    let is_same = all
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if gathering.after(a.change) == gathering.after(b.change)));
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
        one(gathering, kind, wanted.change, thread)?;
    }
    Ok(())
}

fn one(
    gathering: &mut Gathering<'_>,
    kind: KernelThreads,
    change: usize,
    thread: &KernelThread,
) -> Result<(), UndoError> {
    let name = format!("{} {}", thread.pid, thread.comm);
    let is_affinity = kind == KernelThreads::Affinity;
    if is_affinity && thread.is_bound {
        gathering.leave(
            change,
            format!("thread {name} is bound to its CPU by the kernel, which does not allow moving it"),
        );
        return Ok(());
    }
    if is_affinity && cpu_list(gathering, change).is_none() {
        return Ok(());
    }
    gathering.value(change, kind.spec(thread.pid, &thread.comm), gathering.after(change))
}
