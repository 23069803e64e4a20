//! The tuner's plan: changes of a host as data. Nothing here writes.
//!
//! Each row of the catalogue has a function that proposes its change ([`lowlat_settings::Setting::change`]);
//! most rows use that of their layer ([`lowlat_settings::change::by_layer()`]). The planner gathers the
//! proposals of all wrong rows, and lists every other row with the reason why nothing is planned for it.
//! Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod boot_files;
mod boot_line;
mod drift;
pub mod export;
pub mod import;
mod mark;
mod merge;
mod network;
mod origin;
pub mod outcome;
mod partition;
mod plan;
mod planner;
pub mod proof;
pub mod verify;
mod warnings;

#[cfg(test)]
mod tests;

use drift::stands;

pub use boot_line::{merge, spell, standing};
pub use drift::Drift;
pub use mark::HostMark;
pub use plan::{LeftOut, Plan};
pub use warnings::is_processor_of_guide;
