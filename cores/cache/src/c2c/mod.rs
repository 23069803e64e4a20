//! Latency between cores: the survey of a sample of the pairs, its record, and what differs from the kernel's topology.

mod differences;
mod levels;
mod matrix;
mod record;
mod survey;
mod tree;

pub use differences::{Kind, differences, partitions};
pub use matrix::{LatencyMatrix, LatencyMatrixError};
pub use record::{C2cMeasurement, C2cRecord, LatencyPredictor, Level, Method, PairTime, SpotCheck};
pub use survey::{Missed, Sample, SurveyLimits, survey};

#[cfg(test)]
mod tests;
