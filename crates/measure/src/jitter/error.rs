//! Why a run can't be made, with what to do about it.

use super::raw::RawError;
use super::{options::DURATION_MAX, real_time::RealTime};
use crate::{affinity::AffinityError, clock::ClockError};
use lowlat_host::{CpuId, CpuSet, ListError};
use std::{io, time::Duration};
use thiserror::Error;

/// Why a run can't be made.
#[derive(Debug, Error)]
pub enum JitterError {
    /// A captured host has no time to measure.
    #[error("jitter can only be measured on the running host, not on {root}; leave out --root")]
    NotLive {
        /// What was named.
        root: String,
    },
    /// The set of CPUs is empty.
    #[error("no CPU to measure; name some with a list such as 1-7,9-15")]
    NoCpus,
    /// The list of CPUs can't be read.
    #[error("\"{text}\" is no list of CPUs: {source}")]
    List {
        /// What the user wrote.
        text: String,
        /// What is wrong with it.
        source: ListError,
    },
    /// CPUs are named twice.
    #[error("{cpus:#}: named more than once; name each CPU once")]
    Repeated {
        /// Those CPUs.
        cpus: CpuSet,
    },
    /// CPUs are not online.
    #[error("{cpus:#}: not online (online: {online}); bring them online or leave them out")]
    Offline {
        /// Those of the CPUs asked for.
        cpus: CpuSet,
        /// The CPUs that are online.
        online: CpuSet,
    },
    /// The cpuset of this process does not hold the CPUs.
    #[error(
        "{cpus:#}: outside of this process's cpuset; leave them out, or start it from a cgroup whose \
         cpuset.cpus holds them"
    )]
    NotAllowed {
        /// Those of the CPUs asked for.
        cpus: CpuSet,
    },
    /// No time to measure.
    #[error("the duration is zero; give one such as 10s")]
    ZeroDuration,
    /// Longer than [`DURATION_MAX`].
    #[error("a run of {duration:?} is too long; {} days at most", DURATION_MAX.as_secs() / 86_400)]
    TooLong {
        /// What was asked.
        duration: Duration,
    },
    /// Each turn of the loop would be an interruption.
    #[error(
        "the threshold is zero, so that each turn of the loop would count; give one such as 100ns, or none"
    )]
    ZeroThreshold,
    /// No interruption that long fits into the run.
    #[error(
        "the threshold of {:?} is not below the duration of {duration:?}; lower it or run longer",
        Duration::from_nanos(*threshold_ns)
    )]
    ThresholdNotBelowDuration {
        /// The threshold.
        threshold_ns: u64,
        /// The duration.
        duration: Duration,
    },
    /// The counter can't be used.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The CPUs that may be used can't be told.
    #[error(transparent)]
    Affinity(#[from] AffinityError),
    /// A thread can't be started.
    #[error(
        "cannot start the sampler of CPU {cpu}: {source}; measure fewer CPUs or raise the limit on threads"
    )]
    Thread {
        /// Its CPU.
        cpu: CpuId,
        /// What the system said.
        source: io::Error,
    },
    /// A sampler can't be put on its CPU.
    #[error("the sampler of CPU {cpu} can't run there: {source}")]
    Pin {
        /// Its CPU.
        cpu: CpuId,
        /// Why.
        source: AffinityError,
    },
    /// A sampler ended by a defect of lowlat.
    #[error("the sampler of CPU {cpu} died before it began; this is a defect of lowlat, please report it")]
    Died {
        /// Its CPU.
        cpu: CpuId,
    },
    /// A real-time priority that does not exist.
    #[error("no real-time priority {priority}; give one from 1 to 99, such as 10")]
    Priority {
        /// What was asked.
        priority: u8,
    },
    /// Real-time samplers would leave no CPU for anything else.
    #[error(
        "real-time samplers on {cpus:#} would leave no CPU for lowlat, which may run on {allowed:#}, and could lock \
         up the host; leave at least one of these CPUs out, or measure without real-time priority"
    )]
    RealTimeEverywhere {
        /// The CPUs to measure.
        cpus: CpuSet,
        /// Those on which lowlat's other threads may run.
        allowed: CpuSet,
    },
    /// The limit on real-time threads is below what the run needs.
    #[error(
        "the limit on real-time CPU time ends real-time threads after {present_us} us without sleep, and the run \
         needs {wanted_us} us; raise it (ulimit -R) or measure without real-time priority"
    )]
    RealTimeLimit {
        /// What is allowed.
        present_us: u64,
        /// What is needed.
        wanted_us: u64,
    },
    /// A sampler can't get its real-time priority.
    #[error(
        "the sampler of CPU {cpu} can't have {real_time}: {source}; run as root or raise the limit (ulimit -r), in a \
         control group that has real-time runtime, or measure without real-time priority"
    )]
    RealTime {
        /// Its CPU.
        cpu: CpuId,
        /// The priority.
        real_time: RealTime,
        /// What the kernel said.
        source: io::Error,
    },
    /// Raw files can't be written.
    #[error(transparent)]
    Raw(#[from] RawError),
    /// The collector can't be started.
    #[error("cannot start the thread that collects: {source}; raise the limit on threads")]
    Collector {
        /// What the system said.
        source: io::Error,
    },
}
