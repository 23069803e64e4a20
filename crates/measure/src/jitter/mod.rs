//! Jitter: the time that is taken from a user thread on each CPU, by one pinned sampler per CPU.
//!
//! A sampler does nothing but read the counter; two readings further apart than the threshold are an interruption.
//! Its memory is bounded and allocated before it begins, however long it runs.

mod calibrate;
mod cost;
mod counters;
mod live;
mod memory;
mod options;
mod progress;
mod quiet;
mod record;
mod recorder;
mod run;
mod sampler;
#[cfg(test)]
mod sampler_tests;
mod series;
mod spin;
mod steal;
mod team;
mod windows;

pub use cost::{CostError, tracing_cost};
pub use counters::{Counters, CountersOfRun, SmiCounts};
pub use options::{DURATION_MAX, JitterError, JitterOptions, KEPT_MAX};
pub use progress::{CpuProgress, JitterProgress};
pub use quiet::QuietWatch;
pub use run::run;
pub use spin::{STRETCH_TURNS, Stretch, spin};
pub use windows::Windows;
