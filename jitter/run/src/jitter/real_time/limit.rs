//! Limits the time that a real-time thread may run without sleeping.

use super::super::error::JitterError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::time::Duration;

/// Allowance beyond the duration of the run: calibration, start and end.
const GRACE: Duration = Duration::from_secs(30);

/// Sets `RLIMIT_RTTIME` to slightly more than the run needs, while this lives: if a sampler continues as a
/// real-time thread after that, the kernel ends the process by SIGXCPU.
///
/// Only the soft limit is set: the hard limit, which kills, could not be raised again without
/// `CAP_SYS_RESOURCE`. The kernel counts by its timer tick, so on CPUs without one (`nohz_full`) the time is
/// longer. The limit is per process, not per thread.
#[derive(Debug)]
pub struct TimeLimit {
    was: Rlimit,
}

impl TimeLimit {
    /// Sets it.
    ///
    /// # Errors
    /// [`JitterError::RealTimeLimit`] if the present limit would end the run too early.
    pub fn set(duration: Duration) -> Result<Self, JitterError> {
        let was = getrlimit(Resource::Rttime);
        let limit_us = limit_us(duration);
        check(&was, limit_us)?;
        // A soft limit at or below the hard one is always permitted. If it fails anyway, the run continues without this
        // guard; the kernel's throttling and the remaining CPU still guard the host.
        let _ = setrlimit(Resource::Rttime, Rlimit { current: Some(limit_us), maximum: was.maximum });
        Ok(Self { was })
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        // Up to the hard limit this is always permitted.
        let _ = setrlimit(Resource::Rttime, self.was);
    }
}

fn limit_us(duration: Duration) -> u64 {
    u64::try_from((duration + GRACE).as_micros()).unwrap_or(u64::MAX - 1)
}

fn check(was: &Rlimit, limit_us: u64) -> Result<(), JitterError> {
    match [was.current, was.maximum].into_iter().flatten().min() {
        Some(present_us) if present_us < limit_us => {
            Err(JitterError::RealTimeLimit { present_us, wanted_us: limit_us })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_would_end_the_run_is_refused() {
        let limit = |current, maximum| Rlimit { current, maximum };
        let wanted_us = limit_us(Duration::from_secs(10));
        assert_eq!(wanted_us, 40_000_000);
        assert!(check(&limit(None, None), wanted_us).is_ok());
        assert!(check(&limit(Some(40_000_000), None), wanted_us).is_ok());
        for short in [limit(Some(200_000), None), limit(Some(200_000), Some(200_000))] {
            let error = check(&short, wanted_us).unwrap_err().to_string();
            assert!(error.contains("ends real-time threads after 200000 us") && error.contains("40000000"));
        }
        assert!(limit_us(Duration::from_secs(u64::MAX / 2)) < u64::MAX, "that number means no limit");
    }
}
