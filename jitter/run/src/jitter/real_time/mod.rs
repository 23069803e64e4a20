//! Real-time priority of the samplers, and guards against locking up the host.

mod throttle;

use super::error::JitterError;
use lowlat_host::CpuSet;
use lowlat_host_run::Root;
use lowlat_jitter::Warning;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{fmt, io, time::Duration};

/// Real-time priority of the samplers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealTime {
    pub policy: RealTimePolicy,
    /// 1 (lowest) to 99.
    pub priority: u8,
}

/// Real-time policies of POSIX. With one sampler per CPU they differ only if another thread of the same
/// priority wants the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RealTimePolicy {
    /// `SCHED_FIFO`: runs until a thread of higher priority is ready.
    Fifo,
    /// `SCHED_RR`: takes turns with threads of the same priority.
    RoundRobin,
}

impl fmt::Display for RealTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = match self.policy {
            RealTimePolicy::Fifo => "SCHED_FIFO",
            RealTimePolicy::RoundRobin => "SCHED_RR",
        };
        write!(f, "{policy} {}", self.priority)
    }
}

impl RealTime {
    /// Checks that the run is possible with it: the priority exists, and a CPU is left for lowlat and the host.
    /// `allowed` are the CPUs on which lowlat's other threads may run.
    ///
    /// # Errors
    /// [`JitterError::Priority`] or [`JitterError::RealTimeEverywhere`].
    pub(super) fn check(self, measured: &CpuSet, allowed: &CpuSet) -> Result<(), JitterError> {
        if !(1..=99).contains(&self.priority) {
            return Err(JitterError::Priority { priority: self.priority });
        }
        // The kernel allows only online CPUs, so a remaining CPU is online.
        if allowed.is_subset(measured) {
            return Err(JitterError::RealTimeEverywhere { cpus: measured.clone(), allowed: allowed.clone() });
        }
        Ok(())
    }

    /// Applies it to the calling thread. Threads that it starts do not inherit it.
    ///
    /// # Errors
    /// The system's error; not permitted without `CAP_SYS_NICE` or a sufficient `RLIMIT_RTPRIO`.
    pub(super) fn take(self) -> io::Result<()> {
        let policy = match self.policy {
            RealTimePolicy::Fifo => libc::SCHED_FIFO,
            RealTimePolicy::RoundRobin => libc::SCHED_RR,
        };
        set_scheduler(policy, self.priority.into())
    }

    /// Warnings about the effects of this priority on the figures of a run.
    pub(super) fn warnings(self, root: &Root, measured: &CpuSet) -> Vec<Warning> {
        let mut warnings = vec![Warning::RealTime { policy: self.to_string() }];
        warnings.extend(throttle::warning(root, measured));
        warnings
    }
}

/// Restores ordinary scheduling of the calling thread.
pub(super) fn give_up() {
    // Lowering is always permitted; the flag stays, because clearing it is not.
    let _ = set_scheduler(libc::SCHED_OTHER, 0);
}

fn set_scheduler(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let this_thread: libc::pid_t = 0;
    // The system call itself: musl's wrapper only returns ENOSYS, and its `sched_param` has other fields.
    // SAFETY: the kernel's `struct sched_param` is one int, the priority, which is alive through the call and only read.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setscheduler,
            this_thread,
            policy | libc::SCHED_RESET_ON_FORK,
            &raw const priority,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

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

    fn fifo(priority: u8) -> RealTime {
        RealTime { policy: RealTimePolicy::Fifo, priority }
    }

    #[test]
    fn policies_have_the_kernels_names() {
        assert_eq!(fifo(10).to_string(), "SCHED_FIFO 10");
        assert_eq!(RealTime { policy: RealTimePolicy::RoundRobin, priority: 99 }.to_string(), "SCHED_RR 99");
    }

    #[test]
    fn priorities_that_do_not_exist_are_refused() {
        let (measured, allowed) = (CpuSet::of(1), CpuSet::first(2));
        for priority in [0, 100, 255] {
            let error = fifo(priority).check(&measured, &allowed).unwrap_err().to_string();
            assert_eq!(
                error,
                format!("invalid real-time priority {priority}\nhint: give one from 1 to 99, such as 10")
            );
        }
        assert!(fifo(1).check(&measured, &allowed).is_ok() && fifo(99).check(&measured, &allowed).is_ok());
    }

    #[test]
    fn the_last_cpu_is_never_taken() {
        let check = |measured: &str, allowed: &str| {
            let set = |text| CpuSet::parse_list(text).unwrap();
            fifo(10).check(&set(measured), &set(allowed)).map_err(|error| error.to_string())
        };
        assert_eq!(check("1-3", "0-3"), Ok(()));
        assert_eq!(check("2-3", "0"), Ok(()));
        let error = check("0-3", "0-3").unwrap_err();
        assert!(error.starts_with("real-time samplers on CPUs 0-3 would leave no CPU for lowlat"), "{error}");
        assert!(check("0-3", "1").is_err());
    }

    #[test]
    fn a_thread_gets_and_drops_the_priority() {
        let taken: io::Result<(String, String)> = std::thread::spawn(|| {
            fifo(1).take()?;
            let policy = policy_of_this_thread;
            let during = policy();
            give_up();
            Ok((during, policy()))
        })
        .join()
        .unwrap();
        match taken {
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                eprintln!("skipped: SCHED_FIFO is not permitted");
            }
            Ok(policies) => assert_eq!(policies, ("1".to_owned(), "0".to_owned())),
        }
    }

    /// The policy from the 41st field of /proc/thread-self/stat: 0 other, 1 FIFO, 2 RR.
    fn policy_of_this_thread() -> String {
        let stat = Root::live().read("/proc/thread-self/stat").into_known().unwrap();
        let after_name = stat.rsplit(") ").next().unwrap();
        after_name.split_ascii_whitespace().nth(41 - 3).unwrap().to_owned()
    }

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
