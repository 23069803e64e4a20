//! Workloads under different placements, idle settings and policies: what was measured, what the ratios show, and what
//! part of published gains placement and idle states explain.
//!
//! Pure: no I/O, no clock, no processes.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod article;
mod between;
mod place;
pub mod programs;
mod record;
mod setting;
mod study;

pub use between::{WorkloadChange, between};
pub use place::{cpus_of, why_not};
pub use record::{Cell, CellRun, Missing, Purpose, WorkloadMeasurement, WorkloadRecord};
pub use setting::{Idle, Place, Policy, Setting};
pub use study::{UNBOUNDED, Verdict, verdict};
