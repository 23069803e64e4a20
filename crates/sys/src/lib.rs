//! All access of lowlat to the host. Readers turn files, netlink and D-Bus into the facts of
//! [`lowlat_model::HostSnapshot`]; they do not judge.

pub mod capture;
pub mod proc_stat;
pub mod root;
pub mod smbios;
pub mod snapshot;
#[cfg(test)]
mod testing;
pub mod tracefs;

pub use root::{Root, RootError};
