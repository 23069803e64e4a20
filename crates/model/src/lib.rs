//! Facts, judgement and plans of lowlat: pure, no I/O, no clock.
#![forbid(unsafe_code)]

mod allocation;
pub mod audit;
pub mod bios;
pub mod catalogue;
pub mod cmdline;
mod cpuset;
pub mod diff;
pub mod histogram;
pub mod hlog;
mod isolation;
pub mod jitter;
pub mod kernel_version;
pub mod pipeline;
pub mod printable;
mod reading;
pub mod result;
mod role;
pub mod snapshot;
pub mod statistics;
pub mod sysjitter;
mod ticks;
pub mod topology;
pub mod trace;
pub mod tune;

pub use allocation::Allocation;
pub use catalogue::Profile;
pub use cpuset::{CPU_ID_MAX, CpuId, CpuSet, ListError, MaskError};
pub use isolation::{IsolatedCpus, Isolation};
pub use reading::{Reading, Unparsable};
pub use role::{Role, RoleError, RoleFile};
pub use snapshot::HostSnapshot;
pub use ticks::{TickScale, ticks_between};
pub use topology::Topology;
