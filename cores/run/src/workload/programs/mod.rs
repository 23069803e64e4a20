//! Workloads of other programs.

pub mod nginx;
pub mod start;
pub mod stress_ng;
pub mod unixbench;

use super::{error::WorkloadError, team::Outcome};
use lowlat_host::CpuSet;
use lowlat_host_run::{Root, programs::find};
use lowlat_workload::Policy;
use std::sync::atomic::AtomicBool;

/// A workload of another program.
pub trait Program: Sync {
    /// Reason why it cannot run here; `None` if it can.
    fn why_not(&self) -> Option<String>;

    /// Runs it once. Returns `None` if `stop` was raised.
    ///
    /// # Errors
    /// [`WorkloadError`] if it fails; nothing of it is left then.
    fn run(&self, task: &Task, stop: &AtomicBool) -> Result<Option<Outcome>, WorkloadError>;
}

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

/// Path of an installed program.
///
/// # Errors
/// A sentence if it is missing, with the package that contains it.
pub fn installed(name: &str, package: &str) -> Result<String, String> {
    // Servers' programs are in sbin, which users' PATH may lack.
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
    find(&Root::live(), name, &path).ok_or_else(|| format!("{name} is not installed ({package})"))
}
