//! What the user asks of a run, and what is wrong with it.

use crate::{
    affinity::{self, AffinityError},
    clock::ClockError,
};
use lowlat_model::{CpuId, CpuSet, ListError};
use lowlat_sys::Root;
use std::{io, time::Duration};
use thiserror::Error;

/// The longest run.
pub const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);
/// The most of the worst, and of the first, interruptions that are kept per CPU.
pub const KEPT_MAX: usize = 65_536;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// A run that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitterOptions {
    /// The CPUs to measure, one sampler on each.
    pub cpus: CpuSet,
    /// How long.
    pub duration: Duration,
    /// The shortest gap that counts as an interruption, in nanoseconds; `None` chooses one by the calibration.
    pub threshold_ns: Option<u64>,
    /// How many of the longest interruptions are kept per CPU; [`KEPT_MAX`] at most.
    pub worst_count: usize,
    /// How many of the first interruptions are kept per CPU; [`KEPT_MAX`] at most.
    pub first_count: usize,
}

impl JitterOptions {
    /// A run on these CPUs with all else as it is by default.
    pub fn new(cpus: CpuSet, duration: Duration) -> Self {
        Self { cpus, duration, threshold_ns: None, worst_count: 64, first_count: 64 }
    }

    /// CPUs from a list as the user wrote it, none of them twice: two samplers can't share a CPU, and a repeated
    /// one is most likely a slip.
    ///
    /// # Errors
    /// [`JitterError::List`] or [`JitterError::Repeated`].
    pub fn parse_cpus(text: &str) -> Result<CpuSet, JitterError> {
        let list_error = |source| JitterError::List { text: text.to_owned(), source };
        let cpus = CpuSet::parse_list(text).map_err(list_error)?;
        let (mut seen, mut repeated) = (CpuSet::new(), CpuSet::new());
        for part in text.split(',') {
            let part = CpuSet::parse_list(part).map_err(list_error)?;
            repeated.extend(part.intersection(&seen).iter());
            seen.extend(part.iter());
        }
        if repeated.is_empty() { Ok(cpus) } else { Err(JitterError::Repeated { cpus: repeated }) }
    }

    /// Whether the run can be made on this host.
    pub(super) fn check(&self, root: &Root) -> Result<(), JitterError> {
        if !root.is_live() {
            return Err(JitterError::NotLive { root: root.label().to_owned() });
        }
        self.check_figures()?;
        let online = root.read_cpu_list(ONLINE).into_known();
        if let Some(online) = online.filter(|online| !self.cpus.is_subset(online)) {
            return Err(JitterError::Offline { cpus: self.cpus.difference(&online), online });
        }
        let settable = affinity::settable(&self.cpus)?;
        if settable != self.cpus {
            return Err(JitterError::NotAllowed { cpus: self.cpus.difference(&settable) });
        }
        Ok(())
    }

    fn check_figures(&self) -> Result<(), JitterError> {
        if self.cpus.is_empty() {
            return Err(JitterError::NoCpus);
        }
        if self.duration.is_zero() {
            return Err(JitterError::ZeroDuration);
        }
        if self.duration > DURATION_MAX {
            return Err(JitterError::TooLong { duration: self.duration });
        }
        match self.threshold_ns {
            Some(0) => Err(JitterError::ZeroThreshold),
            Some(threshold_ns) if Duration::from_nanos(threshold_ns) >= self.duration => {
                Err(JitterError::ThresholdNotBelowDuration { threshold_ns, duration: self.duration })
            }
            _ => Ok(()),
        }
    }
}

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
        "the threshold of {threshold_ns} ns is not below the duration of {duration:?}; lower it or run longer"
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> JitterOptions {
        JitterOptions::new(CpuSet::of(0), Duration::from_secs(1))
    }

    fn refused(options: &JitterOptions) -> String {
        options.check(&Root::live()).unwrap_err().to_string()
    }

    #[test]
    fn figures_that_make_no_run_are_refused() {
        assert!(
            refused(&JitterOptions { cpus: CpuSet::new(), ..options() }).starts_with("no CPU to measure")
        );
        assert!(
            refused(&JitterOptions { duration: Duration::ZERO, ..options() }).contains("duration is zero")
        );
        assert!(refused(&JitterOptions { duration: Duration::MAX, ..options() }).contains("366 days"));
        assert!(refused(&JitterOptions { threshold_ns: Some(0), ..options() }).contains("threshold is zero"));
        let whole = JitterOptions { threshold_ns: Some(1_000_000_000), ..options() };
        assert!(refused(&whole).contains("1000000000 ns is not below the duration of 1s"));
        assert!(matches!(options().check_figures(), Ok(())));
    }

    #[test]
    fn cpus_that_cannot_be_measured_are_named() {
        let mut cpus = CpuSet::of(60_000);
        cpus.insert(0);
        let error = refused(&JitterOptions { cpus, ..options() });
        assert!(error.starts_with("CPU 60000: not online"), "{error}");
        let root = Root::in_memory("some.tar", []);
        assert!(matches!(options().check(&root), Err(JitterError::NotLive { .. })));
    }

    #[test]
    fn cpus_are_named_once() {
        let cpus =
            |text| JitterOptions::parse_cpus(text).map(|cpus| cpus.to_list()).map_err(|e| e.to_string());
        assert_eq!(cpus("1-3,8").unwrap(), "1-3,8");
        assert_eq!(cpus("1-3,2,3-4").unwrap_err(), "CPUs 2-3: named more than once; name each CPU once");
        assert!(cpus("1-").unwrap_err().starts_with("\"1-\" is no list of CPUs: "));
    }
}
