//! The result document: one JSON file per run, self-describing, additive across versions.
#![forbid(unsafe_code)]

pub mod compare;
pub mod hlog;
mod measurement;

pub use measurement::Measurement;

use lowlat_host::{Allocation, HostSnapshot, Role};
use lowlat_jitter::{JitterMeasurement, ReadinessPoint};
use lowlat_settings::audit::Audit;
use serde::{Deserialize, Serialize};

/// One run of lowlat, whole: what was asked, what the host was, what was found and measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultDocument {
    /// Always "lowlat-result".
    pub document: String,
    /// Version of this shape. Fields are only ever added; a change of meaning raises it.
    pub schema_version: u32,
    /// The lowlat that wrote it.
    pub lowlat_version: String,
    /// The command: "assess", "jitter".
    pub command: String,
    /// When the run began, RFC 3339, UTC.
    pub started_at: String,
    /// How long it took.
    pub elapsed_s: f64,
    /// Whether it was cut short by the user.
    pub is_interrupted: bool,
    /// What the user wants of the host.
    pub role: Role,
    /// The host before the measurement.
    pub snapshot: HostSnapshot,
    /// The CPUs chosen.
    pub allocation: Allocation,
    /// The judged settings.
    pub audit: Audit,
    /// What was measured: at most one of each kind, in the order in which they ran.
    #[serde(flatten, with = "measurement::stored")]
    pub measurements: Vec<Measurement>,
    /// What was looked at before a measurement; empty when nothing was.
    #[serde(default)]
    pub readiness: Vec<ReadinessPoint>,
    /// What makes the document doubtful or incomplete. One sentence each.
    pub warnings: Vec<String>,
}

impl ResultDocument {
    /// The present [`ResultDocument::schema_version`]. Version 1 had `jitter`, `jitter_study` and `gate` in place of
    /// [`ResultDocument::measurements`]; it is read as if it had been written now.
    pub const SCHEMA_VERSION: u32 = 2;
    /// What [`ResultDocument::document`] holds.
    pub const DOCUMENT: &'static str = "lowlat-result";

    /// The jitter measurement, when one was made.
    pub fn jitter(&self) -> Option<&JitterMeasurement> {
        self.measurements.iter().find_map(Measurement::jitter)
    }

    /// The same, to change it.
    pub fn jitter_mut(&mut self) -> Option<&mut JitterMeasurement> {
        self.measurements.iter_mut().find_map(Measurement::jitter_mut)
    }
}
