//! A matrix as it was measured.

use crate::{PipelineParameters, PipelineRecord};
use serde::{Deserialize, Serialize};

/// One row with its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MatrixRow {
    /// `A1`, `H12`.
    pub id: String,
    /// The letter of its group.
    pub group: char,
    /// What the group is.
    pub group_name: String,
    /// The scenario's number.
    pub scenario: u8,
    /// What every run of it was asked to do.
    pub parameters: PipelineParameters,
    /// Ticks that a run has by the plan.
    pub ticks_per_run: u64,
    /// Why it was not run; a row with runs has none.
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
    /// How long it took, seconds.
    pub elapsed_s: f64,
    /// Time that was to be shared, seconds.
    pub budget_s: f64,
    /// Whether it was cut short by the user.
    pub is_interrupted: bool,
    /// Name of the host, title and note.
    #[serde(flatten)]
    pub labels: lowlat_host::Labels,
    /// The host in a line: processor, CPUs, memory.
    pub host: String,
    /// Its kernel.
    pub kernel: String,
    /// Runs of each row by the plan.
    pub repeats: u32,
    /// How the platform was pinned where it was; empty where no row pins.
    pub pinning: String,
    /// What a run consists of beside its strategies, and how md publishes.
    pub platform: String,
    /// Every row that was asked for.
    pub rows: Vec<MatrixRow>,
    /// What makes it doubtful. One sentence each.
    pub warnings: Vec<String>,
}

impl MatrixDocument {
    /// The present [`MatrixDocument::schema_version`].
    pub const SCHEMA_VERSION: u32 = 1;
    /// What [`MatrixDocument::document`] holds.
    pub const DOCUMENT: &'static str = "lowlat-pipeline-matrix";
}
