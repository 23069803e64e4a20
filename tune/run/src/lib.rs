//! Applies plans to a host, and rolls them back: the action, with facts from `lowlat-host-run` and judgement from
//! `lowlat-plan`.
//!
//! ```text
//! Plan (data)  ->  steps::prepare      what each change is on this host: paths, numbers, old states
//!              ->  UndoLog::apply      recorded, written, read back
//!              ->  StateDir            which plan is in force
//! ```
//!
//! All writes go through the undo log ([`lowlat_undo`]), so each can be rolled back after a crash at
//! any moment. Targets that are neither files nor values of the kernel (services, threads, interfaces) are
//! in [`targets`].
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod boot_loader;
pub mod evidence;
pub mod flow;
pub mod huge_pages;
mod programs;
mod state;
pub mod steps;
pub mod targets;
pub mod units;

pub use programs::{Outcome, Programs, SystemPrograms};
pub use state::{InForce, LogSeal, ROLE_FILE, StateDir, StateError, Wrote};
