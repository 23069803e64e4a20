//! Workloads of other programs.

pub mod nginx;
pub mod start;
pub mod stress_ng;
pub mod unixbench;

use super::{WorkloadError, team::Outcome};
use lowlat_host::CpuSet;
use lowlat_host_run::{Root, programs::find};
use lowlat_workload::{Policy, programs::Figures};

/// Conditions under which a program runs.
#[derive(Debug, Clone)]
pub struct Task {
    pub copies: usize,
    /// CPUs that it may use; `None` if the kernel chooses.
    pub cpus: Option<CpuSet>,
    pub policy: Policy,
    /// Duration of the run, in whole seconds.
    pub seconds: u32,
}

impl Task {
    /// The result of a program that ran for the duration.
    fn outcome(&self, figures: Figures) -> Outcome {
        Outcome { figures, elapsed_ns: u64::from(self.seconds) * 1_000_000_000 }
    }
}

/// Path of an installed program.
///
/// # Errors
/// A sentence if it is missing, with the package that contains it.
pub fn installed(name: &str, package: &str) -> Result<String, String> {
    // Servers' programs are in sbin, which users' PATH may lack.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
    find(&Root::live(), name, &path).ok_or_else(|| format!("{name} is not installed ({package})"))
}

/// Path of a program that was installed when the run began.
fn path(name: &str) -> Result<String, WorkloadError> {
    installed(name, "removed").map_err(WorkloadError)
}
