//! A matrix as it was measured.

use crate::{PipelineParameters, PipelineRecord};
use serde::{Deserialize, Serialize};

/// One row with its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// Such as `A1` or `H12`.
    pub id: String,
    /// The letter of its group.
    pub group: char,
    /// Name of the group, such as "parked, not pinned, huge pages".
    pub group_name: String,
    pub scenario: u8,
    /// Parameters of each of its runs.
    pub parameters: PipelineParameters,
    /// Ticks that a run has by the plan.
    pub ticks_per_run: u64,
    /// Reason why it was not run; `None` for a row with runs.
    pub not_run: Option<String>,
    /// Its runs, in the order in which they were made, which is not one after the other: all rows take turns.
    pub runs: Vec<PipelineRecord>,
}

/// The matrix of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixDocument {
    /// Always "lowlat-pipeline-matrix".
    pub document: String,
    /// Version of this shape. Fields are only ever added; a change of meaning raises it.
    pub schema_version: u32,
    /// The lowlat that wrote it.
    pub lowlat_version: String,
    /// When it began, RFC 3339, UTC.
    pub started_at: String,
    /// Time that it took, in seconds.
    pub elapsed_s: f64,
    /// Time that was to be shared, seconds.
    pub budget_s: f64,
    /// True if the user cut it short.
    pub is_interrupted: bool,
    /// Name of the host, title and note.
    #[serde(flatten)]
    pub labels: lowlat_host::Labels,
    /// The host in a line: processor, CPUs, memory.
    pub host: String,
    pub kernel: String,
    /// Runs of each row by the plan.
    pub repeats: u32,
    /// Pinning of the platform in rows that pin it; empty if no row does.
    pub pinning: String,
    /// Processes of a run beside its strategies, and the way in which md publishes.
    pub platform: String,
    /// Every row that was asked for.
    pub rows: Vec<MatrixRow>,
    /// Doubts about it, one sentence each.
    pub warnings: Vec<String>,
}

impl MatrixDocument {
    /// Current value of the field [`MatrixDocument::schema_version`].
    pub const SCHEMA_VERSION: u32 = 1;
    /// Value of the field [`MatrixDocument::document`].
    pub const DOCUMENT: &'static str = "lowlat-pipeline-matrix";
}
