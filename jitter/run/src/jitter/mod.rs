//! Jitter: the time taken from a user thread on each CPU, measured by one pinned sampler per CPU.
//!
//! A sampler only reads the counter; two readings further apart than the threshold are an interruption. Its
//! memory is bounded and allocated before it starts, however long it runs.

mod atomics;
mod calibrate;
mod collector;
mod cost;
mod counters;
mod error;
mod memory;
mod observe;
mod options;
mod progress;
mod quiet;
mod raw;
mod real_time;
mod record;
mod recorder;
mod ring;
mod run;
mod sampler;
#[cfg(test)]
mod sampler_tests;
mod series;
mod spin;
mod steal;
mod team;
mod wakes;
pub mod watch;
mod windows;

pub use collector::{Companion, Lane, Started};
pub use cost::{CostError, tracing_cost};
pub use counters::{CountersOfRun, CpuCounters, SmiCounts};
pub use error::JitterError;
pub use observe::{Observation, run_observed};
pub use observe::{StampClock, TraceSetup, filter_page_faults};
pub use options::{DURATION_MAX, JitterOptions, KEPT_MAX};
pub use progress::{CpuProgress, JitterProgress};
pub use quiet::QuietWatch;
pub use raw::{RawError, RawFiles};
pub use real_time::{RealTime, RealTimePolicy};
pub use recorder::CpuRecorder;
pub use ring::{Consumer, Producer, capacity_for, ring};
pub use run::run;
pub use series::SeriesPlan;
pub use spin::{STRETCH_TURNS, Stretch, spin};
pub use windows::StealWatch;
