//! Carries plans out on a host, and takes them back: the action beside the facts of `lowlat-sys` and the judgement of
//! `lowlat-plan`.
//!
//! ```text
//! Plan (data)  ->  steps::prepare      what each change is on this host: paths, numbers, old states
//!              ->  UndoLog::apply      recorded, written, read back
//!              ->  StateDir            which plan is in force
//! ```
//!
//! All writes go through the undo log ([`lowlat_sys::undo`]), so that each can be taken back after a crash at any
//! moment. What is neither a file nor a value of the kernel (services, threads, interfaces) has a [`targets`] entry.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod boot_loader;
pub mod flow;
mod programs;
mod state;
pub mod steps;
pub mod systemd;
pub mod targets;
pub mod units;

pub use programs::{Outcome, Programs, SystemPrograms};
pub use state::{InForce, LogSeal, StateDir, StateError, Wrote};
