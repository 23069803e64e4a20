//! Measurements that are short enough for `assess`.

mod jitter;

use crate::{host::Host, progress::Progress};
use lowlat_host::CpuSet;
use lowlat_result::Measurement;
use std::{sync::atomic::AtomicBool, time::Duration};

/// Input of a measurement.
pub struct Wanted<'a> {
    /// Running host.
    pub host: &'a Host,
    /// CPUs that the user named; `None` for all.
    pub cpus: Option<&'a CpuSet>,
    /// Length of a measurement over time.
    pub duration: Duration,
    /// Whether to trace causes.
    pub causes: bool,
    /// Flag that ends the measurement early.
    pub stop: &'a AtomicBool,
    /// Progress line.
    pub progress: &'a Progress,
}

/// Function that measures and studies. It returns `None` and adds a warning if the host cannot be measured; an error ends
/// the run.
pub type Measure = fn(&Wanted<'_>, &mut Vec<String>) -> anyhow::Result<Option<Measurement>>;

/// Short measurements, in the order in which they run. A new measurement adds its line here.
pub const SHORT: &[Measure] = &[jitter::measure];
