//! The flows behind the commands: apply, apply again at boot, roll back, confirm, status. One file per flow.
//!
//! A plan is carried out as several plans of the undo log, in this order, and taken back the other way round:
//!
//! ```text
//! ID/confirm   the dead-man switch, where one is asked for: armed before anything else changes
//! ID/tuned     TuneD's profile: its file, then the switch to it
//! ID/queues    how many queues interfaces have; interrupts are looked up again after it
//! ID/run       what takes effect at once, services' enablement too
//! ID/files     files that keep it for later boots
//! ID/boot      what the boot loader is configured by
//! ID/loader    what its own program generates out of that
//! ID/persist   units of systemd that keep the plan in force
//! ID/boot-B    the run-time part again, in the later boot B
//! ```
//!
//! [`Site`] is what a flow acts on. Tests give it a directory, and their own service manager, programs and targets.

mod apply;
mod at_boot;
mod check;
mod confirm;
mod error;
mod later_kernels;
mod log_check;
mod manager;
mod persist;
mod preview;
mod ready;
mod rollback;
mod site;
mod stage;
mod status;
mod three_way;

#[cfg(test)]
mod tests;

pub use at_boot::{Again, apply_again};
pub use confirm::{Confirmed, confirm};
pub use error::FlowError;
pub use log_check::log_doubt;
pub use manager::{Manager, Systemctl};
pub use ready::{ApplyOptions, PlanFrom, Ready};
pub use rollback::{RollbackRequest, Scope, rollback, rollback_unconfirmed};
pub use site::{Detect, Prepare, Site};
pub use status::status;
