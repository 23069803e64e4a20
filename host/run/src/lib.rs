//! All of lowlat's access to the host. Readers turn files, netlink and D-Bus into the facts of
//! [`lowlat_host::HostSnapshot`]; they do not judge.

pub mod affinity;
pub mod capability;
pub mod capture;
pub mod control_group;
pub mod counter_table;
mod dbus;
pub mod environment;
pub mod idle_hold;
pub mod msr;
pub mod netlink;
pub mod open_files;
pub mod output;
pub mod pause;
pub mod proc_stat;
pub mod programs;
pub mod root;
pub mod scheduling;
pub mod smbios;
pub mod snapshot;
pub mod systemd;
pub mod task_stat;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tuned;

pub use root::{Ownership, PolledFile, Root, RootError};

/// Changes network interfaces as `ethtool` does.
pub mod ethtool {
    pub use crate::snapshot::ethtool::{EthtoolError, Setting, Value};
}
