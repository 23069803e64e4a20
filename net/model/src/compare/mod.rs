//! Comparison of programs or settings that were measured in turn.

mod study;

pub use study::{
    CompareStudy, Comparison, Difference, Figure, Obstacle, SideFigures, SizeComparison, Verdict,
};

use crate::{
    pingpong::ControlRow,
    tools::{Tool, ToolRow},
};
use serde::{Deserialize, Serialize};

lowlat_host::measurement! {
    /// A comparison of two or more sides.
    NetCompareMeasurement { record: CompareRecord, kind: "compare", command: "net compare" }
}

/// The raw facts of a comparison.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CompareRecord {
    /// The sides, A first: the others are compared with it.
    pub sides: Vec<CompareSide>,
    /// Rounds that were asked for.
    pub rounds: u32,
    /// The runs, in the order in which they ran. The order of the sides alternates from round to round: A B, B A, A B.
    pub runs: Vec<CompareRun>,
    /// True if the runs are finished outputs read from files, which were not measured in turn.
    pub is_imported: bool,
    /// Doubts about the figures, one sentence each.
    pub warnings: Vec<String>,
}

/// A side of the comparison: a program with its arguments.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CompareSide {
    /// "A" to "Z", then "side 27".
    pub name: String,
    pub tool: Tool,
    /// Arguments of the program as the user typed them, or the file that was read.
    pub command: String,
}

/// One run of a side.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CompareRun {
    /// Number of the round, from 0.
    pub round: u32,
    /// Index of the side; 0 is A.
    pub side: u32,
    /// Half round trips by size.
    pub rows: Vec<ToolRow>,
    /// Controls before, in and after the run.
    pub controls: Vec<ControlRow>,
}

impl CompareSide {
    /// Name of the side at a place: A to Z, then by number.
    pub fn name_of(place: usize) -> String {
        let letter =
            u8::try_from(place).ok().filter(|place| *place < 26).map(|place| char::from(b'A' + place));
        letter.map_or_else(|| format!("side {}", place + 1), |letter| letter.to_string())
    }
}

impl CompareRecord {
    /// The places of the sides in the order of a round: forwards and backwards in turn.
    pub fn order(sides: usize, round: u32) -> Vec<usize> {
        if round.is_multiple_of(2) { (0..sides).collect() } else { (0..sides).rev().collect() }
    }

    /// True if every side has figures of every round that was asked for.
    pub fn is_whole(&self) -> bool {
        let asked = usize::try_from(self.rounds).unwrap_or(usize::MAX).saturating_mul(self.sides.len());
        let measured = self.runs.iter().filter(|run| !run.rows.is_empty()).count();
        if self.is_imported { measured == self.runs.len() && measured > 0 } else { measured >= asked }
    }

    /// Returns the controls of all runs.
    pub fn controls(&self) -> impl Iterator<Item = &ControlRow> {
        self.runs.iter().flat_map(|run| &run.controls)
    }
}
