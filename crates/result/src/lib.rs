//! The result document: one JSON file per run, self-describing, additive across versions.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod compare;
pub mod fleet;
pub mod hlog;
mod measurement;
#[cfg(test)]
mod schema;

pub use measurement::Measurement;

use lowlat_cache::{c2c::C2cMeasurement, clusters::ClustersMeasurement};
use lowlat_host::{Allocation, HostSnapshot, Labels, Role};
use lowlat_jitter::{JitterMeasurement, ReadinessPoint};
use lowlat_net::{
    choose::NetChoiceMeasurement, compare::NetCompareMeasurement, pingpong::PingpongMeasurement,
    stream::StreamMeasurement,
};
use lowlat_settings::audit::Audit;
use lowlat_workload::WorkloadMeasurement;
use serde::{Deserialize, Serialize};

/// One complete run of lowlat: the request, the host, and the findings and measurements.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ResultDocument {
    /// Always "lowlat-result".
    pub document: String,
    /// Version of this format. Fields are only ever added; a change of meaning increases it.
    pub schema_version: u32,
    /// The lowlat that wrote it.
    pub lowlat_version: String,
    /// The command: "assess", "jitter", "net pingpong".
    pub command: String,
    /// Start of the run, RFC 3339, UTC.
    pub started_at: String,
    /// Its length.
    pub elapsed_s: f64,
    /// Whether the user stopped it early.
    pub is_interrupted: bool,
    /// Name of the host, title and note.
    #[serde(flatten)]
    pub labels: Labels,
    /// The user's requirements for the host.
    pub role: Role,
    /// The host before the measurement.
    pub snapshot: HostSnapshot,
    /// The CPUs chosen.
    pub allocation: Allocation,
    /// The judged settings.
    pub audit: Audit,
    /// The measurements: at most one of each kind, in the order in which they ran.
    #[serde(flatten, with = "measurement::stored")]
    #[cfg_attr(test, schemars(flatten, with = "measurement::stored::Read"))]
    pub measurements: Vec<Measurement>,
    /// Checks before a measurement; empty if none were made.
    #[serde(default)]
    pub readiness: Vec<ReadinessPoint>,
    /// What makes the document doubtful or incomplete. One sentence each.
    pub warnings: Vec<String>,
}

impl ResultDocument {
    /// The current [`ResultDocument::schema_version`]. Version 1 had `jitter`, `jitter_study` and `gate` in place of
    /// [`ResultDocument::measurements`]; such documents are converted when read.
    pub const SCHEMA_VERSION: u32 = 2;
    /// Content of [`ResultDocument::document`].
    pub const DOCUMENT: &'static str = "lowlat-result";

    /// The jitter measurement, if any.
    pub fn jitter(&self) -> Option<&JitterMeasurement> {
        self.measurements.iter().find_map(Measurement::jitter)
    }

    /// The ping-pong measurement, if any.
    pub fn pingpong(&self) -> Option<&PingpongMeasurement> {
        self.measurements.iter().find_map(Measurement::pingpong)
    }

    /// The latencies between cores, if measured.
    pub fn c2c(&self) -> Option<&C2cMeasurement> {
        self.measurements.iter().find_map(Measurement::c2c)
    }

    /// The comparison of packed and spread copies, if any.
    pub fn clusters(&self) -> Option<&ClustersMeasurement> {
        self.measurements.iter().find_map(Measurement::clusters)
    }

    /// The comparison of round trips, if any.
    pub fn net_compare(&self) -> Option<&NetCompareMeasurement> {
        self.measurements.iter().find_map(Measurement::net_compare)
    }

    /// The search for a waiting mode, if any.
    pub fn net_choice(&self) -> Option<&NetChoiceMeasurement> {
        self.measurements.iter().find_map(Measurement::net_choice)
    }

    /// The measurement of workloads, if there is one.
    pub fn workload(&self) -> Option<&WorkloadMeasurement> {
        self.measurements.iter().find_map(Measurement::workload)
    }

    /// The stream measurement, if there is one.
    pub fn stream(&self) -> Option<&StreamMeasurement> {
        self.measurements.iter().find_map(Measurement::stream)
    }

    /// The jitter measurement, mutable.
    pub fn jitter_mut(&mut self) -> Option<&mut JitterMeasurement> {
        self.measurements.iter_mut().find_map(Measurement::jitter_mut)
    }
}
