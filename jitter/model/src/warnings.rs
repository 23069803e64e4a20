//! Warnings about a run. Their texts are in one place.

use lowlat_host::{CpuId, CpuSet, Reading};
use thiserror::Error;

/// Largest number of counters named in the text about restarted counters.
const NAMED_MAX: usize = 8;

/// Reason that the figures of a run are doubtful or incomplete. Its `Display` text is one or more sentences.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Warning {
    #[error(
        "The host was suspended for {:.3} s during the run; the interruption of that length is the suspend.",
        seconds(*.suspended_ns)
    )]
    Suspended { suspended_ns: u64 },
    #[error(
        "The kernel changed its clock source during the run from {before} to {after}, because it no longer trusts the \
         first."
    )]
    ClockSourceChanged { before: Reading<String>, after: Reading<String> },
    /// The time of day was set during the run; a negative step set it back.
    #[error(
        "The time of day was set during the run, by {:+.3} s. The figures are valid, because the counter does not follow \
         it; logs with times of day cannot be aligned with them across the step.",
        *.step_ns as f64 / 1e9
    )]
    TimeOfDaySet { step_ns: i128 },
    /// Counter and kernel clock ran at different rates; the drift is positive if the counter was faster.
    #[error(
        "The counter {counter} drifted by {drift_ppm:+.0} ppm against CLOCK_MONOTONIC_RAW; lengths are off by as much."
    )]
    CounterDrifted { counter: &'static str, drift_ppm: f64 },
    #[error(
        "The kernel does not offer the TSC as a clock source, so it may differ between CPUs: lengths are valid, but \
         moments on different CPUs cannot be compared."
    )]
    TscNotOffered,
    #[error(
        "The processor does not report its TSC as invariant, although the kernel offers it as a clock source: lengths may \
         be wrong if the clock frequency changes."
    )]
    TscNotReportedInvariant,
    #[error(
        "The TSC is not invariant on this host, so CLOCK_MONOTONIC_RAW was read instead: the loop is longer and misses \
         short interruptions."
    )]
    TscNotUsed,
    #[error("The kernel uses the clock source {name} although the TSC is available.")]
    ClockSourceNotTsc { name: String },
    #[error(
        "The samplers of {cpus:#} did not end with the run: a real-time thread held their CPU, or they died because of a \
         bug in lowlat. The others were kept."
    )]
    SamplersLost { cpus: CpuSet },
    /// A sampler was found on another CPU so long after its start. `is_offline`: at the end of the run, its own CPU was.
    #[error(
        "The sampler of CPU {cpu} was found on CPU {to} after {:.3} s: {}. Its earlier results are kept.",
        seconds(*.after_ns),
        cause_of_move(*.is_offline)
    )]
    SamplerMoved { cpu: CpuId, to: CpuId, after_ns: u64, is_offline: bool },
    #[error(
        "The hypervisor took {} ms from {cpus:#} during the run (steal time): interruptions there may come from the \
         hypervisor.",
        milliseconds(*.stolen_ns)
    )]
    Stolen { cpus: CpuSet, stolen_ns: u64 },
    /// A quota of CPU time stopped the samplers, for so long over all threads.
    #[error(
        "A quota of CPU time stopped the samplers for {:.2} s in all (throttled time in cpu.stat of their control group): \
         that time counts as interruptions, whose causes are wrong. Write max to cpu.max of the group (CPUQuota= of its unit).",
        seconds(*.throttled_ns)
    )]
    QuotaThrottled { throttled_ns: u64 },
    /// A reading of the counter was below the previous one.
    #[error(
        "The counter went backwards on {cpus:#}: it is unreliable, and lengths measured there may be wrong."
    )]
    CounterWentBackwards { cpus: CpuSet },
    /// No CPU was left for lowlat's other threads. `has_collector`: one collected causes or wrote raw files.
    #[error(
        "Every CPU that this process may use was measured, so its own main thread ran on one of them once a second, {} \
         there.",
        if *.has_collector {
            "and the collecting thread twice a second, which count as interruptions"
        } else {
            "which counts as an interruption"
        }
    )]
    NoCpuLeft { has_collector: bool },
    #[error(
        "The thread that collects causes and writes raw files died because of a bug in lowlat; the samplers' own figures \
         are kept."
    )]
    CollectorDied,
    #[error(
        "The memory of the samplers could not be locked ({error}): their own page faults would count as interruptions. Run \
         as root, or raise the limit on locked memory (ulimit -l)."
    )]
    MemoryNotLocked { error: String },
    /// Real-time samplers keep other threads waiting. The policy has the priority: "SCHED_FIFO 10".
    #[error(
        "The samplers ran as {policy}: threads of lower priority, including most kernel threads, had to wait on the \
         measured CPUs. The figures do not include the time that they would have taken."
    )]
    RealTime { policy: String },
    /// The kernel's fair server interrupts real-time samplers on these CPUs: its longest time on any of them, and its
    /// period on the first. `directory` has its settings.
    #[error(
        "On {cpus:#} the kernel gives up to {} ms of each {} ms to ordinary threads that wait behind a real-time thread \
         (fair server): this run causes such interruptions itself. Write 0 to {directory}/cpuN/runtime during the run, or \
         measure without real-time priority.",
        milliseconds(*.runtime_ns),
        milliseconds(*.period_ns)
    )]
    FairServer { cpus: CpuSet, runtime_ns: u64, period_ns: u64, directory: &'static str },
    #[error(
        "Unless it was switched off, the kernel gives time to ordinary threads that wait behind a real-time thread (fair \
         server): this run causes such interruptions itself. {directory} could not be read; mount debugfs and run as root \
         to see it."
    )]
    FairServerUnknown { directory: &'static str },
    /// The kernel stops real-time threads that have run so long in a period; `path` has the time.
    #[error(
        "The kernel stops real-time threads that have run for {runtime_us} us of a period of {period_us} us ({path}): this \
         run causes such interruptions itself. Write -1 there during the run, or measure without real-time priority."
    )]
    RealTimeThrottled { runtime_us: i64, period_us: i64, path: &'static str },
    #[error(
        "The kernel held back the real-time samplers {count} times, for {} ms in all, to let others run: the causes name it, and \
         neither headline nor gate counts it. The host does so only to a real-time thread that never sleeps.",
        milliseconds(*.ns_total)
    )]
    HeldBack { count: u64, ns_total: u64 },
    /// Rings were full, so interruptions are missing in the raw files.
    #[error(
        "On {cpus:#} interruptions were too frequent to be written: {lost_count} are missing in the raw files, but in no \
         other figure."
    )]
    RawLost { cpus: CpuSet, lost_count: u64 },
    #[error(
        "The raw files of {cpus:#} end before the run does ({error}): {lost_count} interruptions are missing in them, but \
         in no other figure."
    )]
    RawEndsEarly { cpus: CpuSet, error: String, lost_count: u64 },
    /// A spool could not be converted to a raw file.
    #[error(
        "The raw file {path} could not be written ({error}): its {count} interruptions are kept in {spool}, unless that \
         was removed."
    )]
    RawNotWritten { path: String, error: String, count: u64, spool: String },
    #[error("Removed the trace {name} of a lowlat process that was killed.")]
    LeftoverRemoved { name: String },
    #[error("Cannot remove the trace {name} of a lowlat process that was killed: {error}.")]
    LeftoverKept { name: String, error: String },
    #[error("Another tracer is active, and takes time on every CPU that it traces: {fact}.")]
    OtherTracer { fact: String },
    /// The kernel rejected an event or option of the trace.
    #[error("The trace is incomplete: {problem}.")]
    TraceIncomplete { problem: String },
    /// The trace changed something in the host's own trace.
    /// The effect says what changed and how to revert it, in the words of the trace's owner.
    #[error("{effect}")]
    TraceSideEffect { effect: String },
    #[error("Thread switches are not traced: {error}.")]
    SwitchesNotTraced { error: String },
    #[error("The cost of tracing was not measured: {error}.")]
    CostNotMeasured { error: String },
    #[error("The trace could not be switched on ({error}), so no cause is known.")]
    TraceNotOn { error: String },
    #[error("Reading the trace of CPU {cpu} failed ({error}); later interruptions there have no cause.")]
    TraceBroken { cpu: CpuId, error: String },
    #[error(
        "{count} interrupts between CPUs have an unknown sender, because more senders than are kept interrupted the \
         measured CPUs."
    )]
    SendersTooMany { count: u64 },
    /// Events of senders were lost.
    #[error(
        "The trace of what CPUs send to each other has {count} gaps; interrupts around them have an unknown sender."
    )]
    SendersMissed { count: u64 },
    #[error(
        "{count} context switches are missing from the kernel's trace; the time before each in an interruption counts as \
         not traced."
    )]
    SwitchesMissed { count: u64 },
    #[error(
        "The kernel dropped {count} trace events of {cpus:#}, because its buffer was full; interruptions there count as \
         not traced."
    )]
    EventsDropped { cpus: CpuSet, count: u64 },
    /// Rings were full, so interruptions have no cause.
    #[error(
        "{count} interruptions of {cpus:#} have no cause, because they were too frequent to be analysed; counts and \
         lengths include them all."
    )]
    NotAnalysed { cpus: CpuSet, count: u64 },
    #[error(
        "{count} interruptions arrived too late to be compared with those of other CPUs; they are in no group."
    )]
    GroupsLate { count: u64 },
    #[error("Functions are shown as addresses: /proc/kallsyms could not be read ({error}).")]
    FunctionsUnnamed { error: String },
    #[error("The trace could not be removed: {error}.")]
    TraceNotRemoved { error: String },
    #[error("The kernel's counts in {path} are unknown: {why}.")]
    CountsUnknown { path: &'static str, why: String },
    #[error(
        "{cpus:#} had no column in {path} before or after the run, so it was offline then: the kernel's counts there are \
         unknown."
    )]
    CountsOffline { cpus: CpuSet, path: &'static str },
    /// Counters restarted during the run: cause and CPUs of each.
    #[error("Counters restarted during the run, so these counts are lower bounds: {}.", restarted(.counters))]
    CountersRestarted { counters: Vec<(String, CpuSet)> },
    #[error(
        "CPU {cpu}: The trace has {traced_count} interruptions with {cause}, but the kernel counted {counted_count} in the \
         same time."
    )]
    MoreThanCounted { cpu: CpuId, cause: String, traced_count: u64, counted_count: u64 },
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn milliseconds(ns: u64) -> u64 {
    ns / 1_000_000
}

fn cause_of_move(is_offline: bool) -> &'static str {
    if is_offline {
        "the CPU was taken offline"
    } else {
        "its affinity was changed, or the CPU was offline for a while"
    }
}

fn restarted(counters: &[(String, CpuSet)]) -> String {
    let mut named: Vec<String> =
        counters.iter().take(NAMED_MAX).map(|(cause, cpus)| format!("{cause} on {cpus:#}")).collect();
    if counters.len() > NAMED_MAX {
        named.push(format!("{} more", counters.len() - NAMED_MAX));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests;
