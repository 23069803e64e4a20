//! Changes of settings: the proposals of rows, and the kinds of changes (`kinds/`).

pub mod boot;
mod by_layer;
pub mod cache;
pub mod files;
pub mod grammar;
pub mod irq;
mod kind;
mod kinds;
pub mod kthread;
pub mod memory;
pub mod processes;
mod proposal;
pub mod servers;
pub mod service;
pub mod sysctl;
mod target;
pub mod tuned;

pub use by_layer::by_layer;
pub use kind::{Ethtool, Field, Kind, Lasting, Mechanism, Missing, Part, Rival, Wire};
pub use kinds::nic;
pub use proposal::{Proposal, ProposedChange};
pub use target::{BootToken, Change, Moment, Target, WhyLeftOut};
