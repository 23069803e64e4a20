//! Record of a measurement of workloads.

use crate::{Setting, programs::Latency};
use lowlat_host::CpuId;
use serde::{Deserialize, Serialize};

/// Purpose of a record's cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Figures of each cell.
    #[default]
    Run,
    /// Cells in pairs, A then B.
    Compare,
    /// The tables of the KeyarchOS article.
    Article,
}

lowlat_host::measurement! {
    /// Workloads of a host.
    WorkloadMeasurement { record: WorkloadRecord, kind: "workload", command: "workload" }
}

/// The raw facts of a measurement.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadRecord {
    pub purpose: Purpose,
    /// Cells that are measured in each round.
    pub cells: Vec<Cell>,
    /// Rounds that were asked for.
    pub rounds: u32,
    /// The runs, in the order in which they ran: each round has every cell once, in random order.
    pub runs: Vec<CellRun>,
    pub missing: Vec<Missing>,
    /// Reasons that the figures are doubtful, one sentence each.
    pub warnings: Vec<String>,
}

/// One workload under one setting.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Cell {
    pub workload: String,
    /// The counted unit: "round trips".
    pub unit: String,
    pub copies: u32,
    pub setting: Setting,
    /// CPU of each process, or the CPUs of a program; empty if the kernel chooses.
    pub cpus: Vec<CpuId>,
}

/// One run of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CellRun {
    /// Number of the round, from 0.
    pub round: u32,
    /// Index of its cell in the record.
    pub cell: u32,
    /// Operations per second, sum over the copies.
    pub per_s: f64,
    /// Bytes transferred per second, where the program reports them.
    pub bytes_per_s: Option<f64>,
    /// Times of one operation, where they were taken.
    pub latency: Option<Latency>,
    pub operations: u64,
    /// Time over which they were counted.
    pub elapsed_ns: u64,
}

/// A workload, or one setting of it, that could not be measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Missing {
    pub workload: String,
    /// Copies; `None` if it concerns every number.
    pub copies: Option<u32>,
    /// The setting; `None` if it concerns every setting.
    pub setting: Option<Setting>,
    /// Reason, without a full stop.
    pub why: String,
}

impl WorkloadRecord {
    /// Place of the cell of a workload under a setting.
    pub fn find(&self, workload: &str, copies: u32, setting: Setting) -> Option<usize> {
        let is_it =
            |cell: &Cell| cell.workload == workload && cell.copies == copies && cell.setting == setting;
        self.cells.iter().position(is_it)
    }

    /// Workloads with their numbers of copies, in the order of the cells and then of what is missing.
    pub fn rows(&self) -> Vec<(&str, u32)> {
        let mut rows: Vec<(&str, u32)> = Vec::new();
        for row in self.cells.iter().map(|cell| (cell.workload.as_str(), cell.copies)) {
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows
    }
}
