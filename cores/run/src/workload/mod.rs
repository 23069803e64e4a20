//! Workloads: runs processes and programs under different placements, policies and idle settings.

mod fork;
mod pace;
mod programs;
mod removal;
mod run;
mod shared;
mod team;
mod work;

pub use pace::Pace;
pub use run::{Order, WorkloadSite, run};

use lowlat_host::topology::Topology;
use lowlat_workload::Cell;
use programs::Task;
use std::{io, sync::atomic::AtomicBool};
use team::Outcome;
use thiserror::Error;

/// Something that can be measured.
pub struct Workload {
    /// Name on the command line.
    pub name: &'static str,
    /// Description of one copy's work.
    pub about: &'static str,
    /// Unit of the counted operations.
    pub unit: &'static str,
    pub kind: Kind,
}

pub enum Kind {
    /// Processes that lowlat itself forks.
    /// - `make`: makes the objects and memory that they work on.
    Processes { per_copy: usize, make: fn(Scale<'_>) -> Result<WorkloadJob, WorkloadError> },
    /// Another program, such as nginx.
    Program {
        /// Its programs, with the packages that contain them.
        needs: &'static [(&'static str, &'static str)],
        /// Runs it once. Returns `None` if `stop` was raised. If it fails, nothing of it is left.
        run: fn(&Task, &AtomicBool) -> Result<Option<Outcome>, WorkloadError>,
    },
}

/// Work of one run with its kernel objects and memory: the work of a process of a copy, which counts operations with
/// [`Pace::count`] if the flag says so, else serves with [`Pace::serve`]. Processes that serve continue until they are
/// killed, or end as soon as their partner has ended. The system's error ends the run.
///
/// Processes are forked from a program with several threads, so a job must neither allocate nor lock: it calls the system
/// and works on memory that exists or that it maps.
pub type WorkloadJob = Box<dyn Fn(usize, bool, &mut Pace<'_>) -> io::Result<()>>;

/// Copies and host that a job is made for.
#[derive(Debug, Clone, Copy)]
pub struct Scale<'a> {
    pub copies: usize,
    pub topology: &'a Topology,
}

/// Every workload. A new one adds its file and its line here.
pub const WORKLOADS: &[Workload] = &[
    work::sem_posix::WORKLOAD,
    work::sem_posix::PAUSING,
    work::sem_sysv::WORKLOAD,
    work::msg_posix::WORKLOAD,
    work::msg_sysv::WORKLOAD,
    work::pipe::WORKLOAD,
    work::eventfd::WORKLOAD,
    work::futex::WORKLOAD,
    work::fork_exec::WORKLOAD,
    work::compute::INTEGER_BASE,
    work::compute::INTEGER_PEAK,
    work::compute::FLOATING_BASE,
    work::compute::FLOATING_PEAK,
    work::cache::BASE,
    work::cache::PEAK,
    programs::nginx::HTTPS,
    programs::stress_ng::SEM,
    programs::stress_ng::SEM_SYSV,
    programs::stress_ng::MSG,
    programs::unixbench::CONTEXT1,
];

/// Returns the workload with this name.
pub fn find(name: &str) -> Option<&'static Workload> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}

impl Workload {
    /// Reason why it cannot run on this host; `None` if it can.
    pub fn why_not(&self) -> Option<String> {
        let Kind::Program { needs, .. } = self.kind else { return None };
        needs.iter().find_map(|(name, package)| programs::installed(name, package).err())
    }

    /// True if it runs another program.
    pub fn is_program(&self) -> bool {
        matches!(self.kind, Kind::Program { .. })
    }

    /// Number of processes of this many copies; at least two for a program, which has several.
    pub fn processes(&self, copies: u32) -> usize {
        let copies = usize::try_from(copies).unwrap_or(usize::MAX);
        match self.kind {
            Kind::Processes { per_copy, .. } => copies.saturating_mul(per_copy),
            Kind::Program { .. } => copies.max(2),
        }
    }

    fn cell(&self, copies: u32, setting: lowlat_workload::Setting) -> Cell {
        Cell { workload: self.name.to_owned(), unit: self.unit.to_owned(), copies, setting, cpus: Vec::new() }
    }
}

#[cfg(test)]
mod tests;

/// Reason why a run has no figures, as a sentence without its full stop.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct WorkloadError(pub String);

impl WorkloadError {
    /// The system's error of a step such as "start a process".
    pub fn cannot(doing: &str) -> impl Fn(io::Error) -> Self {
        move |source| Self(format!("cannot {doing}: {source}"))
    }
}
