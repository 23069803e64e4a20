//! The facts about a host: its CPUs and topology, the facts read from it, the user's role for it, and the
//! CPUs chosen for that role. Also what every measurement needs: statistics, histograms, counter ticks.
//!
//! Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod allocation;
pub mod cmdline;
mod cpuset;
pub mod diff;
mod digest;
pub mod histogram;
mod isolation;
pub mod kernel_version;
pub mod memory;
mod profile;
mod reading;
pub mod resctrl;
mod role;
pub mod shell;
pub mod snapshot;
pub mod spelling;
pub mod statistics;
mod ticks;
pub mod topology;

pub use allocation::Allocation;
pub use cpuset::{CPU_ID_MAX, CpuId, CpuSet, ListError, MaskError};
pub use digest::digest;
pub use isolation::{
    BOOT_CPU, BOOT_CPU_ISOLATED, ISOLCPUS_FLAGS, ISOLCPUS_SKIPS_FLAGS_SINCE, IsolatedCpus, Isolation,
};
pub use lowlat_plain::{Labels, printable};
pub use profile::Profile;
pub use reading::{Count, Reading, Unparsable};
pub use role::{IsolateBy, Role, RoleError, RoleFile, RoleSource};
pub use snapshot::HostSnapshot;
pub use ticks::{TickScale, ticks_between};
pub use topology::Topology;
