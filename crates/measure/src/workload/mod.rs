//! Workloads: runs processes and programs under different placements, policies and idle settings.

mod error;
mod fork;
mod job;
mod pace;
mod programs;
mod removal;
mod run;
mod shared;
mod team;
mod work;

pub use error::WorkloadError;
pub use job::{Job, Scale};
pub use pace::Pace;
pub use programs::Program;
pub use run::{Order, Site, run};

use lowlat_workload::Cell;

/// Something that can be measured.
pub struct Workload {
    /// Its word in arguments.
    pub name: &'static str,
    /// What one copy does.
    pub about: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// What runs.
    pub kind: Kind,
}

/// What runs.
pub enum Kind {
    /// Processes that lowlat forks.
    Processes {
        /// Processes of one copy.
        per_copy: usize,
        /// Makes what they work on.
        make: fn(Scale<'_>) -> Result<Box<dyn Job>, WorkloadError>,
    },
    /// Another program.
    Program(&'static dyn Program),
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
    /// Why it cannot run on this host.
    pub fn why_not(&self) -> Option<String> {
        match self.kind {
            Kind::Processes { .. } => None,
            Kind::Program(program) => program.why_not(),
        }
    }

    /// Whether it is another program.
    pub fn is_program(&self) -> bool {
        matches!(self.kind, Kind::Program(_))
    }

    /// Processes of so many copies; at least two for a program, which has several.
    pub fn processes(&self, copies: u32) -> usize {
        let copies = usize::try_from(copies).unwrap_or(usize::MAX);
        match self.kind {
            Kind::Processes { per_copy, .. } => copies.saturating_mul(per_copy),
            Kind::Program(_) => copies.max(2),
        }
    }

    fn cell(&self, copies: u32, setting: lowlat_workload::Setting) -> Cell {
        Cell { workload: self.name.to_owned(), unit: self.unit.to_owned(), copies, setting, cpus: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
