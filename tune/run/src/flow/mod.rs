//! The flows behind the commands: apply, apply again at boot, roll back, confirm, status. One file per flow.
//!
//! A plan is applied as several plans of the undo log, in this order, and rolled back in the reverse order:
//!
//! ```text
//! ID/confirm   the dead-man switch, if requested: armed before anything else changes
//! ID/tuned     TuneD's profile: its file, then the switch to it
//! ID/queues    numbers of queues of interfaces; interrupts are read again after it
//! ID/run       changes that take effect at once, and services' enablement
//! ID/files     files that keep it for later boots
//! ID/boot      the boot loader's configuration
//! ID/loader    the files that its program generates from the configuration
//! ID/persist   systemd units that keep the plan in force
//! ID/boot-B    the run-time part again, in the later boot B
//! ID/prove     the unit of a proof over reboots
//! ```
//!
//! A flow acts on a [`Site`]. Tests give it a directory, and replace service manager, programs and targets.

mod apply;
mod at_boot;
mod boots;
mod check;
mod confirm;
mod error;
mod log_check;
mod manager;
mod persist;
mod preview;
mod prove;
mod ready;
mod rollback;
mod site;
mod stage;
mod status;

#[cfg(test)]
mod tests;

pub use at_boot::{Again, apply_again};
pub use boots::BootBoard;
pub use check::{container, hindrances};
pub use confirm::{Confirmed, confirm};
pub use error::FlowError;
pub use log_check::log_doubt;
pub use manager::{Manager, Systemctl};
pub use prove::{Measuring, Switchboard};
pub use ready::{Adopted, adopt};
pub use ready::{ApplyOptions, PlanFrom, Ready};
pub use rollback::{RollbackRequest, RollbackScope, rollback, rollback_unconfirmed};
pub use site::{Detect, Prepare, Site};
pub use status::status;
