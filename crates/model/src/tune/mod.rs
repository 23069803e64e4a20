//! The tuner's plan: what would be changed on a host, as data. Nothing here writes.
//!
//! Each row of the catalogue says beside its judge how it is changed ([`crate::catalogue::Setting::change`]); most rows
//! leave that to their layer ([`by_layer()`]). The planner asks every row at fault, gathers what they propose, and lists
//! every other row with the reason why nothing is planned for it.

pub mod boot_files;
mod boot_line;
mod by_layer;
mod drift;
pub mod export;
pub(crate) mod files;
mod grammar;
pub(crate) mod irq;
pub(crate) mod kthread;
mod mark;
mod memory;
mod merge;
pub(crate) mod nic;
mod origin;
pub mod outcome;
mod plan;
mod planner;
mod proposal;
pub(crate) mod service;
pub(crate) mod sysctl;
pub(crate) mod tuned;
pub mod verify;
mod warnings;

pub(crate) mod boot;
pub(crate) use by_layer::by_layer;
pub(crate) use memory::{huge_pages, thp};

#[cfg(test)]
mod tests;

use drift::stands;

pub use boot_line::{merge, spell, standing};
pub use drift::Drift;
pub use mark::{HostMark, digest};
pub use plan::{BootToken, Change, LeftOut, Moment, Plan, Target, WhyLeftOut};
pub use proposal::{Proposal, Step};
