//! A trace made ready before the samplers begin: all that disturbs CPUs happens here.

use super::trace_clock::trace_clock_for;
use crate::{
    clock::CounterKind,
    jitter::{JitterOptions, cost::tracing_cost},
};
use lowlat_host::CpuSet;
use lowlat_jitter::TracingCost;
use lowlat_sys::{
    Root,
    snapshot::memory_total,
    tracefs::{CpuPipe, TraceOptions, Tracefs, Tracing, remove_leftovers},
};
use std::sync::Arc;

/// Buffer of each traced CPU, where memory allows: at 32 bytes an event, half a second of a CPU with half a million
/// events a second.
const BUFFER_KB: u64 = 8 << 10;
/// Share of the host's memory that all buffers together may take.
const MEMORY_SHARE: u64 = 64;
/// At least as much, since a new instance takes 1,408 KiB for each CPU before it can be made smaller.
const MEMORY_KB_MIN: u64 = 64 << 10;

/// The host's own PID namespace (kernel: PROC_PID_INIT_INO, the same on every host).
const HOST_PIDS: &str = "pid:[4026531836]";

/// A trace that is ready to begin.
#[derive(Debug)]
pub struct Setup {
    pub tracing: Tracing,
    pub pipes: Vec<CpuPipe>,
    pub cost: Option<TracingCost>,
}

impl Setup {
    /// Makes it, its recording still off. `notes` gets what the user should know.
    ///
    /// # Errors
    /// A sentence that says why there can be no trace, with the next step.
    pub fn make(
        root: &Root,
        options: &JitterOptions,
        kind: CounterKind,
        notes: &mut Vec<String>,
    ) -> Result<Self, String> {
        same_threads(root)?;
        let tracefs = Arc::new(Tracefs::find().map_err(|error| error.to_string())?);
        for leftover in remove_leftovers(&tracefs) {
            notes.push(match leftover.problem {
                None => format!("The trace {} of a lowlat that was killed was removed.", leftover.name),
                Some(problem) => {
                    format!(
                        "The trace {} of a lowlat that was killed is still there: {problem}.",
                        leftover.name
                    )
                }
            });
        }
        let wanted = TraceOptions {
            cpus: options.cpus.clone(),
            buffer_kb_per_cpu: BUFFER_KB,
            memory_kb_max: memory_kb_max(root, &options.cpus),
            clock: trace_clock_for(kind),
        };
        let tracing = Tracing::start(&tracefs, &wanted).map_err(|error| error.to_string())?;
        let mut pipes = tracing.pipes().map_err(|error| error.to_string())?;
        notes.extend(tracing.facts().iter().map(|fact| {
            format!("Another tracer is at work, and takes time on every CPU that it traces: {fact}.")
        }));
        notes.extend(
            tracing.problems().iter().map(|problem| format!("The trace lacks something: {problem}.")),
        );
        notes.extend(tracing.side_effects().iter().cloned());
        let cost = cost(&tracing, &options.cpus, &mut pipes, notes);
        Ok(Self { tracing, pipes, cost })
    }
}

/// A trace names threads as the host does, and a process in a PID namespace of its own does not know its own by these
/// numbers.
fn same_threads(root: &Root) -> Result<(), String> {
    match root.read_link("/proc/self/ns/pid").into_known() {
        Some(own) if own != HOST_PIDS => Err(format!(
            "this process is in a PID namespace of its own ({own}), as in a container, and cannot tell its threads in the              host's trace; run it on the host, or in a container that shares the host's PIDs"
        )),
        _ => Ok(()),
    }
}

/// A share of the memory, but enough to begin with.
fn memory_kb_max(root: &Root, cpus: &CpuSet) -> u64 {
    let per_cpu_kb = 2 << 10;
    let enough = MEMORY_KB_MIN.max(cpus.len() as u64 * per_cpu_kb);
    let total_bytes = memory_total(root).into_known();
    total_bytes.map_or(enough, |bytes| (bytes / 1_024 / MEMORY_SHARE).max(enough))
}

/// What an event costs on the first measured CPU, where it counts. What the trial leaves in the buffers is thrown
/// away.
fn cost(
    tracing: &Tracing,
    cpus: &CpuSet,
    pipes: &mut [CpuPipe],
    notes: &mut Vec<String>,
) -> Option<TracingCost> {
    const EVENT: &str = "sched/sched_switch";
    let cpu = cpus.iter().next()?;
    // Failing to switch shows as no difference between the rounds.
    let _ = tracing.set_on(true);
    let cost = tracing_cost(cpu, |is_on| {
        let _ = tracing.set_event(EVENT, is_on);
    });
    let _ = tracing.set_on(false);
    if let Err(error) = tracing.set_event(EVENT, true) {
        notes.push(format!("Switches of threads are not traced: {error}."));
    }
    for pipe in pipes {
        // What can't be read now shows again when it matters.
        let _ = pipe.drain_raw(|_| true);
    }
    cost.map_err(|error| notes.push(format!("What tracing costs was not measured: {error}."))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_s_own_pids_are_told() {
        let told = |own: &str| {
            let tree = tempfile::tempdir().unwrap();
            let folder = tree.path().join("proc/self/ns");
            std::fs::create_dir_all(&folder).unwrap();
            std::os::unix::fs::symlink(own, folder.join("pid")).unwrap();
            same_threads(&Root::open(tree.path()).unwrap())
        };
        assert_eq!(told(HOST_PIDS), Ok(()));
        assert!(told("pid:[4026532281]").unwrap_err().contains("PID namespace of its own"));
    }
}
