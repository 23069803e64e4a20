//! Prepares a trace before the samplers start: everything that disturbs CPUs happens here.

use super::{
    senders::{NO_SENDS, SendSetup},
    trace_clock::trace_clock_for,
};
use crate::{
    clock::{CounterKind, TickScale},
    jitter::{JitterOptions, cost::tracing_cost, quiet::threads::private_pids},
    tracefs::{CpuPipe, TraceOptions, Tracefs, Tracing, remove_leftovers},
};
use lowlat_host::{CpuId, CpuSet, ticks_between};
use lowlat_host_run::{Root, snapshot::memory_total};
use lowlat_jitter::{
    Cause, CauseKind, GroupMember, Interruption, JitterRecord, Stop, TracingCost, Warning,
    attribution::{CauseKey, Hit},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Buffer per traced CPU, if memory allows: at 32 bytes per event, half a second of a CPU with half a million
/// events a second.
const BUFFER_KB: u64 = 8 << 10;
/// Share of the host's memory for all buffers together.
const MEMORY_SHARE: u64 = 64;
/// Bytes of trace kept for the analysis after a run that an interruption ends: of all CPUs together, and of one at
/// most, which takes 100,000 events.
const KEPT_BYTES: usize = 64 << 20;
const KEPT_BYTES_MAX: usize = 4 << 20;
/// Minimum, because a new instance takes 1,408 KiB per CPU before it can be made smaller.
const MEMORY_KB_MIN: u64 = 64 << 10;

/// A trace that is ready to start.
#[derive(Debug)]
pub struct TraceSetup {
    pub tracing: Tracing,
    pub pipes: Vec<CpuPipe>,
    pub cost: Option<TracingCost>,
    pub senders: Option<SendSetup>,
    /// Reason why senders are not traced; empty if they are.
    pub senders_reason: String,
}

impl TraceSetup {
    /// Prepares it as [`TraceSetup::start`], and measures what an event costs.
    ///
    /// # Errors
    /// A sentence that says why tracing is unavailable, with a hint.
    pub fn make(
        root: &Root,
        options: &JitterOptions,
        kind: CounterKind,
        notes: &mut Vec<Warning>,
    ) -> Result<Self, String> {
        let (cpus, with_wakes) = (&options.cpus, options.stop_on_ns.is_some());
        let mut setup = Self::start(root, cpus, kind, notes)?;
        setup.cost = cost(&setup.tracing, cpus, &mut setup.pipes, notes);
        match SendSetup::start(root, cpus, kind, setup.tracing.facts.is_empty(), with_wakes) {
            Ok(senders) => {
                setup.senders_reason =
                    if senders.tracing.has_sends() { String::new() } else { NO_SENDS.into() };
                setup.senders = Some(senders);
            }
            Err(reason) => setup.senders_reason = reason,
        }
        if with_wakes {
            let senders = setup.senders.iter_mut().flat_map(|senders| &mut senders.pipes);
            let pipes: Vec<&mut CpuPipe> = setup.pipes.iter_mut().chain(senders).collect();
            let bytes = (KEPT_BYTES / pipes.len()).min(KEPT_BYTES_MAX);
            for pipe in pipes {
                pipe.keep(bytes);
            }
        }
        Ok(setup)
    }

    /// Prepares it, with recording still off.
    ///
    /// # Errors
    /// A sentence that says why tracing is unavailable, with a hint.
    pub fn start(
        root: &Root,
        cpus: &CpuSet,
        kind: CounterKind,
        notes: &mut Vec<Warning>,
    ) -> Result<Self, String> {
        same_threads(root)?;
        let tracefs = Arc::new(Tracefs::find().map_err(|error| error.to_string())?);
        for leftover in remove_leftovers(&tracefs) {
            let name = leftover.name;
            notes.push(match leftover.problem {
                None => Warning::LeftoverRemoved { name },
                Some(error) => Warning::LeftoverKept { name, error: error.to_string() },
            });
        }
        let wanted = TraceOptions {
            cpus: cpus.clone(),
            buffer_kb_per_cpu: BUFFER_KB,
            memory_kb_max: memory_kb_max(root, cpus),
            clock: trace_clock_for(kind),
        };
        let tracing = Tracing::start(&tracefs, &wanted).map_err(|error| error.to_string())?;
        let pipes = tracing.recording.pipes().map_err(|error| error.to_string())?;
        notes.extend(tracing.facts.iter().cloned().map(|fact| Warning::OtherTracer { fact }));
        notes.extend(tracing.problems.iter().cloned().map(|problem| Warning::TraceIncomplete { problem }));
        notes.extend(tracing.side_effects.iter().cloned().map(|effect| Warning::TraceSideEffect { effect }));
        Ok(Self { tracing, pipes, cost: None, senders: None, senders_reason: String::new() })
    }
}

/// Records page faults only where the filter matches: those of other threads than the measured ones are no
/// interruptions, and would flood the buffer.
pub fn filter_page_faults(tracing: &Tracing, filter: &str) {
    for event in ["exceptions/page_fault_user", "exceptions/page_fault_kernel"] {
        // A kernel without the event has no filter for it; one that rejects the filter traces more than needed.
        let _ = tracing.set_filter(event, filter);
    }
}

/// A trace identifies threads by the host's numbers, and a process in a private PID namespace does not know
/// those of its own threads.
fn same_threads(root: &Root) -> Result<(), String> {
    private_pids(root).map_or(Ok(()), |own| {
        Err(format!(
            "this process is in a private PID namespace ({own}), as in a container, and cannot identify its threads in \
             the host\'s trace; run it on the host, or in a container that shares the host\'s PIDs"
        ))
    })
}

/// A share of the memory, but enough to start with.
pub(super) fn memory_kb_max(root: &Root, cpus: &CpuSet) -> u64 {
    let per_cpu_kb = 2 << 10;
    let enough = MEMORY_KB_MIN.max(cpus.len() as u64 * per_cpu_kb);
    let total_bytes = memory_total(root).into_known();
    total_bytes.map_or(enough, |bytes| (bytes / 1_024 / MEMORY_SHARE).max(enough))
}

/// Cost of an event on the first measured CPU, where it matters. Events of the trial are discarded.
fn cost(
    tracing: &Tracing,
    cpus: &CpuSet,
    pipes: &mut [CpuPipe],
    notes: &mut Vec<Warning>,
) -> Option<TracingCost> {
    const EVENT: &str = "sched/sched_switch";
    let cpu = cpus.iter().next()?;
    // A failure to switch shows as no difference between the rounds.
    let _ = tracing.recording.set_on(true);
    let cost = tracing_cost(cpu, |is_on| {
        let _ = tracing.set_event(EVENT, is_on);
    });
    let _ = tracing.recording.set_on(false);
    let refused = tracing.set_event(EVENT, true).err();
    notes.extend(refused.map(|error| Warning::SwitchesNotTraced { error: error.to_string() }));
    for pipe in pipes {
        // A read that fails here is reported again when it matters.
        let _ = pipe.drain_raw(|_| true);
    }
    cost.map_err(|error| notes.push(Warning::CostNotMeasured { error: error.to_string() })).ok()
}

/// The end of a run by an interruption.
#[derive(Debug)]
pub struct Halt<'a> {
    on_ns: u64,
    /// Set before the samplers start.
    pub scale: TickScale,
    stop: &'a AtomicBool,
    hit: Option<Hit>,
}

impl<'a> Halt<'a> {
    /// Raises `stop` at an interruption that is long enough; `None` if none is to end the run.
    pub fn of(options: &JitterOptions, stop: &'a AtomicBool) -> Option<Self> {
        Some(Self { on_ns: options.stop_on_ns?, scale: TickScale::NANOSECONDS, stop, hit: None })
    }

    /// Inspects interruptions of a CPU, in order of time, with the main causes of those that are traced. Returns true if one
    /// is long enough.
    pub fn take(&mut self, cpu: CpuId, spans: &[(u64, u64)], keys: &[CauseKey]) -> bool {
        let ns = |(before, now): &(u64, u64)| self.scale.ns(ticks_between(*before, *now).unwrap_or(0));
        let not_traced = std::iter::repeat(&CauseKey::Kind(CauseKind::NotTraced));
        let mut all = spans.iter().zip(keys.iter().chain(not_traced));
        let Some(((before, now), key)) = all.find(|(span, _)| ns(span) >= self.on_ns) else { return false };
        // Several CPUs may have one in the same round: the first to end counts.
        if self.hit.is_none_or(|first| *now < first.now) {
            self.hit = Some(Hit { cpu, before: *before, now: *now, key: *key });
        }
        // Relaxed: pairs with the samplers' Relaxed loads; a lone flag that orders no data.
        self.stop.store(true, Ordering::Relaxed);
        true
    }

    /// The interruption, if there was one, and how the run ended.
    pub fn finish(&self, record: &JitterRecord) -> (Option<Hit>, Stop) {
        let ns = |from, to| self.scale.ns(ticks_between(from, to).unwrap_or(0));
        let member = |hit: Hit| {
            let (at_ns, length_ns) = (ns(record.start_ticks, hit.before), ns(hit.before, hit.now));
            let interruption = Interruption { at_ns, length_ns };
            GroupMember { cpu: hit.cpu, interruption, cause: Cause::of(hit.key.kind()) }
        };
        (self.hit, Stop { on_ns: self.on_ns, hit: self.hit.map(member), ..Stop::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_pid_namespace_is_reported() {
        let told = |own: &str| {
            let tree = tempfile::tempdir().unwrap();
            let folder = tree.path().join("proc/self/ns");
            std::fs::create_dir_all(&folder).unwrap();
            std::os::unix::fs::symlink(own, folder.join("pid")).unwrap();
            same_threads(&Root::open(tree.path()).unwrap())
        };
        assert_eq!(told("pid:[4026531836]"), Ok(()));
        assert!(told("pid:[4026532281]").unwrap_err().contains("private PID namespace"));
    }
}
