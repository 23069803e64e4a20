//! How settings are changed: what a row proposes, one file per kind of change.

pub mod boot;
mod by_layer;
pub mod files;
pub mod grammar;
pub mod irq;
pub mod kthread;
pub mod memory;
pub mod nic;
mod proposal;
pub mod service;
pub mod sysctl;
mod target;
pub mod tuned;

pub use by_layer::by_layer;
pub use proposal::{Proposal, Step};
pub use target::{BootToken, Change, Moment, Target, WhyLeftOut};
