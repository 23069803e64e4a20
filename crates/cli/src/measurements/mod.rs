//! The measurements that are short enough for `assess`.

mod jitter;

use crate::{host::Host, progress::Progress};
use lowlat_host::CpuSet;
use lowlat_result::Measurement;
use std::{sync::atomic::AtomicBool, time::Duration};

/// What a measurement has to go by.
pub struct Wanted<'a> {
    /// The running host.
    pub host: &'a Host,
    /// The CPUs that the user named; `None` for all.
    pub cpus: Option<&'a CpuSet>,
    /// How long a measurement over time takes.
    pub duration: Duration,
    /// Whether causes are looked for.
    pub causes: bool,
    /// Ends it early.
    pub stop: &'a AtomicBool,
    /// Shows how far it is.
    pub progress: &'a Progress,
}

/// Measures and studies; `None` with a warning where this host cannot be measured. An error ends the run.
pub type Measure = fn(&Wanted<'_>, &mut Vec<String>) -> anyhow::Result<Option<Measurement>>;

/// In the order in which they run. A new measurement adds its line here.
pub const SHORT: &[Measure] = &[jitter::measure];
