//! What the undo log cannot change as a file or a value of the kernel. One file per kind, one line in [`all`].
//!
//! | kind | name | value | outlives a boot |
//! |---|---|---|---|
//! | `service` | `chronyd.service` | `active, enabled` (as a plan has it) | yes, by its enablement |
//! | `kthread-affinity` | `78 kswapd0`: process id and name | CPU list | no |
//! | `kthread-scheduling` | `78 kswapd0` | `SCHED_FIFO 2` | no |
//! | `nic-channels` | `enp1s0 combined` | number | no |
//! | `nic-coalescing` | `enp1s0 rx-usecs` | number, `on`, `off` | no |
//! | `nic-feature` | `enp1s0 rx-lro` | `on`, `off` | no |
//! | `tuned-profile` | `tuned` | profile and mode: `virtual-guest auto` | yes |
//!
//! Each has a `spec` that names a target of its kind with the comparison that fits. All are the running host's own, so
//! they refuse a [`Writer`] to anything else.

pub mod kthread;
pub mod nic;
pub mod service;

use lowlat_sys::undo::{HostError, Target, TargetSpec, Writer};
use std::{fmt, io};

/// Every kind of target beyond files and values, for [`lowlat_sys::undo::UndoLog::with_target`].
pub fn all() -> Vec<Box<dyn Target>> {
    vec![
        Box::new(service::Services::live()),
        Box::new(kthread::Affinity),
        Box::new(kthread::SchedulingPolicy),
        Box::new(nic::Nics::CHANNELS),
        Box::new(nic::Nics::COALESCING),
        Box::new(nic::Nics::FEATURES),
    ]
}

/// The error of something that is no file: what was attempted, on what, and why it did not work.
fn failed(doing: &'static str, name: &str, why: impl fmt::Display) -> HostError {
    HostError::Io { doing, path: name.to_owned(), source: io::Error::other(why.to_string()) }
}

/// Refuses a writer to a directory: threads, interfaces and services would be the running host's all the same.
fn is_live_or(writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
    if writer.is_live() {
        return Ok(());
    }
    let why = format!(
        "a {} is of the running host, and the root given is another one; leave this step out",
        spec.kind
    );
    Err(failed("use below another root", &spec.name, why))
}
