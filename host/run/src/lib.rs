//! All of lowlat's access to the host. Readers turn files, netlink and D-Bus into the facts of
//! [`lowlat_host::HostSnapshot`]; they do not judge.

pub mod bpf;
pub mod capture;
pub mod control_group;
pub mod counter_table;
mod dbus;
pub mod ethtool;
pub mod evidence;
pub mod huge_pages;
pub mod idle_hold;
pub mod launch;
pub mod msr;
mod netlink;
pub mod open_files;
pub mod output;
pub mod proc_stat;
pub mod programs;
pub mod root;
pub mod route;
pub mod scheduling;
pub mod smbios;
pub mod snapshot;
pub mod systemd;
pub mod task_stat;
#[cfg(test)]
mod testing;
pub mod tracefs;
pub mod tuned;
pub mod undo;
pub mod watch;

pub use root::{Ownership, PolledFile, Root, RootError};
