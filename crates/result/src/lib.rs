//! The result document: one JSON file per run, self-describing, additive across versions.
#![forbid(unsafe_code)]

pub mod compare;
pub mod hlog;

use lowlat_host::{Allocation, HostSnapshot, Role};
use lowlat_jitter::{JitterRecord, JitterStudy, ReadinessPoint, gate::GateOutcome};
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
    /// The jitter measurement, when one was made.
    pub jitter: Option<JitterRecord>,
    /// The study of it, for programs that read the document; `None` when there is none or the record is damaged.
    #[serde(default)]
    pub jitter_study: Option<JitterStudy>,
    /// Whether the limits that were given held; `None` when none were given.
    #[serde(default)]
    pub gate: Option<GateOutcome>,
    /// What was looked at before a measurement; empty when nothing was.
    #[serde(default)]
    pub readiness: Vec<ReadinessPoint>,
    /// What makes the document doubtful or incomplete. One sentence each.
    pub warnings: Vec<String>,
}

impl ResultDocument {
    /// The present [`ResultDocument::schema_version`].
    pub const SCHEMA_VERSION: u32 = 1;
    /// What [`ResultDocument::document`] holds.
    pub const DOCUMENT: &'static str = "lowlat-result";
}
