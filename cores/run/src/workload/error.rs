//! Errors of workloads.

use lowlat_host::CpuId;
use std::io;
use thiserror::Error;

/// Error that leaves a run without figures.
#[derive(Debug, Error)]
pub enum WorkloadError {
    /// The kernel's objects or the memory of the workload cannot be made.
    #[error("cannot make {what}: {source}")]
    Prepare { what: &'static str, source: io::Error },
    /// A process cannot be started.
    #[error("cannot start a process: {0}")]
    Start(io::Error),
    /// A process cannot run on its CPU.
    #[error("cannot run on CPU {cpu}: {source}; it must be online and inside this process's cpuset")]
    Cpu { cpu: CpuId, source: io::Error },
    /// The kernel moved a process.
    #[error("a process was moved from CPU {from} to CPU {to}: CPU {from} went offline or left the cpuset")]
    Moved {
        /// CPU on which it was to run.
        from: CpuId,
        /// CPU on which it ended.
        to: CpuId,
    },
    /// The policy cannot be set.
    #[error("cannot set the scheduling policy: {0}; SCHED_FIFO takes root or CAP_SYS_NICE")]
    Policy(io::Error),
    #[error("a process failed: {0}")]
    Process(io::Error),
    #[error("a process ended unexpectedly")]
    Died,
    #[error("the processes did not end in time")]
    Late,
    /// Idle states cannot be switched off.
    #[error("cannot keep CPUs out of idle states through /dev/cpu_dma_latency: {0}")]
    Idle(io::Error),
    #[error("{0}")]
    Program(String),
}

impl WorkloadError {
    /// For objects that cannot be made.
    pub fn prepare(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Prepare { what, source }
    }
}
