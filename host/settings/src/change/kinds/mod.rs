//! The kinds of changes, one file each.

mod cache_group;
mod command_line;
mod cpuset_partition;
mod default_irq_affinity;
mod file;
mod file_key;
mod huge_pages;
mod idle_state;
mod irq_affinity;
pub mod nic;
mod owned_file;
mod service;
mod sysctl;
mod thread_affinity;
mod thread_scheduling;
mod tuned_profile;
mod user_processes;
mod workqueue;

use super::{Kind, Target};

impl Target {
    /// The kind of this target.
    pub fn kind(&self) -> Box<dyn Kind + '_> {
        match self {
            Self::CommandLine { tokens } => Box::new(command_line::CommandLineChange { tokens }),
            Self::Sysctl { key } => Box::new(sysctl::Sysctl { key }),
            Self::File { path } => Box::new(file::File { path }),
            Self::IdleState { name, cpus } => Box::new(idle_state::IdleStateSwitch { name, cpus }),
            Self::HugePages { node, size_bytes } => {
                Box::new(huge_pages::HugePages { node: *node, size_bytes: *size_bytes })
            }
            Self::IrqAffinity { irq, actions } => Box::new(irq_affinity::IrqAffinity { irq: *irq, actions }),
            Self::DefaultIrqAffinity => Box::new(default_irq_affinity::DefaultIrqAffinity),
            Self::KernelThreadAffinity { comm, pid } => {
                Box::new(thread_affinity::ThreadAffinity { comm, pid: *pid })
            }
            Self::KernelThreadScheduling { comm, pid } => {
                Box::new(thread_scheduling::ThreadScheduling { comm, pid: *pid })
            }
            Self::UserProcesses => Box::new(user_processes::UserProcessesKind),
            Self::WorkqueueCpus { name } => Box::new(workqueue::WorkqueueKind { name: name.as_deref() }),
            Self::CacheGroup { group } => Box::new(cache_group::CacheGroup { group }),
            Self::CpusetPartition { slice } => Box::new(cpuset_partition::PartitionCpus { slice }),
            Self::Service { unit } => Box::new(service::Service { unit }),
            Self::TunedProfile => Box::new(tuned_profile::TunedProfileKind),
            Self::FileKey { path, key } => Box::new(file_key::FileKey { path, key }),
            Self::OwnedFile { path } => Box::new(owned_file::OwnedFile { path }),
            Self::Nic(target) => Box::new(target),
        }
    }
}
