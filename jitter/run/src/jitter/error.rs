//! Errors of a run, with hints.

use super::raw::RawError;
use super::{options::DURATION_MAX, real_time::RealTime};
use crate::clock::ClockError;
use lowlat_host::{CpuId, CpuSet, ListError};
use lowlat_host_run::affinity::AffinityError;
use std::{io, time::Duration};
use thiserror::Error;

/// Error that makes a run impossible.
#[derive(Debug, Error)]
pub enum JitterError {
    /// A captured host cannot be measured.
    #[error("cannot measure {root}: jitter can only be measured on the running host\nhint: leave out --root")]
    NotLive { root: String },
    /// The set of CPUs is empty.
    #[error("no CPU to measure\nhint: give a list such as 1-7,9-15")]
    NoCpus,
    /// The list of CPUs cannot be parsed.
    #[error("cannot parse \"{text}\" as a list of CPUs: {source}")]
    List { text: String, source: ListError },
    #[error("cannot measure {cpus:#}: named more than once\nhint: name each CPU once")]
    Repeated { cpus: CpuSet },
    /// Requested CPUs are not online.
    #[error(
        "cannot measure {cpus:#}: not online (online: {online})\nhint: bring them online or leave them out"
    )]
    Offline { cpus: CpuSet, online: CpuSet },
    /// The CPUs are outside this process's cpuset.
    #[error(
        "cannot measure {cpus:#}: outside of this process's cpuset\nhint: leave them out, or start lowlat from a cgroup whose \
         cpuset.cpus contains them"
    )]
    NotAllowed { cpus: CpuSet },
    #[error("cannot measure: the duration is zero\nhint: give one such as 10s")]
    ZeroDuration,
    #[error("cannot run for {duration:?}: the maximum is {} days", DURATION_MAX.as_secs() / 86_400)]
    TooLong { duration: Duration },
    /// With a threshold of zero each turn of the loop would be an interruption.
    #[error(
        "cannot measure: the threshold is zero, so each turn of the loop would count\nhint: give one such as 100ns, or none"
    )]
    ZeroThreshold,
    /// No interruption that long fits into the run.
    #[error(
        "cannot measure: the threshold of {:?} is not below the duration of {duration:?}\nhint: lower it or run longer",
        Duration::from_nanos(*threshold_ns)
    )]
    ThresholdNotBelowDuration { threshold_ns: u64, duration: Duration },
    /// Interruptions that are to end the run are below this threshold.
    #[error(
        "cannot stop on interruptions below the threshold of {0:?}, which are not seen\nhint: lower --threshold"
    )]
    StopBelowThreshold(Duration),
    /// There is no trace that could be saved, for this reason.
    #[error("cannot save the trace: {0}")]
    NothingTraced(String),
    /// The counter cannot be used.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The CPU affinity is unknown.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// A thread cannot be started.
    #[error(
        "cannot start the sampler of CPU {cpu}: {source}\nhint: measure fewer CPUs or raise the limit on threads"
    )]
    Thread { cpu: CpuId, source: io::Error },
    /// A sampler cannot be pinned to its CPU.
    #[error("cannot pin the sampler of CPU {cpu}: {source}")]
    Pin { cpu: CpuId, source: AffinityError },
    /// A sampler died because of a bug in lowlat.
    #[error(
        "the sampler of CPU {cpu} died before it started\nhint: this is a bug in lowlat, please report it"
    )]
    Died { cpu: CpuId },
    /// CPUs have had no time for a sampler for so long.
    #[error(
        "cannot measure {cpus:#}: no time for a sampler within {:.1} s\nhint: a real-time thread may hold it; look for one \
         with `ps -eLo psr,cls,rtprio,comm | grep -E 'FF|RR'`",
        within.as_secs_f64()
    )]
    Busy { cpus: CpuSet, within: Duration },
    /// Every iteration of the loop would be an interruption: one takes `period_ns`, the median.
    #[error(
        "cannot tell interruptions of {threshold_ns} ns: one iteration of the sampling loop takes {period_ns:.0} ns \
         here\nhint: leave out --threshold for {default_ns} ns"
    )]
    ThresholdInLoop { threshold_ns: u64, period_ns: f64, default_ns: u64 },
    /// A real-time priority that does not exist.
    #[error("invalid real-time priority {priority}\nhint: give one from 1 to 99, such as 10")]
    Priority { priority: u8 },
    /// Real-time samplers would leave none of the CPUs on which lowlat's other threads may run.
    #[error(
        "real-time samplers on {cpus:#} would leave no CPU for lowlat, which may run on {allowed:#}, and could lock \
         up the host\nhint: leave at least one of these CPUs out, or measure without real-time priority"
    )]
    RealTimeEverywhere { cpus: CpuSet, allowed: CpuSet },
    /// The limit on real-time CPU time is below what the run needs.
    #[error(
        "the limit on real-time CPU time ends real-time threads after {present_us} us without sleep, but the run \
         needs {wanted_us} us\nhint: raise it (ulimit -R) or measure without real-time priority"
    )]
    RealTimeLimit { present_us: u64, wanted_us: u64 },
    /// A sampler cannot get its real-time priority.
    #[error(
        "cannot give the sampler of CPU {cpu} {real_time}: {source}\nhint: run as root or raise the limit (ulimit -r), in a \
         control group with real-time runtime, or measure without real-time priority"
    )]
    RealTime { cpu: CpuId, real_time: RealTime, source: io::Error },
    /// Raw files cannot be written.
    #[error(transparent)]
    Raw(#[from] RawError),
    /// The collector cannot be started.
    #[error("cannot start the collecting thread: {source}\nhint: raise the limit on threads")]
    Collector { source: io::Error },
}
