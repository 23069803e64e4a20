//! Choice of a waiting mode for a goal.

mod mode;
mod study;

pub use mode::Mode;
pub use study::{Choice, ChoiceStudy, ModeStudy};

use crate::pingpong::{ControlRow, CpuUse, EndFacts, PingpongRecord, Scenario, Unsound};
use serde::{Deserialize, Serialize};

lowlat_host::measurement! {
    /// A search for the cheapest waiting mode that meets a goal.
    NetChoiceMeasurement { record: ChoiceRecord, kind: "choose", command: "net choose" }
}

/// Limits that a waiting mode must meet.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Goal {
    /// Longest 99th percentile of half round trips.
    pub p99_ns: u64,
    /// Largest share of one CPU, per end, 0 to 1.
    pub cpu_share: f64,
}

/// The raw facts of a search.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ChoiceRecord {
    pub goal: Goal,
    /// Scenario that every mode measures; each mode sets its waiting mode.
    pub scenario: Scenario,
    /// The server as the user named it.
    pub server_name: String,
    /// True if both ends ran on one host.
    pub is_same_host: bool,
    pub client: EndFacts,
    pub server: EndFacts,
    /// Every mode, in the order of [`Mode::ALL`].
    pub modes: Vec<ModeRecord>,
    /// Rounds that were repeated because the control moved in them.
    pub repeated: Vec<u32>,
    /// Rounds in which it moved again.
    pub unsteady: Vec<u32>,
    /// Reason why there are no controls.
    pub control_missing: Option<String>,
    /// Problems of the set-up, apart from those that differ between modes.
    pub unsound: Vec<Unsound>,
    /// Doubts about the figures, one sentence each.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ModeRecord {
    pub mode: Mode,
    /// Reason why it was not measured.
    pub unavailable: Option<String>,
    pub rounds: Vec<ModeRound>,
}

/// One run of a mode.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ModeRound {
    /// Number of the round, from 0.
    pub round: u32,
    /// Number of measured round trips.
    pub count: u64,
    pub lost_count: u64,
    /// Messages that came after they had been given up, or again.
    pub stray_count: u64,
    /// Median of half round trips, if the count supports it.
    pub p50_ns: Option<u64>,
    /// 99th percentile, if the count supports it.
    pub p99_ns: Option<u64>,
    /// CPU time of the client's thread.
    pub client_cpu: Option<CpuUse>,
    /// CPU time of the server's thread.
    pub server_cpu: Option<CpuUse>,
    /// Controls before and after the round.
    pub controls: Vec<ControlRow>,
}

impl ModeRound {
    /// Takes what a run of one size measured; `None` if it measured nothing.
    pub fn of(round: u32, record: &PingpongRecord) -> Option<Self> {
        let size = record.sizes.first()?;
        Some(Self {
            round,
            count: size.figures.iterations,
            lost_count: size.lost_count,
            stray_count: size.late_count + size.duplicate_count,
            p50_ns: size.quantile_ns(0.5),
            p99_ns: size.quantile_ns(0.99),
            client_cpu: size.client_cpu,
            server_cpu: size.server_cpu,
            controls: record.controls.clone(),
        })
    }

    /// Shares of one CPU: the client's and the server's.
    pub fn shares(&self) -> [Option<f64>; 2] {
        [self.client_cpu, self.server_cpu].map(|cpu| cpu.and_then(|cpu| cpu.share()))
    }
}

impl ChoiceRecord {
    /// Returns the controls of all modes and rounds.
    pub fn controls(&self) -> impl Iterator<Item = &ControlRow> {
        self.modes.iter().flat_map(|mode| &mode.rounds).flat_map(|round| &round.controls)
    }
}
