//! Options of a run, and whether it is possible.

use super::{error::JitterError, real_time::RealTime};
use lowlat_host::CpuSet;
use lowlat_host_run::Root;
use lowlat_host_run::affinity::{self, AffinityError};
use std::time::Duration;

/// Longest duration of a run: 366 days.
pub const DURATION_MAX: Duration = Duration::from_secs(366 * 86_400);
/// Maximum number of worst, and of first, interruptions kept per CPU.
pub const KEPT_MAX: usize = 65_536;

const ONLINE: &str = "/sys/devices/system/cpu/online";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitterOptions {
    /// The CPUs to measure, one sampler on each.
    pub cpus: CpuSet,
    pub duration: Duration,
    /// The shortest gap that counts as an interruption, in nanoseconds; `None` chooses one by the calibration.
    pub threshold_ns: Option<u64>,
    /// Number of longest interruptions kept per CPU; [`KEPT_MAX`] at most.
    pub worst_count: usize,
    /// Number of first interruptions kept per CPU; [`KEPT_MAX`] at most.
    pub first_count: usize,
    /// Measure wake-ups by a timer that expires this often; `None` measures what interrupts a spinning thread.
    pub wake_every: Option<Duration>,
    /// End the run at the first interruption of at least this length, in nanoseconds; `None` never does.
    pub stop_on_ns: Option<u64>,
    /// Real-time priority of the samplers; `None` leaves them ordinary threads.
    pub real_time: Option<RealTime>,
}

impl JitterOptions {
    /// A run on these CPUs with default options.
    pub fn new(cpus: CpuSet, duration: Duration) -> Self {
        Self {
            cpus,
            duration,
            threshold_ns: None,
            worst_count: 64,
            first_count: 64,
            wake_every: None,
            stop_on_ns: None,
            real_time: None,
        }
    }

    /// Parses a list of CPUs as typed, without duplicates: two samplers cannot share a CPU, and a repeated CPU
    /// is probably a mistake.
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

    /// Checks whether the run is possible on this host. The run itself checks again; call this before anything
    /// slow, such as waiting for quiet.
    ///
    /// # Errors
    /// [`JitterError`] with the reason.
    pub fn check(&self, root: &Root) -> Result<(), JitterError> {
        if !root.is_live() {
            return Err(JitterError::NotLive { root: root.label().to_owned() });
        }
        self.check_figures()?;
        self.check_cpus(root.read_cpu_list(ONLINE).into_known(), || affinity::settable(&self.cpus))?;
        self.real_time.map_or(Ok(()), |real_time| real_time.check(&self.cpus, &affinity::current()?))
    }

    /// Checks whether the CPUs can be measured, given the online CPUs and those of ours to which a thread can
    /// be pinned.
    fn check_cpus(
        &self,
        online: Option<CpuSet>,
        settable: impl FnOnce() -> Result<CpuSet, AffinityError>,
    ) -> Result<(), JitterError> {
        if let Some(online) = online.filter(|online| !self.cpus.is_subset(online)) {
            return Err(JitterError::Offline { cpus: self.cpus.difference(&online), online });
        }
        let settable = settable()?;
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
            Some(threshold_ns) if self.stop_on_ns.is_some_and(|stop_on_ns| stop_on_ns < threshold_ns) => {
                Err(JitterError::StopBelowThreshold(Duration::from_nanos(threshold_ns)))
            }
            Some(threshold_ns) if Duration::from_nanos(threshold_ns) >= self.duration => {
                Err(JitterError::ThresholdNotBelowDuration { threshold_ns, duration: self.duration })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::RealTimePolicy;

    fn options() -> JitterOptions {
        JitterOptions::new(CpuSet::of(0), Duration::from_secs(1))
    }

    fn refused(options: &JitterOptions) -> String {
        options.check(&Root::live()).unwrap_err().to_string()
    }

    #[test]
    fn impossible_options_are_refused() {
        assert!(
            refused(&JitterOptions { cpus: CpuSet::new(), ..options() }).starts_with("no CPU to measure")
        );
        assert!(
            refused(&JitterOptions { duration: Duration::ZERO, ..options() }).contains("duration is zero")
        );
        assert!(refused(&JitterOptions { duration: Duration::MAX, ..options() }).contains("366 days"));
        assert!(refused(&JitterOptions { threshold_ns: Some(0), ..options() }).contains("threshold is zero"));
        let below = JitterOptions { threshold_ns: Some(5_000), stop_on_ns: Some(4_999), ..options() };
        assert!(refused(&below).starts_with("cannot stop on interruptions below the threshold of 5µs"));
        let whole = JitterOptions { threshold_ns: Some(1_000_000_000), ..options() };
        assert!(refused(&whole).contains("threshold of 1s is not below the duration of 1s"));
        assert!(matches!(options().check_figures(), Ok(())));
    }

    #[test]
    fn cpus_that_cannot_be_measured_are_named() {
        let mut cpus = CpuSet::of(60_000);
        cpus.insert(0);
        let error = refused(&JitterOptions { cpus, ..options() });
        assert!(error.starts_with("cannot measure CPU 60000: not online"), "{error}");
        let root = Root::in_memory("some.tar", []);
        assert!(matches!(options().check(&root), Err(JitterError::NotLive { .. })));
    }

    #[test]
    fn cpus_outside_the_cpuset_are_named() {
        let set = |text: &str| CpuSet::parse_list(text).unwrap();
        let options = JitterOptions { cpus: set("2-5"), ..options() };
        let check = |online: Option<&str>, settable: &str| {
            options.check_cpus(online.map(set), || Ok(set(settable))).map_err(|error| error.to_string())
        };
        assert_eq!((check(Some("0-7"), "2-5"), check(None, "2-5")), (Ok(()), Ok(())));
        let error = check(Some("0-7"), "2-3").unwrap_err();
        assert!(
            error.starts_with(
                "cannot measure CPUs 4-5: outside of this process's cpuset\nhint: leave them out"
            ),
            "{error}"
        );
        let error = check(Some("0-3"), "2-3").unwrap_err();
        assert_eq!(
            error,
            "cannot measure CPUs 4-5: not online (online: 0-3)\nhint: bring them online or leave them out",
            "an offline CPU is outside every cpuset, too"
        );
    }

    #[test]
    fn real_time_priority_is_checked_before_anything_runs() {
        let real_time = |priority| JitterOptions {
            real_time: Some(RealTime { policy: RealTimePolicy::Fifo, priority }),
            ..options()
        };
        assert!(refused(&real_time(0)).starts_with("invalid real-time priority 0"));
        let everywhere = JitterOptions { cpus: affinity::current().unwrap(), ..real_time(10) };
        assert!(refused(&everywhere).contains("would leave no CPU for lowlat"));
    }

    #[test]
    fn cpus_are_named_once() {
        let cpus =
            |text| JitterOptions::parse_cpus(text).map(|cpus| cpus.to_list()).map_err(|e| e.to_string());
        assert_eq!(cpus("1-3,8").unwrap(), "1-3,8");
        assert_eq!(
            cpus("1-3,2,3-4").unwrap_err(),
            "cannot measure CPUs 2-3: named more than once\nhint: name each CPU once"
        );
        assert!(cpus("1-").unwrap_err().starts_with("cannot parse \"1-\" as a list of CPUs: "));
    }
}
