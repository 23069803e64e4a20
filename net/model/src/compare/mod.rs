//! Comparison of programs or settings that were measured in turn.

mod record;
mod study;

pub use record::{CompareRecord, CompareRun, CompareSide, NetCompareMeasurement};
pub use study::{
    CompareStudy, Comparison, Difference, Figure, Obstacle, SideFigures, SizeComparison, Verdict,
};
