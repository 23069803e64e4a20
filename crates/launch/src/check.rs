//! What stops a launch, and what only makes it slower.

use lowlat_host::{CpuId, CpuSet};
use std::fmt;
use thiserror::Error;

/// Reason not to start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// CPUs that do not run.
    #[error("cannot run on {cpus:#}: missing or offline\nhint: {online:#} are online")]
    Offline {
        /// The requested ones.
        cpus: CpuSet,
        /// Those that run.
        online: CpuSet,
    },
    /// CPUs outside the cpuset.
    #[error(
        "cannot run on {cpus:#}: outside the cpuset of this process, {allowed:#}\nhint: start lowlat in another control group, \
         for example with `systemd-run --scope`"
    )]
    Forbidden {
        /// The requested ones.
        cpus: CpuSet,
        /// Those of the cpuset.
        allowed: CpuSet,
    },
    /// No such interface.
    #[error("cannot choose CPUs near {name}: no such interface\nhint: this host has {known}")]
    NoInterface {
        /// The requested one.
        name: String,
        /// Names of all.
        known: String,
    },
    /// No CPU is left for the rule.
    #[error(
        "cannot choose CPUs near {name}: no CPU of NUMA node {node} is available\nhint: name CPUs with --cpus"
    )]
    NoCpuNear {
        /// The interface.
        name: String,
        /// Its node.
        node: u32,
    },
    /// Spinning threads or copies without a CPU each.
    #[error(
        "cannot run {count} {what} on {cpus:#}: each needs a CPU\nhint: add CPUs, or try --mode interrupt and measure"
    )]
    TooFewCpus {
        /// Busy threads or copies.
        count: u32,
        /// "spinning threads" or "spinning copies".
        what: &'static str,
        /// Their CPUs.
        cpus: CpuSet,
    },
    /// Two spinning threads on one core.
    #[error(
        "cannot run two spinning threads on {cpus:#}: they share a core\nhint: choose CPUs of different cores"
    )]
    OneCore {
        /// SMT siblings among the CPUs.
        cpus: CpuSet,
    },
    /// A node without memory.
    #[error("cannot take memory from NUMA node {node}: {why}\nhint: nodes with memory are {known}")]
    NoMemory {
        /// The requested node.
        node: u32,
        /// Missing, or without memory.
        why: &'static str,
        /// Nodes with memory.
        known: String,
    },
    /// No huge page is free.
    #[error("cannot use huge pages: none is free\nhint: reserve some with `sysctl vm.nr_hugepages=N`")]
    NoHugePages,
    /// The launcher or the library of the accelerator is missing.
    #[error("cannot accelerate with {accelerator}: {missing} is not installed\nhint: {hint}")]
    NotInstalled {
        /// "Onload".
        accelerator: &'static str,
        /// File that is missing.
        missing: String,
        /// What to do.
        hint: &'static str,
    },
}

/// Something that makes the command slower or its latency less certain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// CPUs on which the kernel runs other threads.
    NotIsolated(CpuSet),
    /// An interface near which no CPU is.
    NearNothing {
        /// The interface.
        name: String,
        /// "it has no device".
        why: String,
    },
    /// Interrupts on the CPUs.
    Interrupts {
        /// "47 eth0-rx-3".
        labels: Vec<String>,
        /// CPUs that handle them.
        cpus: CpuSet,
    },
    /// A core that other threads share.
    SharedCore {
        /// Chosen CPU.
        cpu: CpuId,
        /// Its sibling, which is not isolated.
        sibling: CpuId,
    },
    /// A core on which several copies run.
    CopiesShareCores(CpuSet),
    /// Memory of another node.
    RemoteMemory {
        /// Node of the memory.
        node: u32,
        /// CPUs on other nodes.
        cpus: CpuSet,
    },
    /// A real-time thread that spins where others must run.
    RealTimeSpin(CpuSet),
    /// A variable of the environment that replaces one of the accelerator's.
    Overridden {
        /// Name and value in the environment.
        variable: String,
        /// Value that the accelerator would set.
        instead_of: String,
    },
}

/// Most interrupts that a warning names.
const LABELS_MAX: usize = 4;

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotIsolated(cpus) => {
                write!(
                    f,
                    "not isolated: {cpus:#}. Other threads may run there; `lowlat tune plan` shows how to isolate CPUs"
                )
            }
            Self::NearNothing { name, why } => {
                write!(
                    f,
                    "no CPU is nearer to {name} than others: {why}. The CPUs were chosen as for compact"
                )
            }
            Self::Interrupts { labels, cpus } => {
                write!(
                    f,
                    "interrupts on {cpus:#}: {}",
                    labels.iter().take(LABELS_MAX).cloned().collect::<Vec<_>>().join(", ")
                )?;
                match labels.len().saturating_sub(LABELS_MAX) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::SharedCore { cpu, sibling } => {
                write!(
                    f,
                    "CPU {cpu} shares its core with CPU {sibling}, which is not isolated: work there slows it down"
                )
            }
            Self::CopiesShareCores(cpus) => {
                write!(
                    f,
                    "there are more copies than cores: two of them share the core of {cpus:#}, for example"
                )
            }
            Self::RemoteMemory { node, cpus } => {
                write!(f, "memory of NUMA node {node} is remote to {cpus:#}: each cache miss crosses nodes")
            }
            Self::RealTimeSpin(cpus) => write!(
                f,
                "real-time threads that spin on {cpus:#} starve the kernel's threads there: isolate the CPUs first"
            ),
            Self::Overridden { variable, instead_of } => {
                write!(f, "{variable} in the environment replaces {instead_of}")
            }
        }
    }
}
