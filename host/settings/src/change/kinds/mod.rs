//! The kinds of changes, one file each.

mod cache_group;
mod command_line;
mod file;
mod huge_pages;
mod idle_state;
mod irq_affinity;
pub mod nic;
mod service;
mod tasks;

use super::{Kind, Target};

impl Target {
    /// The kind of this target.
    pub fn kind(&self) -> Box<dyn Kind + '_> {
        match self {
            Self::CommandLine { tokens } => Box::new(command_line::CommandLineChange { tokens }),
            Self::Sysctl { key } => Box::new(file::Sysctl { key }),
            Self::File { path } => Box::new(file::File { path }),
            Self::IdleState { name, cpus } => Box::new(idle_state::IdleStateSwitch { name, cpus }),
            Self::HugePages { node, size_bytes } => {
                Box::new(huge_pages::HugePages { node: *node, size_bytes: *size_bytes })
            }
            Self::IrqAffinity { irq, actions } => Box::new(irq_affinity::IrqAffinity { irq: *irq, actions }),
            Self::DefaultIrqAffinity => Box::new(irq_affinity::DefaultIrqAffinity),
            Self::KernelThreadAffinity { comm, pid } => Box::new(tasks::ThreadAffinity { comm, pid: *pid }),
            Self::KernelThreadScheduling { comm, pid } => {
                Box::new(tasks::ThreadScheduling { comm, pid: *pid })
            }
            Self::UserProcesses => Box::new(tasks::UserProcessesKind),
            Self::WorkqueueCpus { name } => Box::new(tasks::WorkqueueKind { name: name.as_deref() }),
            Self::CacheGroup { group } => Box::new(cache_group::CacheGroup { group }),
            Self::CpusetPartition { slice } => Box::new(service::PartitionCpus { slice }),
            Self::Service { unit } => Box::new(service::Service { unit }),
            Self::TunedProfile => Box::new(service::TunedProfileKind),
            Self::FileKey { path, key } => Box::new(file::FileKey { path, key }),
            Self::OwnedFile { path } => Box::new(file::OwnedFile { path }),
            Self::Nic(target) => Box::new(target),
        }
    }
}
