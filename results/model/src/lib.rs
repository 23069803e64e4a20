//! The result document: one JSON file per run, self-describing.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod compare;
pub mod fleet;
pub mod hlog;
mod measurement;
pub mod schema;

pub use measurement::Measurement;

use lowlat_host::{Allocation, HostSnapshot, Labels, Role};
use lowlat_jitter::{JitterMeasurement, ReadinessPoint, RemedyContext};
use lowlat_settings::audit::Audit;
use serde::{Deserialize, Serialize};

/// One complete run of lowlat: the request, the host, and the findings and measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ResultDocument {
    /// Kind of the document: always "lowlat-result".
    pub document: String,
    /// Version of this format. Only documents of the current one are read.
    pub schema_version: u32,
    /// The lowlat that wrote it.
    pub lowlat_version: String,
    /// The command: "assess", "jitter", "net pingpong".
    pub command: String,
    /// Start of the run, RFC 3339, UTC.
    pub started_at: String,
    pub elapsed_s: f64,
    /// True if the user stopped the run early.
    pub is_interrupted: bool,
    /// Name of the host, title and note.
    #[serde(flatten)]
    pub labels: Labels,
    /// The user's requirements for the host.
    pub role: Role,
    /// The host before the measurement.
    pub snapshot: HostSnapshot,
    /// The CPUs chosen for the role.
    pub allocation: Allocation,
    /// The judged settings of the host.
    pub audit: Audit,
    /// The measurements: at most one of each kind, in the order in which they ran.
    pub measurements: Vec<Measurement>,
    /// Checks before a measurement; empty if none were made.
    pub readiness: Vec<ReadinessPoint>,
    /// Reasons why the document is doubtful or incomplete. One sentence each.
    pub warnings: Vec<String>,
}

impl ResultDocument {
    /// The [`ResultDocument::schema_version`] of new documents.
    pub const SCHEMA_VERSION: u32 = 2;
    /// The value of every [`ResultDocument::document`].
    pub const DOCUMENT: &'static str = "lowlat-result";

    /// Returns the host, the allocation and the role, on which remedies depend.
    pub fn remedy_context(&self) -> RemedyContext<'_> {
        RemedyContext { host: &self.snapshot, allocation: &self.allocation, role: &self.role }
    }

    pub fn jitter_mut(&mut self) -> Option<&mut JitterMeasurement> {
        self.measurements.iter_mut().find_map(Measurement::jitter_mut)
    }
}
